/** What may differ between two deltas of a turn, in either dialect. */
const TEXT_KEYS = ['delta', 'content'] as const;
type TextKey = (typeof TEXT_KEYS)[number];
type Loose = Record<string, unknown>;

/** A delta's bytes around its text, and what it says beside it. */
type Frame = { before: Uint8Array; after: Uint8Array; key: TextKey; event: Loose };

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Frames → events, for one socket. Nearly all are deltas of one turn that differ in nothing but
 * their text: once one was parsed, the next that begins and ends like it is not parsed again, only
 * its text is taken out. That is a third of what a delta costs on its whole way.
 */
export function createEventParser(maxLength: number): (data: string | Uint8Array) => unknown {
  let frame: Frame | undefined;

  return (data) => {
    if (data.length > maxLength) {
      return `(a frame of ${data.length} ${typeof data === 'string' ? 'characters' : 'bytes'})`;
    }
    if (frame && typeof data !== 'string') {
      const said = textWithin(data, frame);
      // A name that is known beforehand makes for a faster object.
      if (said !== undefined) {
        const { key, event } = frame;
        return key === 'delta' ? { ...event, delta: said } : { ...event, content: said };
      }
    }
    const text = typeof data === 'string' ? data : decoder.decode(data);
    let event: unknown;
    try {
      event = JSON.parse(text);
    } catch {
      return text.slice(0, 100);
    }
    if (typeof data !== 'string' && data.length < MAX_FRAME_LENGTH) {
      frame = frameOf(text, event) ?? frame;
    }
    return event;
  };
}

/** A longer one is no delta worth remembering. */
const MAX_FRAME_LENGTH = 2_000;
/** A longer text is better decoded as a whole. */
const MAX_SHORT_LENGTH = 12;

/** What a frame says that is like another; nothing if it is not, or has to be read with care. */
function textWithin(data: Uint8Array, { before, after }: Frame): string | undefined {
  const start = before.length;
  const end = data.length - after.length;
  if (end < start) return undefined;
  for (let i = 0; i < start; i++) if (data[i] !== before[i]) return undefined;
  for (let i = 0; i < after.length; i++) if (data[end + i] !== after[i]) return undefined;
  const isShort = end - start <= MAX_SHORT_LENGTH;
  let said = '';
  for (let i = start; i < end; i++) {
    const byte = data[i] as number;
    if (!isPlain(byte)) return undefined;
    if (isShort) said += String.fromCharCode(byte);
  }
  return isShort ? said : decoder.decode(data.subarray(start, end));
}

/**
 * A quote would end the text, a backslash has to be read, a control character is not JSON, and
 * whatever is not ASCII may be no UTF-8.
 */
function isPlain(byte: number): boolean {
  return byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c;
}

function frameOf(text: string, event: unknown): Frame | undefined {
  const { type } = (event ?? {}) as Loose;
  if (typeof type !== 'string') return undefined;
  for (const key of TEXT_KEYS) {
    const said = (event as Loose)[key];
    const start = text.indexOf(`"${key}":"`);
    if (typeof said !== 'string' || start < 0) continue;
    const at = start + key.length + 4;
    // What needs escapes might be found in another place, where it has none.
    if (JSON.stringify(said) !== `"${said}"` || !text.startsWith(`${said}"`, at)) continue;
    const before = text.slice(0, at);
    const after = text.slice(at + said.length);
    // Whether it is that text, and no other of the same name deeper inside, only a parser knows.
    const probe = JSON.parse(`${before}${said}?${after}`) as Loose;
    if (probe[key] !== `${said}?`) continue;
    return {
      before: encoder.encode(before),
      after: encoder.encode(after),
      key,
      event: { ...(event as Loose), type: toPropertyName(type) },
    };
  }
  return undefined;
}

/** The same string, as V8 keeps the names of properties: looked up and compared by its address. */
function toPropertyName(type: string): string {
  return Object.keys({ [type]: 0 })[0] as string;
}
