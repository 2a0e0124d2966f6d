import { shapeOf, targetOf } from '../../core/chunk-shapes.ts';
import type { Chunk } from '../../core/chunks.ts';
import { TRANSLATOR_FAILED } from '../../core/errors.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import type { Translator } from '../../core/translator.ts';
import { createChunkTranslator } from '../../sources/ai-sdk/translate.ts';
import { outcomeOf } from '../../turns/outcome-of.ts';

/** They end a turn for other translators. In a session's log, what closes its parts comes before `error` and `finish`. */
const ENDS: ReadonlySet<unknown> = new Set(['abort', 'error', 'finish']);
/** What tells the end itself, and closes no part. */
const OUTCOME: ReadonlySet<string> = new Set(['message-metadata', 'abort', 'error', 'finish']);

const { code, userMessage: message } = TRANSLATOR_FAILED;
const FAILED: TurnOutcome = { status: 'failed', code, message };

/**
 * Passes the chunks of a session's log on as they are, so that the replica has the same numbers. A second translator sees
 * them too: it knows what is open, for a turn that the session server cannot end any more, and makes of each chunk that same
 * chunk. Where it does not, no session of ours has logged it, and the turn ends as failed.
 */
export function createReplicaTranslator(
  messageId: string,
  written: readonly Chunk[],
): Translator<unknown> {
  const watching = createChunkTranslator({ messageId });
  let isBegun = false;
  /** Nothing but the `finish` may follow. */
  let isClosed = false;
  let isEnded = false;

  /** Nothing, unless the session has left a part open. */
  function closeParts(outcome: TurnOutcome): Chunk[] {
    if (isClosed) return [];
    isClosed = true;
    return watching.end(outcome).filter(({ type }) => !OUTCOME.has(type));
  }

  function end(outcome: TurnOutcome): Chunk[] {
    if (isEnded) return [];
    isEnded = true;
    return isClosed ? [{ type: 'finish', finishReason: 'error' }] : watching.end(outcome);
  }

  function pushEnd(chunk: Chunk): Chunk[] {
    if (chunk.type === 'finish') {
      isEnded = true;
      return [...closeParts(outcomeOf([chunk])), chunk];
    }
    if (isClosed || !isBegun) return end(FAILED);
    return chunk.type === 'error' ? [...closeParts({ status: 'failed' }), chunk] : [chunk];
  }

  function push(event: unknown): Chunk[] {
    if (isEnded) return [];
    const { type } = Object(event) as Loose;
    if (ENDS.has(type)) return isShaped(event as Loose) ? pushEnd(event as Chunk) : end(FAILED);
    isBegun = true;
    const chunks = isClosed ? [] : watching.push(event as Chunk);
    return chunks.length === 1 ? chunks : [...chunks, ...end(FAILED)];
  }

  for (const chunk of written) push(chunk);
  return {
    stats: watching.stats,
    get ended() {
      return isEnded;
    },
    push,
    end: (outcome = { status: 'lost' }) => end(outcome),
  };
}

function isShaped(chunk: Loose): boolean {
  const { type, messageMetadata } = chunk;
  const fields = [...(shapeOf(String(type))?.fields ?? [])];
  return (
    fields.every(([name, { is, required }]) =>
      chunk[name] === undefined ? !required : is(chunk[name], targetOf(7)),
    ) &&
    (messageMetadata === undefined || isObject(messageMetadata))
  );
}
