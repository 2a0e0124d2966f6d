import type { Chunk } from '../../core/chunks.ts';
import { QUESTION_EXPIRED, SabirError } from '../../core/errors.ts';
import { isObject, type Loose } from '../../core/loose.ts';

type End = { status: 'answered'; answer: unknown } | { status: 'expired' };

/**
 * The questions of one turn: who waits for which, how each ended, and what the stream has shown of
 * it. The first end of a question is its only one.
 */
export function createQuestions(show: (chunk: Chunk) => void) {
  const ends = new Map<string, End>();
  const waiting = new Map<string, PromiseWithResolvers<unknown>>();
  /** What viewers see of a question that is open for them. */
  const shown = new Map<string, Loose>();
  let isOver = false;
  let reason: unknown;

  /** Viewers learn how it ended, unless the source has told them itself. */
  function showEnd(id: string): void {
    const data = shown.get(id);
    const end = ends.get(id);
    if (!data || !end || isOver) return;
    shown.delete(id);
    show({ type: 'data-question', id, data: { ...data, ...end } });
  }

  function settle(id: string, end: End): void {
    if (isOver || ends.has(id)) return;
    ends.set(id, end);
    showEnd(id);
    const waiter = waiting.get(id);
    waiting.delete(id);
    if (end.status === 'answered') waiter?.resolve(end.answer);
    else waiter?.reject(new SabirError(QUESTION_EXPIRED));
  }

  return {
    /** Looks at a chunk that has just been shown. */
    see(chunk: unknown): void {
      try {
        if (!isObject(chunk) || chunk.type !== 'data-question') return;
        const { id, data } = chunk;
        if (typeof id !== 'string') return;
        const isOpen = isObject(data) && (data.status === undefined || data.status === 'open');
        if (isOpen) shown.set(id, data);
        else shown.delete(id);
        showEnd(id);
      } catch {
        // A chunk that cannot be read asks nothing.
      }
    },
    wait(id: string): Promise<unknown> {
      const end = ends.get(id);
      if (end?.status === 'answered') return Promise.resolve(end.answer);
      const waiter = waiting.get(id) ?? Promise.withResolvers<unknown>();
      // A handler may ask and look at the answer later, or never: that must not end the process.
      waiter.promise.catch(ignore);
      if (end) waiter.reject(new SabirError(QUESTION_EXPIRED));
      else if (isOver) waiter.reject(reason);
      else waiting.set(id, waiter);
      return waiter.promise;
    },
    answer: (id: string, answer: unknown) => settle(id, { status: 'answered', answer }),
    expire: (id: string) => settle(id, { status: 'expired' }),
    /** Nobody will answer any more. */
    close(why: unknown): void {
      isOver = true;
      reason = why;
      for (const waiter of waiting.values()) waiter.reject(why);
      waiting.clear();
      shown.clear();
    },
  };
}

function ignore(): void {
  // Whoever waits for it is told.
}
