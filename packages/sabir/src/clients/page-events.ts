/** The page is shown again, or hidden; or its network is back. */
export const PAGE_EVENTS = ['online', 'pageshow', 'visibilitychange'];

/** Calls back whenever the page is shown again, or its network is back while it is shown. */
export function onShown(signal: AbortSignal, listener: () => unknown): void {
  for (const type of PAGE_EVENTS)
    globalThis.addEventListener?.(type, () => globalThis.document?.hidden || listener(), {
      signal,
    });
}

/** Resolves when the page is shown again, or its network is back, or the signal aborts. */
export function untilShown(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const ending = new AbortController();
    const done = () => {
      ending.abort();
      resolve();
    };
    onShown(ending.signal, done);
    signal.addEventListener('abort', done, { signal: ending.signal });
  });
}
