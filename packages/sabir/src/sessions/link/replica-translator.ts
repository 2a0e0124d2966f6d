import { shapeOf, targetOf } from '../../core/chunk-shapes.ts';
import type { Chunk } from '../../core/chunks.ts';
import { SabirError, TRANSLATOR_FAILED } from '../../core/errors.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { Translator } from '../../core/translator.ts';
import { createChunkTranslator } from '../../sources/ai-sdk/translate.ts';

/** They end a turn for other translators. In a session's log, closings of its own may follow up to the `finish`. */
const ENDS: ReadonlySet<unknown> = new Set(['abort', 'error', 'finish']);

/**
 * Passes the chunks of a session's log on as they are, so that the replica has the same numbers. A second translator sees
 * them too: it knows what is open, for a turn that the session server cannot end any more, and it has to make of each chunk
 * that same chunk. Throws where it does not: a session server of ours logs nothing else.
 */
export function createReplicaTranslator(
  messageId: string,
  written: readonly Chunk[],
): Translator<unknown> {
  const watching = createChunkTranslator({ messageId });
  let isEnded = false;

  function push(event: unknown): Chunk[] {
    if (isEnded) return [];
    const { type } = Object(event) as Loose;
    if (ENDS.has(type)) {
      if (!isShaped(event as Loose)) throw new SabirError(TRANSLATOR_FAILED);
      isEnded = type === 'finish';
      return [event as Chunk];
    }
    const chunks = watching.push(event as Chunk);
    if (chunks.length !== 1) throw new SabirError(TRANSLATOR_FAILED);
    return chunks;
  }

  for (const chunk of written) push(chunk);
  return {
    stats: watching.stats,
    get ended() {
      return isEnded;
    },
    push,
    end(outcome) {
      if (isEnded) return [];
      isEnded = true;
      return watching.end(outcome);
    },
  };
}

function isShaped(chunk: Loose): boolean {
  const { fields } = shapeOf(String(chunk.type)) ?? {};
  return (
    [...(fields ?? [])].every(([name, { is, required }]) =>
      chunk[name] === undefined ? !required : is(chunk[name], targetOf(7)),
    ) &&
    (chunk.messageMetadata === undefined || isObject(chunk.messageMetadata))
  );
}
