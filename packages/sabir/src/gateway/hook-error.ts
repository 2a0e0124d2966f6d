import { HOOK_TIMEOUT, SabirError } from '../errors.ts';
import { withoutContent } from '../turns/without-content.ts';
import { within } from '../within.ts';
import type { GatewayMetrics } from './metrics.ts';

/** An error of a hook that has seen no message: all of it may be logged. */
class HookError extends Error {}

/** Runs a hook of the application, by its name. */
export type RunHook = <T>(name: string, run: () => T | Promise<T>) => Promise<T>;

/** A hook that takes longer than `hookMs` is not waited for: its request is answered with a 503. */
export function createRunHook(hookMs: number, metrics: GatewayMetrics): RunHook {
  return async (hook, run) => {
    try {
      return await within(hookMs, Promise.resolve(run()), () => {
        metrics.hookTimeouts.add({ hook });
        throw new SabirError(HOOK_TIMEOUT, `${hook} did not answer within ${hookMs} ms.`);
      });
    } catch (cause) {
      if (cause instanceof SabirError) throw cause;
      throw new HookError('A hook failed.', { cause });
    }
  };
}

/**
 * What may be logged of an error that a request ran into. Our own say nothing of messages; those of
 * a history or a log may quote them.
 */
export function loggable(error: unknown): unknown {
  if (error instanceof HookError) return error.cause;
  return error instanceof SabirError ? error : withoutContent(error);
}
