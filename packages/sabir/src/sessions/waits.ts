import type { Guard } from './guard.ts';
import type { Clock } from './options.ts';

/** Times by what is waited for, one of each. */
export function createWaits<Name extends string>(clock: Clock, guard: Guard) {
  const running = new Map<Name, () => void>();

  function stop(name: Name): void {
    running.get(name)?.();
    running.delete(name);
  }

  return {
    has: (name: Name) => running.has(name),
    start(name: Name, ms: number, run: () => void): void {
      stop(name);
      const clear = clock.after(ms, () => {
        running.delete(name);
        guard(run);
      });
      running.set(name, clear);
    },
    stop,
    stopAll(): void {
      for (const name of [...running.keys()]) stop(name);
    },
  };
}
