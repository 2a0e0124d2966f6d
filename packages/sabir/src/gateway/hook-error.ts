import { SabirError } from '../errors.ts';
import { withoutContent } from '../turns/without-content.ts';

/** An error of a hook that has seen no message: all of it may be logged. */
class HookError extends Error {}

export async function asHook<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (cause) {
    if (cause instanceof SabirError) throw cause;
    throw new HookError('A hook failed.', { cause });
  }
}

/**
 * What may be logged of an error that a request ran into. Our own say nothing of messages; those of
 * a history or a log may quote them.
 */
export function loggable(error: unknown): unknown {
  if (error instanceof HookError) return error.cause;
  return error instanceof SabirError ? error : withoutContent(error);
}
