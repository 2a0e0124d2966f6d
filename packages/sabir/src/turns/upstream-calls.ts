import { forget } from '../core/forget.ts';
import type { Logger, Translator } from '../core/translator.ts';
import { withoutContent } from '../core/without-content.ts';
import type { Answer, Steer } from './log.ts';
import type { UpstreamTurn } from './upstream.ts';

/**
 * Calls to an agent's code: what it throws or rejects with is logged and goes
 * no further, so that its turn still ends. Until `take`, every call does nothing.
 */
export function createUpstreamCalls(logger: Logger | undefined, ids: Record<string, unknown>) {
  let upstream: UpstreamTurn | undefined;

  function call(what: string, run: () => unknown): void {
    const onError = (error: unknown) =>
      logger?.error?.(`a call to the agent failed: ${what}`, {
        ...ids,
        error: withoutContent(error),
      });
    try {
      const result = run();
      if (result instanceof Promise) result.catch(onError);
    } catch (error) {
      onError(error);
    }
  }

  return {
    /** Throws for what is no turn. */
    take(given: UpstreamTurn): Translator<unknown> {
      if (!isUpstreamTurn(given)) {
        // A promise, perhaps, which may reject.
        void forget(() => given);
        throw new TypeError('The agent gave no turn for its prompt.');
      }
      upstream = given;
      return given.translator;
    },
    get isTaken(): boolean {
      return upstream !== undefined;
    },
    /** May throw: see `onEvent`. */
    get position(): number | undefined {
      return upstream?.position;
    },
    get isQueued(): boolean {
      try {
        return upstream?.isQueued === true;
      } catch {
        return false;
      }
    },
    get queuePosition(): number | undefined {
      try {
        return upstream?.queuePosition;
      } catch {
        return undefined;
      }
    },
    get isReplica(): boolean {
      return upstream?.isReplica === true;
    },
    written: (position: number) => call('written', () => upstream?.written?.(position)),
    stop: (reason: unknown) => call('stop', () => upstream?.stop(reason)),
    answer: (answer: Answer) => call('answer', () => upstream?.answer(answer)),
    get canSteer(): boolean {
      return upstream?.steer !== undefined;
    },
    steer: (message: Steer) => call('steer', () => upstream?.steer?.(message)),
    expire: (questionId: string) => call('expire', () => upstream?.expire?.(questionId)),
    release: () => call('release', () => upstream?.release()),
  };
}

function isUpstreamTurn(value: unknown): value is UpstreamTurn {
  const { translator, stop, release } = Object(value) as Partial<UpstreamTurn>;
  const { push, end } = Object(translator) as Partial<Translator<unknown>>;
  return [push, end, stop, release].every((method) => typeof method === 'function');
}
