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
