/** How long a page may take between asking for the history and for the running answer. */
const OWED_MS = 60_000;
const MAX_OWED = 10_000;
/** As many pages as one person is likely to open at once. */
const MAX_PAGES = 20;

/**
 * A history leaves out the answer that is being written, since a resume brings it. If the turn ends
 * in between, the resume finds nothing running: then the page is owed the whole turn all the same.
 */
export function createOwedReplays(now: () => number = Date.now) {
  /** Until when, for each page that asked. */
  const owed = new Map<string, number[]>();
  const keyOf = (turnId: string, userId: string) => `${turnId} ${userId}`;
  return {
    owe(turnId: string, userId: string): void {
      const key = keyOf(turnId, userId);
      const pages = owed.get(key) ?? [];
      const oldest = owed.keys().next().value;
      if (owed.size >= MAX_OWED && oldest !== undefined) owed.delete(oldest);
      owed.set(key, [...pages.slice(1 - MAX_PAGES), now() + OWED_MS]);
    },
    /** Pays one of them, if there is one to pay. */
    take(turnId: string, userId: string): boolean {
      const key = keyOf(turnId, userId);
      const due = owed.get(key)?.filter((until) => until > now()) ?? [];
      const isOwed = due.shift() !== undefined;
      if (due.length > 0) owed.set(key, due);
      else owed.delete(key);
      return isOwed;
    },
    clear: () => owed.clear(),
  };
}
