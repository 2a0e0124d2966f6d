import type { Chunk } from '../core/chunks.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import { NO_LONGER_NEEDED } from '../core/no-longer-needed.ts';
import type { TurnLog } from './log.ts';

/**
 * What is stored of a turn that is written here: all there is at the moment, since nothing is written
 * meanwhile. `lastSeq` is how much is known to be there.
 */
export async function readWritten(log: TurnLog, turnId: string, lastSeq: number): Promise<Chunk[]> {
  const stored = await storedOf(log, turnId, lastSeq);
  if (stored === 0) return [];
  const reading = new AbortController();
  const chunks: Chunk[] = [];
  for await (const batch of log.read(turnId, 0, reading.signal)) {
    for (const { chunk } of batch) chunks.push(chunk);
    if (chunks.length >= stored) break;
  }
  reading.abort(NO_LONGER_NEEDED);
  return chunks;
}

/**
 * Whoever reads a live turn that has nothing waits until it has. A log may have stored what it did not
 * confirm, so it is asked if it can be; one that cannot answer just now has at least what it confirmed,
 * and whoever reads that waits for it.
 */
async function storedOf(log: TurnLog, turnId: string, lastSeq: number): Promise<number> {
  try {
    return (await log.get(turnId))?.lastSeq ?? 0;
  } catch (error) {
    if (lastSeq === 0) throw error;
    return lastSeq;
  }
}

/** The message that they make; with an id of its own if they are none. */
export function toMessage(chunks: Chunk[], messageId: string): UIMessage {
  return foldChunks(chunks.length > 0 ? chunks : [{ type: 'start', messageId }]);
}
