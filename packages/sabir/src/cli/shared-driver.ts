/** Agents that are made elsewhere, as a session's runner wants them: one each, one prompt at a time. */
import type { AgentDriver, DriverStart } from '../sessions/index.ts';

/** An agent that is there when it is needed; if making it failed, it is made again the next time. */
export function lazyDriver(name: string, make: () => Promise<AgentDriver>): AgentDriver {
  let made: AgentDriver | undefined;
  return {
    name,
    get needsHistory() {
      // Told before it is made: too much said is better than too little.
      return made ? (made.needsHistory ?? false) : true;
    },
    async start(where) {
      made ??= await make();
      await made.start?.(where);
    },
    async *prompt(prompt) {
      made ??= await make();
      yield* made.prompt(prompt);
    },
    async close() {
      await made?.close?.();
    },
  };
}

/** One agent for all sessions. It is promised one prompt at a time, so they wait for each other. */
export function shareDriver(driver: AgentDriver) {
  let last: Promise<void> = Promise.resolve();
  const { name, needsHistory } = driver;

  const forSession = (): AgentDriver => ({
    name,
    ...(needsHistory !== undefined && { needsHistory }),
    async start(where: DriverStart) {
      await driver.start?.(where);
    },
    async *prompt(prompt) {
      const before = last;
      const { promise, resolve } = Promise.withResolvers<void>();
      last = before.then(() => promise);
      try {
        await untilFree(before, prompt.signal);
        yield* driver.prompt(prompt);
      } finally {
        resolve();
      }
    },
  });
  return { forSession, close: async () => driver.close?.() };
}

/** Whoever is told to stop does not wait for others first. */
async function untilFree(free: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([free, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
