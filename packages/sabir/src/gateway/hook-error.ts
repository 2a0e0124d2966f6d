import { HOOK_TIMEOUT, SabirError } from '../core/errors.ts';
import { within } from '../core/within.ts';
import { withoutContent, withText } from '../core/without-content.ts';
import type { GatewayMetrics } from './metrics.ts';

/** An error of a hook, which has seen no message. */
class HookError extends Error {
  readonly hook: string;

  constructor(hook: string, cause: unknown) {
    super('A hook failed.', { cause });
    this.hook = hook;
  }
}

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
      throw new HookError(hook, cause);
    }
  };
}

/**
 * What may be logged of an error that a request ran into: of a hook its text too, because it has seen no
 * message; of `authenticate` not, because it has seen a token.
 */
export function loggable(error: unknown): unknown {
  if (!(error instanceof HookError)) return error;
  const { hook, cause } = error;
  return { hook, ...(hook === 'authenticate' ? withoutContent(cause) : withText(cause)) };
}
