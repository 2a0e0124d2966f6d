/** What may differ between two deltas of a turn, in either dialect. */
const TEXT_KEYS = ['delta', 'content'] as const;
type TextKey = (typeof TEXT_KEYS)[number];
type Loose = Record<string, unknown>;

/** A delta's frame around its text, and what it says beside it. */
type Frame = { before: string; after: string; key: TextKey; event: Loose };

// A quote would end the text, a backslash has to be read, a control character is not JSON.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const NOT_PLAIN = /["\\\u0000-\u001f]/;

/**
 * Frames → events, for one socket. Nearly all are deltas of one turn that differ in nothing but
 * their text: once one was parsed, the next that begins and ends like it is not parsed again, only
 * its text is taken out. That is a third of what a delta costs on its whole way.
 */
export function createEventParser(maxLength: number): (text: string) => unknown {
  let frame: Frame | undefined;

  return (text) => {
    if (frame && text.startsWith(frame.before) && text.endsWith(frame.after)) {
      const { before, after, key, event } = frame;
      const end = text.length - after.length;
      const said = end < before.length ? '"' : text.slice(before.length, end);
      if (!NOT_PLAIN.test(said) && text.length <= maxLength) {
        // A name that is known beforehand makes for a faster object.
        return key === 'delta' ? { ...event, delta: said } : { ...event, content: said };
      }
    }
    if (text.length > maxLength) return `(a frame of ${text.length} characters)`;
    let event: unknown;
    try {
      event = JSON.parse(text);
    } catch {
      return text.slice(0, 100);
    }
    if (text.length < MAX_FRAME_LENGTH) frame = frameOf(text, event) ?? frame;
    return event;
  };
}

/** A longer one is no delta worth remembering. */
const MAX_FRAME_LENGTH = 2_000;

function frameOf(text: string, event: unknown): Frame | undefined {
  if (typeof event !== 'object' || event === null) return undefined;
  for (const key of TEXT_KEYS) {
    const said = (event as Loose)[key];
    const start = text.indexOf(`"${key}":"`);
    if (typeof said !== 'string' || start < 0 || NOT_PLAIN.test(said)) continue;
    const at = start + key.length + 4;
    if (!text.startsWith(`${said}"`, at)) continue;
    const before = text.slice(0, at);
    const after = text.slice(at + said.length);
    // Whether it is that text, and no other of the same name deeper inside, only a parser knows.
    const probe = JSON.parse(`${before}?${after}`) as Loose;
    if (probe[key] === '?') return { before, after, key, event: event as Loose };
  }
  return undefined;
}
