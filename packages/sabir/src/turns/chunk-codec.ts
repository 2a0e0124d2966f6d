import type { Chunk, TextDeltaChunk } from '../core/chunks.ts';
import { isPlainText } from '../core/downgrade.ts';
import { chunkBytes, OVERHEAD_BYTES } from './chunk-bytes.ts';
import type { LoggedChunk } from './log.ts';

/**
 * Deltas of one part, one after the other: its id, their words together, and how long each is, as a
 * character each. Nearly all of a turn is text, and one long string is read and written several
 * times faster than many short ones.
 */
export type TextRun = [id: string, text: string, lengths: string];

/** What an append is stored as is a list of these. */
export type Item = Chunk | TextRun;

/** The length 0 is this character: those below are longer in JSON. */
const ZERO = '#'.charCodeAt(0);
/** A longer one is stored as it is: its length would be half of a character. */
const MOST_LENGTH = 0xd7ff - ZERO;
/** So many deltas are one run at the most. */
const lengths = new Uint16Array(4_096);

/** What one append holds, as it is stored. Every chunk comes back as it was, with its own number. */
export function encodeBatch(chunks: readonly Chunk[]): { stored: string; bytes: number } {
  const items: Item[] = [];
  let bytes = 0;
  for (let at = 0; at < chunks.length; ) {
    const chunk = chunks[at] as Chunk;
    if (isShortText(chunk)) {
      const run = runAt(chunks, at, chunk.id);
      at += run[2].length;
      bytes += run[1].length + run[2].length * OVERHEAD_BYTES;
      items.push(run);
    } else {
      at++;
      bytes += chunkBytes(chunk);
      items.push(chunk);
    }
  }
  return { stored: JSON.stringify(items), bytes };
}

function runAt(chunks: readonly Chunk[], from: number, id: string): TextRun {
  let text = '';
  let count = 0;
  const most = Math.min(chunks.length - from, lengths.length);
  while (count < most) {
    const chunk = chunks[from + count] as Chunk;
    if (!isShortText(chunk) || chunk.id !== id) break;
    text += chunk.delta;
    lengths[count++] = chunk.delta.length + ZERO;
  }
  // Not spread: that goes through an iterator.
  const codes = lengths.subarray(0, count);
  return [id, text, Reflect.apply(String.fromCharCode, undefined, codes)];
}

function isShortText(chunk: Chunk): chunk is TextDeltaChunk {
  return isPlainText(chunk) && chunk.delta.length <= MOST_LENGTH;
}

/** Throws at what no append was stored as. */
export function parseBatch(stored: string): Item[] {
  const items = JSON.parse(stored) as Item[];
  for (const item of items) {
    const isRun = isTextRun(item) && typeof item[1] === 'string' && typeof item[2] === 'string';
    if (!isRun && typeof (item as Chunk).type !== 'string') throw new TypeError('not an append');
  }
  return items;
}

export function isTextRun(item: Item): item is TextRun {
  return Array.isArray(item);
}

/** How many chunks it is. */
export function sizeOf(item: Item): number {
  return isTextRun(item) ? item[2].length : 1;
}

/** Adds the chunks of a run whose first has the number `seq` to others, but for the first few. */
export function addNumbered(to: LoggedChunk[], run: TextRun, seq: number, skipped: number): void {
  // Not as a list: there are many, and each would go through an iterator.
  const { 0: id, 1: text, 2: lengths } = run;
  let from = 0;
  for (let at = 0; at < lengths.length; at++) {
    const until = from + lengths.charCodeAt(at) - ZERO;
    if (at >= skipped) {
      to.push({ seq: seq + at, chunk: { type: 'text-delta', id, delta: text.slice(from, until) } });
    }
    from = until;
  }
}

export function decodeBatch(stored: string): Chunk[] {
  const chunks: LoggedChunk[] = [];
  for (const item of parseBatch(stored)) {
    if (isTextRun(item)) addNumbered(chunks, item, 0, 0);
    else chunks.push({ seq: 0, chunk: item });
  }
  return chunks.map(({ chunk }) => chunk);
}
