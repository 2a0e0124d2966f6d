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
    const ending = childOf(signal);
    ending.signal.addEventListener('abort', () => resolve());
    if (ending.signal.aborted) resolve();
    onShown(ending.signal, () => ending.abort());
  });
}

/** Aborts with the signal, or by itself. `AbortSignal.any` is missing in Safari before 17.4 and in React Native. */
export function childOf(signal: AbortSignal): AbortController {
  const child = new AbortController();
  const abort = () => child.abort();
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { signal: child.signal });
  return child;
}
