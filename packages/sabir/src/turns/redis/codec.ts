import type { Chunk, TextDeltaChunk } from '../../chunks.ts';
import { isPlainText } from '../../downgrade.ts';

/**
 * Deltas of one part, one after the other: its id, their words together, and how long each is, as a
 * character each. Nearly all of a turn is text, and one long string is read and written several
 * times faster than many short ones.
 */
type TextRun = [id: string, text: string, lengths: string];

/** The length 0 is this character: those below are longer in JSON. */
const ZERO = '#'.charCodeAt(0);
/** A longer one is stored as it is: its length would be half of a character. */
const MOST_LENGTH = 0xd7ff - ZERO;

/** What one append holds, as it is stored. Every chunk comes back as it was, with its own number. */
export function encodeBatch(chunks: readonly Chunk[]): string {
  const items: (Chunk | TextRun)[] = [];
  for (let at = 0; at < chunks.length; ) {
    const first = chunks[at] as Chunk;
    if (!isShortText(first)) {
      items.push(first);
      at++;
      continue;
    }
    const { id } = first;
    const deltas: string[] = [];
    const lengths: string[] = [];
    for (let chunk: Chunk | undefined = first; chunk; chunk = chunks[++at]) {
      if (!isShortText(chunk) || chunk.id !== id) break;
      deltas.push(chunk.delta);
      lengths.push(String.fromCharCode(chunk.delta.length + ZERO));
    }
    items.push([id, deltas.join(''), lengths.join('')]);
  }
  return JSON.stringify(items);
}

function isShortText(chunk: Chunk): chunk is TextDeltaChunk {
  return isPlainText(chunk) && chunk.delta.length <= MOST_LENGTH;
}

export function decodeBatch(stored: string): Chunk[] {
  const chunks: Chunk[] = [];
  for (const item of JSON.parse(stored) as (Chunk | TextRun)[]) {
    if (!Array.isArray(item)) {
      chunks.push(item);
      continue;
    }
    const [id, text, lengths] = item;
    let from = 0;
    for (let at = 0; at < lengths.length; at++) {
      const to = from + lengths.charCodeAt(at) - ZERO;
      chunks.push({ type: 'text-delta', id, delta: text.slice(from, to) });
      from = to;
    }
  }
  return chunks;
}
