import type { Logger } from '../core/translator.ts';
import { nameOf } from './turn-messages.ts';

/** Runs what nobody is there to catch: one session's trouble must not end the process of all. */
export type Guard = (run: () => void) => boolean;

/** False if it threw; what was said is not in the log. */
export function createGuard(sessionId: string, logger: Logger | undefined): Guard {
  return (run) => {
    try {
      run();
      return true;
    } catch (error) {
      logger?.error?.('something failed in a session', { sessionId, error: nameOf(error) });
      return false;
    }
  };
}
