import type { Chunk } from '../core/chunks.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { createChunkTranslator } from '../sources/ai-sdk/translate.ts';

/**
 * What ends a turn of which only the stored chunks are known: whoever wrote them is gone, or wrote
 * more than was kept. Nothing if they have ended it already.
 */
export function closingsOf(
  chunks: Iterable<Chunk>,
  messageId: string,
  outcome: TurnOutcome,
): Chunk[] {
  const translator = createChunkTranslator({ messageId });
  let hasFailed = false;
  for (const chunk of chunks) {
    // What a client is told then follows in the log, or was lost with the rest.
    if (chunk.type === 'abort') continue;
    if (chunk.type === 'finish') return [];
    if (chunk.type === 'error') hasFailed = true;
    else translator.push(chunk);
  }
  // A client reads nothing behind an error but the end.
  return hasFailed ? [{ type: 'finish', finishReason: 'error' }] : translator.end(outcome);
}
