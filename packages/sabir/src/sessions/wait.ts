import type { Guard } from './guard.ts';
import type { Clock } from './options.ts';

/** A time limit, of which there is one at a time: a new one takes the place of the one before. */
export function createWait(clock: Clock, guard: Guard) {
  let callOff: (() => void) | undefined;

  function stop(): void {
    callOff?.();
    callOff = undefined;
  }

  return {
    start(ms: number, then: () => void): void {
      stop();
      callOff = clock.after(ms, () => {
        callOff = undefined;
        guard(then);
      });
    },
    stop,
  };
}
