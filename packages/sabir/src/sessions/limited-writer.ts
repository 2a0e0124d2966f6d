import type { Chunk } from '../core/chunks.ts';
import { SabirError, SESSION_FULL, TURN_TOO_LARGE } from '../core/errors.ts';
import { areClosings, chunkBytes } from '../turns/chunk-bytes.ts';
import type { TurnWriter } from '../turns/log.ts';
import type { SessionLimits } from './options.ts';

type LimitOptions = {
  limits: Pick<SessionLimits, 'turnBytes' | 'turnQuestions' | 'sessionBytes'>;
  /** What the session had stored when the turn began. */
  storedBytes: number;
  onLimit(limit: keyof SessionLimits): void;
};

/** Holds a turn to the limits of its session, beside those of the log. What closes the turn is always taken. */
export function limitWriter(
  writer: TurnWriter,
  { limits, storedBytes, onLimit }: LimitOptions,
): TurnWriter {
  const questions = new Set<unknown>();
  let bytes = 0;

  function exceededBy(chunks: Chunk[]): 'turnBytes' | 'turnQuestions' | 'sessionBytes' | undefined {
    for (const chunk of chunks) {
      bytes += chunkBytes(chunk);
      if (chunk.type === 'data-question') questions.add(chunk.id);
    }
    if (questions.size > limits.turnQuestions) return 'turnQuestions';
    if (bytes > limits.turnBytes) return 'turnBytes';
    return storedBytes + bytes > limits.sessionBytes ? 'sessionBytes' : undefined;
  }

  return {
    turnId: writer.turnId,
    renewMs: writer.renewMs,
    get isHeld() {
      return writer.isHeld;
    },
    async append(chunks, mark) {
      const limit = exceededBy(chunks);
      if (limit && !areClosings(chunks)) {
        onLimit(limit);
        throw new SabirError(limit === 'sessionBytes' ? SESSION_FULL : TURN_TOO_LARGE);
      }
      return writer.append(chunks, mark);
    },
    renew: () => writer.renew(),
    commands: () => writer.commands(),
    release: () => writer.release(),
    close: (outcome, store) => writer.close(outcome, store),
  };
}
