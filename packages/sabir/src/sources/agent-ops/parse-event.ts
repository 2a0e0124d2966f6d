import type { Loose } from '../../core/loose.ts';

/** What may differ between two deltas of a turn, in either dialect. */
const TEXT_KEYS = ['delta', 'content'] as const;
type TextKey = (typeof TEXT_KEYS)[number];
/**
 * A delta's bytes around its text, and what it says beside it. Where it ends with its place in the
 * turn, that number stands behind `after`, with a brace behind it.
 */
type Frame = {
  before: Uint8Array;
  after: Uint8Array;
  hasSeq: boolean;
  key: TextKey;
  event: Loose;
};

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });

/**
 * Frames → events, for one socket. Nearly all are deltas of one turn that differ in nothing but
 * their text, and the `seq` at their end if they have one: once one was parsed, the next that is
 * like it is not parsed again, only these are taken out. That is a third of what a delta costs on its
 * whole way. The parser throws for bytes that are no UTF-8.
 */
export function createEventParser(maxLength: number): (data: string | Uint8Array) => unknown {
  let frame: Frame | undefined;

  return (data) => {
    if (data.length > maxLength) {
      return `(a frame of ${data.length} ${typeof data === 'string' ? 'characters' : 'bytes'})`;
    }
    if (frame && typeof data !== 'string') {
      const known = readLike(data, frame);
      if (known) return known;
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

/** The event of a frame that is like another; nothing if it is not, or has to be read with care. */
function readLike(data: Uint8Array, frame: Frame): Loose | undefined {
  const { event, key, hasSeq } = frame;
  if (!hasSeq) {
    const said = textWithin(data, data.length, frame);
    if (said === undefined) return undefined;
    // A name that is known beforehand makes for a faster object.
    return key === 'delta' ? { ...event, delta: said } : { ...event, content: said };
  }
  const end = data.length - 1;
  if (data[end] !== CLOSING_BRACE) return undefined;
  let start = end;
  let seq = 0;
  for (let unit = 1; isDigit(data[start - 1]); unit *= 10) {
    seq += ((data[--start] as number) - ZERO) * unit;
  }
  const digits = end - start;
  // A number that begins with a zero is no JSON, unless it is nothing else.
  if (digits === 0 || digits > MAX_DIGITS || (digits > 1 && data[start] === ZERO)) return undefined;
  const said = textWithin(data, start, frame);
  if (said === undefined) return undefined;
  return key === 'delta' ? { ...event, delta: said, seq } : { ...event, content: said, seq };
}

const ZERO = 0x30;
const CLOSING_BRACE = 0x7d;
/** As many as a number holds without loss. */
const MAX_DIGITS = 15;

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39;
}

function textWithin(
  data: Uint8Array,
  length: number,
  { before, after }: Frame,
): string | undefined {
  const start = before.length;
  const end = length - after.length;
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

/** Behind a comma and at the very end a number is that of the event itself, and of nothing in it. */
const SEQ_AT_THE_END = /^(.*,"seq":)\d+\}$/s;

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
    const numbered = SEQ_AT_THE_END.exec(after)?.[1];
    return {
      before: encoder.encode(before),
      after: encoder.encode(numbered ?? after),
      hasSeq: numbered !== undefined,
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
