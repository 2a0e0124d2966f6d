/** Whether one more is allowed: so many a second on average, and twice as many at once. */
export function createTokenBucket(perSecond: number): () => boolean {
  const capacity = 2 * perSecond;
  let tokens = capacity;
  let filledAt = performance.now();
  return () => {
    const now = performance.now();
    tokens = Math.min(capacity, tokens + ((now - filledAt) / 1_000) * perSecond);
    filledAt = now;
    if (tokens < 1) return false;
    tokens--;
    return true;
  };
}
