import { NO_LONGER_NEEDED } from '../core/no-longer-needed.ts';
import { startTimeout, startTimer, type Timer } from '../core/timers.ts';
import type { SessionLease } from './session-pool.ts';
import type { TurnOptions } from './turn-options.ts';

type TurnOpeningOptions = Pick<TurnOptions, 'open' | 'takenOver' | 'timing'> & {
  /** The agent was not reached in time. */
  onLate(): void;
  /** The agent of a turn that was taken over is still away, and is waited for. */
  onAway(): void;
};

/** How long to wait before connecting again to the agent of a turn that was taken over. */
const REOPEN_MS = 200;
/** How long that agent may be away: it may work on the turn all the while. */
const AWAY_MS = 600_000;

/** The connection of one run to its agent, until it is there. A turn that was taken over tries again until it is too late. */
export function createTurnOpening({ takenOver, timing, ...options }: TurnOpeningOptions) {
  const { connectMs } = timing;
  const isRetried = takenOver?.canAttach === true;
  const ending = new AbortController();
  const lateMs = isRetried ? Math.max(AWAY_MS, connectMs) : connectMs;
  const timers: Timer[] = [startTimeout(lateMs, options.onLate)];
  if (isRetried) timers.push(startTimer(connectMs, options.onAway));

  function clear(): void {
    for (const timer of timers) timer.clear();
  }

  async function open(): Promise<SessionLease> {
    for (;;) {
      try {
        return await options.open(ending.signal);
      } catch (error) {
        if (!isRetried || ending.signal.aborted) throw error;
      }
      await new Promise<void>((resolve) => void startTimeout(REOPEN_MS, resolve));
    }
  }

  return {
    open: () => open().finally(clear),
    /** The connection is needed no more. */
    end(): void {
      ending.abort(NO_LONGER_NEEDED);
      clear();
    },
  };
}
