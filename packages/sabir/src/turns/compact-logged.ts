import type { Chunk } from '../core/chunks.ts';
import { compactChunks } from '../core/compact.ts';
import type { LoggedChunk } from './log.ts';

/** Runs of deltas as one, with the number of the last chunk they cover. */
export function compactLogged(entries: readonly LoggedChunk[]): LoggedChunk[] {
  let next = 0;
  return compactChunks(entries.map(({ chunk }) => chunk)).map((chunk) => {
    let seq = entries[next]?.seq ?? 0;
    const isMerged = entries[next]?.chunk !== chunk;
    next++;
    if (!isMerged) return { seq, chunk };
    for (let entry = entries[next]; entry && isSameRun(entry.chunk, chunk); entry = entries[next]) {
      seq = entry.seq;
      next++;
    }
    return { seq, chunk };
  });
}

function isSameRun(one: Chunk, other: Chunk): boolean {
  if (one.type !== other.type) return false;
  if (one.type === 'tool-input-delta') {
    return (
      one.toolCallId === (other as typeof one).toolCallId && typeof one.inputTextDelta === 'string'
    );
  }
  if (one.type !== 'text-delta' && one.type !== 'reasoning-delta') return false;
  return one.id === (other as typeof one).id && typeof one.delta === 'string';
}
