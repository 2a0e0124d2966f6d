/** Timers by what they are for, one of each. None keeps a process alive: a session is no reason to. */
export class NamedTimers<Name extends string> {
  // An object in Node, a number in browsers and workers.
  #timers = new Map<Name, unknown>();

  start(name: Name, afterMs: number, run: () => void): void {
    this.clear(name);
    this.#timers.set(name, unref(setTimeout(run, afterMs)));
  }

  repeat(name: Name, everyMs: number, run: () => void): void {
    this.clear(name);
    this.#timers.set(name, unref(setInterval(run, everyMs)));
  }

  clear(name: Name): void {
    clearTimeout(this.#timers.get(name) as number);
    this.#timers.delete(name);
  }

  clearAll(): void {
    for (const name of [...this.#timers.keys()]) this.clear(name);
  }
}

function unref(timer: unknown): unknown {
  if (typeof timer === 'object') (timer as { unref?(): void }).unref?.();
  return timer;
}
