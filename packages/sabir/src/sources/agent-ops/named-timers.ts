import { startTimeout, startTimer, type Timer } from '../../core/timers.ts';

/** Timers by what they are for, one of each. */
export class NamedTimers<Name extends string> {
  #timers = new Map<Name, Timer>();

  start(name: Name, afterMs: number, run: () => void): void {
    this.clear(name);
    this.#timers.set(name, startTimeout(afterMs, run));
  }

  repeat(name: Name, everyMs: number, run: () => void): void {
    this.clear(name);
    this.#timers.set(name, startTimer(everyMs, run));
  }

  clear(name: Name): void {
    this.#timers.get(name)?.clear();
    this.#timers.delete(name);
  }

  clearAll(): void {
    for (const name of [...this.#timers.keys()]) this.clear(name);
  }
}
