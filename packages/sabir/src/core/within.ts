/** As far as timers can count: about 24 days. */
const MOST_MS = 2 ** 31 - 1;

/** Settles as `promise` does, or after `ms` with what `onLate` returns or throws. */
export async function within<T, Late = undefined>(
  ms: number,
  promise: Promise<T>,
  onLate = () => undefined as Late,
): Promise<T | Late> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, Math.min(ms, MOST_MS));
  try {
    return await Promise.race([promise, late.then(onLate)]);
  } finally {
    clearTimeout(timer);
  }
}

/** Settles as `promise` does, or rejects with what `toError` gives when the signal aborts first. */
export async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal,
  toError: () => unknown = () => signal.reason,
): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(toError());
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
