import { startTimer, steadyNow } from '../core/timers.ts';

const TICK_MS = 250;
/** A process that misses so much was suspended, or as good as. */
const ASLEEP_MS = 1_500;
/** How long it may take to read what has come in the meantime. */
const WAKING_MS = 2_000;

export type SleepWatch = ReturnType<typeof createSleepWatch>;

/**
 * Knows whether this process has just slept. What it then reads was sent a while ago: whoever sent it
 * may have been answered elsewhere since, and may even have stopped that.
 */
export function createSleepWatch() {
  let lastTick = steadyNow();
  let wakingUntil = lastTick;
  const look = () => {
    const now = steadyNow();
    if (now - lastTick > ASLEEP_MS) wakingUntil = now + WAKING_MS;
    lastTick = now;
  };
  const timer = startTimer(TICK_MS, look);
  return {
    get isWaking(): boolean {
      look();
      return steadyNow() < wakingUntil;
    },
    close: () => timer.clear(),
  };
}
