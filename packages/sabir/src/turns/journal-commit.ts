import { LOG_FAILED, SabirError } from '../core/errors.ts';
import { afterThisTick } from '../core/timers.ts';
import type { TurnJournal } from './journal.ts';

/** Writes down what all turns of one tick have noted in one step. Rejects where that fails. */
export function createCommit(journal: TurnJournal | undefined) {
  let due: Promise<void> | undefined;
  let hasFailed = false;

  function now(write: () => void): void {
    try {
      write();
      hasFailed = false;
    } catch (cause) {
      hasFailed = true;
      throw new SabirError(LOG_FAILED, undefined, { cause });
    }
  }

  function commit(): Promise<void> {
    due ??= new Promise<void>((resolve, reject) => {
      afterThisTick(() => {
        due = undefined;
        try {
          now(() => journal?.flush());
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
    return due;
  }

  return Object.assign(commit, {
    now,
    /** The last time it was tried. */
    hasFailed: () => hasFailed,
  });
}
