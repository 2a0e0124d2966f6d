/** What can be wrong with bytes: flipped, cut, doubled, put in, and split anywhere. */
import { toJson } from './mutate-json.ts';
import type { Random } from './random.ts';

const ODD_BYTES: readonly Uint8Array[] = [
  ...['\n', '\r', '\r\n\r\n', ':', 'data', 'data:', 'id: \0', 'event:', '\ufeff', '"', '{', '}'],
  ...['[', ']', '\\', '\\u', '\\ud800', '1e999', '-', 'null', '{"__proto__":{"a":1}}', ','],
].map((text) => new TextEncoder().encode(text));
/** No UTF-8: half a character, one too long, a surrogate, a byte that never comes. */
const NO_UTF8: readonly Uint8Array[] = [
  ...[[0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x92], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xff, 0xfe]],
].map((bytes) => Uint8Array.from(bytes));

function insert(bytes: Uint8Array, at: number, more: Uint8Array): Uint8Array {
  const all = new Uint8Array(bytes.length + more.length);
  all.set(bytes.subarray(0, at));
  all.set(more, at);
  all.set(bytes.subarray(at), at + more.length);
  return all;
}

function mutateOnce(bytes: Uint8Array, random: Random): Uint8Array {
  const at = random.below(bytes.length + 1);
  const until = Math.min(bytes.length, at + 1 + random.below(8));
  switch (random.below(8)) {
    case 0:
    case 1: {
      const flipped = bytes.slice();
      if (at < flipped.length) flipped[at] = (flipped[at] as number) ^ (1 << random.below(8));
      return flipped;
    }
    case 2:
      return insert(bytes.subarray(0, at), at, bytes.subarray(until));
    case 3:
      return insert(bytes, at, bytes.subarray(at, until));
    case 4:
      return insert(bytes, at, random.pick(ODD_BYTES));
    case 5:
      return insert(bytes, at, random.pick(NO_UTF8));
    case 6:
      return insert(bytes, at, random.bytes(1 + random.below(6)));
    default:
      return random.chance(0.3) ? bytes.subarray(0, at) : bytes.slice();
  }
}

/** Gives bytes that are not the given ones, which stay as they are. */
export function mutateBytes(bytes: Uint8Array, random: Random, times = 1): Uint8Array {
  let mutated = bytes;
  for (let time = 0; time < times; time++) mutated = mutateOnce(mutated, random);
  return mutated;
}

/** The same bytes in pieces of any length, also in the middle of a character, also empty ones. */
export function splitBytes(bytes: Uint8Array, random: Random, averageLength = 40): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = random.chance(0.05) ? 0 : 1 + random.below(2 * averageLength);
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

const encoder = new TextEncoder();

/**
 * A value as somebody may have written it who writes JSON badly: now and then with a number in it
 * that JavaScript has no number for, or with bytes that are wrong.
 */
export function toFrameBytes(
  value: unknown,
  random: Random,
): { bytes: Uint8Array; isHurt: boolean } {
  const text = toJson(value);
  if (!random.chance(0.12)) return { bytes: encoder.encode(text), isHurt: false };
  if (random.chance(0.2)) {
    return { bytes: encoder.encode(text.replace(/:\d+/, ':1e999')), isHurt: true };
  }
  return { bytes: mutateBytes(encoder.encode(text), random, 1 + random.below(3)), isHurt: true };
}
