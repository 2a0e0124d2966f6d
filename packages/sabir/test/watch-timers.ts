/**
 * The timers that are running, those that keep no process alive among them. Counts from its call
 * on, until `restore`.
 */
export function watchTimers() {
  const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis;
  const live = new Set<unknown>();
  const clear = (timer: unknown) => {
    live.delete(timer);
    clearTimeout(timer as NodeJS.Timeout);
  };
  Object.assign(globalThis, {
    setTimeout(run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) {
      const timer = setTimeout(() => {
        live.delete(timer);
        run(...args);
      }, ms);
      live.add(timer);
      return timer;
    },
    setInterval(run: () => void, ms?: number) {
      const timer = setInterval(run, ms);
      live.add(timer);
      return timer;
    },
    clearTimeout: clear,
    clearInterval: clear,
  });
  return {
    get count() {
      return live.size;
    },
    restore: () =>
      Object.assign(globalThis, { setTimeout, setInterval, clearTimeout, clearInterval }),
  };
}
