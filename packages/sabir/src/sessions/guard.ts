import { SabirError } from '../core/errors.ts';
import type { Logger } from '../core/translator.ts';

/** Runs something whose error no caller would catch: one session's failure must not end the process of all. */
export type Guard = (run: () => void) => boolean;

/** False if it threw. The log gets the error's name only: its text may quote a message. */
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

/** What failed, without what was said. */
export function nameOf(error: unknown): string {
  if (error instanceof SabirError) return error.code;
  return error instanceof Error ? error.name : typeof error;
}
