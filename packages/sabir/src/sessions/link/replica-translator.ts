import type { Chunk } from '../../core/chunks.ts';
import type { Translator } from '../../core/translator.ts';
import { createChunkTranslator } from '../../sources/ai-sdk/translate.ts';

/**
 * Passes the chunks of a session's log on as they are, so that the replica has the same numbers. A second translator sees
 * them too: it knows what is open, for a turn that the session server cannot end any more.
 */
export function createReplicaTranslator(
  messageId: string,
  written: readonly Chunk[],
): Translator<unknown> {
  const watching = createChunkTranslator({ messageId });
  let isEnded = false;

  function push(chunk: Chunk): Chunk[] {
    if (isEnded) return [];
    // An `error` is followed by the session's own `finish`.
    if (chunk.type !== 'error' && chunk.type !== 'finish') watching.push(chunk);
    isEnded = chunk.type === 'finish';
    return [chunk];
  }

  for (const chunk of written) push(chunk);
  return {
    stats: watching.stats,
    get ended() {
      return isEnded;
    },
    push: (event) => push(event as Chunk),
    end(outcome) {
      if (isEnded) return [];
      isEnded = true;
      return watching.end(outcome);
    },
  };
}
