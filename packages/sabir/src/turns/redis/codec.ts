import type { Chunk } from '../../chunks.ts';
import { isPlainText } from '../../downgrade.ts';

/** A part's id, then its deltas: nearly all of a turn is text, and each says the same but its words. */
type TextRun = [id: string, ...deltas: string[]];

/** What one append holds, as it is stored. Every chunk comes back as it was, with its own number. */
export function encodeBatch(chunks: readonly Chunk[]): string {
  const items: (Chunk | TextRun)[] = [];
  let run: TextRun | undefined;
  for (const chunk of chunks) {
    if (isPlainText(chunk)) {
      if (run?.[0] === chunk.id) run.push(chunk.delta);
      else {
        run = [chunk.id, chunk.delta];
        items.push(run);
      }
    } else {
      run = undefined;
      items.push(chunk);
    }
  }
  return JSON.stringify(items);
}

export function decodeBatch(stored: string): Chunk[] {
  const chunks: Chunk[] = [];
  for (const item of JSON.parse(stored) as (Chunk | TextRun)[]) {
    if (!Array.isArray(item)) {
      chunks.push(item);
      continue;
    }
    const [id] = item;
    for (let at = 1; at < item.length; at++) {
      chunks.push({ type: 'text-delta', id, delta: item[at] as string });
    }
  }
  return chunks;
}
