/** Where a turn's prompt waits, for those who show it. It is not in the log: the place belongs to the session. */
export function createQueueState(position: () => number) {
  const listeners = new Set<() => void>();
  const begun = Promise.withResolvers<boolean>();
  let hasLeft = false;
  return {
    position,
    subscribe(listener: () => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    get hasBegun() {
      return hasLeft;
    },
    whenBegun: () => begun.promise,
    /** The position has changed. */
    change(): void {
      for (const listener of listeners) listener();
    },
    /** The turn has begun to say something, or has ended. */
    leave(): void {
      if (hasLeft) return;
      hasLeft = true;
      begun.resolve(true);
      listeners.clear();
    },
  };
}
