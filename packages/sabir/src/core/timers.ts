/** Timers that never keep a process alive: a turn is no reason to. */
export type Timer = { clear(): void };

/** As far as timers can count. */
const MOST_MS = 2 ** 31 - 1;

export function startTimer(everyMs: number, run: () => void): Timer {
  const timer = setInterval(run, Math.min(everyMs, MOST_MS));
  unref(timer);
  return { clear: () => clearInterval(timer) };
}

/** Runs once; a time further off than timers can count is waited for in pieces. */
export function startTimeout(afterMs: number, run: () => void): Timer {
  let timer: ReturnType<typeof setTimeout>;
  const wait = (left: number) => {
    timer = setTimeout(
      () => (left > MOST_MS ? wait(left - MOST_MS) : run()),
      Math.min(left, MOST_MS),
    );
    unref(timer);
  };
  wait(Math.max(0, afterMs));
  return { clear: () => clearTimeout(timer) };
}

function unref(timer: unknown): void {
  // A number in browsers and workers.
  if (typeof timer === 'object') (timer as { unref?(): void }).unref?.();
}

/** Where there is no such thing, after the microtasks. */
const later: (run: () => void) => void =
  typeof setImmediate === 'function' ? (run) => void setImmediate(run) : (run) => setTimeout(run);
let due: (() => void)[] = [];

/**
 * What one tick brings is written in one go, and what is to be done for all of them comes at once:
 * whatever they ask for then can go out together. What runs must not throw.
 */
export function afterThisTick(run: () => void): void {
  if (due.push(run) > 1) return;
  later(() => {
    const all = due;
    due = [];
    for (const one of all) one();
  });
}

let wall = Date.now();
let monotonic = performance.now();
let passed = 0;

/**
 * Milliseconds that this process has run, for what it waits for itself. A step of the wall clock does not
 * change them. On Linux and macOS they stand still while the machine sleeps, and so does whatever this
 * process waits for.
 */
export function monotonicNow(): number {
  return performance.now();
}

/**
 * Milliseconds that only grow, for what others wait for: their clocks go on while this machine sleeps. A
 * clock that is set back does not stop them; one that is set forward counts as time that has passed.
 */
export function steadyNow(): number {
  const now = Date.now();
  const ticks = performance.now();
  passed += Math.max(now - wall, ticks - monotonic, 0);
  wall = now;
  monotonic = ticks;
  return passed;
}
