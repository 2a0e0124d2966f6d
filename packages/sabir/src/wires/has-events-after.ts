import type { Chunk } from '../core/chunks.ts';
import type { LoggedChunk } from '../turns/log.ts';

/** Whether a turn that has ended has events for a client past its cursor: on some wires nothing follows an error. */
export async function hasEventsAfter(
  after: number,
  batches: AsyncIterable<LoggedChunk[]>,
  toEvents: { (chunk: Chunk): unknown[]; end(): unknown[] },
): Promise<boolean> {
  for await (const batch of batches) {
    for (const { seq, chunk } of batch) {
      if (toEvents(chunk).length > 0 && seq > after) return true;
    }
  }
  return toEvents.end().length > 0;
}
