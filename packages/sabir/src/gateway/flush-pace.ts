import { startTimeout } from '../core/timers.ts';

/** The share of its time that a busy process spends on writing to viewers. */
const SHARE = 0.4;
/** So much writing is not waited for. */
const FREE_MS = 2;
/** A delta never waits for longer than this. */
const MOST_MS = 30;

export type FlushPace = ReturnType<typeof createFlushPace>;

/**
 * When the viewers of a crowd are written to next. Every write costs a call into the operating system,
 * whatever its size: with a thousand viewers, a write for each delta takes all of a core. So the time
 * that the writes to crowds took has to pass a few times over before the next ones: while there is
 * headroom nothing waits, and the longer flushes get, the more deltas each of them holds. A turn with
 * few viewers never waits.
 */
export function createFlushPace(now: () => number = () => performance.now()) {
  let owedMs = 0;
  let at = now();

  function settle(): void {
    const time = now();
    owedMs = Math.max(0, owedMs - (time - at) * SHARE);
    at = time;
  }

  return {
    /** Writing to viewers has just taken this long. */
    add(ms: number): void {
      settle();
      owedMs += ms;
    },
    /** Resolves when it is time to write again; undefined if it is. */
    wait(): Promise<void> | undefined {
      settle();
      const ms = Math.min((owedMs - FREE_MS) / SHARE, MOST_MS);
      if (ms < 1) return undefined;
      return new Promise((resolve) => void startTimeout(ms, resolve));
    },
  };
}
