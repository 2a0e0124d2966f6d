/** How long a page may take between asking for the history and for the running answer. */
const OWED_MS = 60_000;
const MAX_OWED = 10_000;
/** As many pages as one person is likely to open at once. */
const MAX_PAGES = 20;

type Debt = {
  turnId: string;
  userId: string;
  messageId: string;
  /** Until when, for each page that asked. */
  pages: number[];
};

export type OwedReplays = ReturnType<typeof createOwedReplays>;

/**
 * A history leaves out the answer that is being written, since a resume brings it. If the turn ends
 * in between, the resume finds nothing running: then the page is owed the whole turn all the same.
 */
export function createOwedReplays(now: () => number = Date.now) {
  const owed = new Map<string, Debt>();
  const keyOf = (turnId: string, userId: string) => `${turnId} ${userId}`;
  return {
    owe(turnId: string, userId: string, messageId: string): void {
      const key = keyOf(turnId, userId);
      const { pages = [] } = owed.get(key) ?? {};
      const oldest = owed.keys().next().value;
      if (owed.size >= MAX_OWED && oldest !== undefined) owed.delete(oldest);
      const due = [...pages.slice(1 - MAX_PAGES), now() + OWED_MS];
      owed.set(key, { turnId, userId, messageId, pages: due });
    },
    /** The id of the answer is certain when its turn has ended: a source may name one late. */
    name(turnId: string, messageId: string): void {
      for (const debt of owed.values()) if (debt.turnId === turnId) debt.messageId = messageId;
    },
    /**
     * This person has got a history with these messages. Whoever asked for an earlier one and never
     * resumed would leave a debt that gives the next page an answer that it has.
     */
    settle(userId: string, messageIds: ReadonlySet<string>): void {
      for (const [key, debt] of owed) {
        if (debt.userId === userId && messageIds.has(debt.messageId)) owed.delete(key);
      }
    },
    /** Pays one of them, if there is one to pay. */
    take(turnId: string, userId: string): boolean {
      const key = keyOf(turnId, userId);
      const debt = owed.get(key);
      const due = debt?.pages.filter((until) => until > now()) ?? [];
      const isOwed = due.shift() !== undefined;
      if (debt && due.length > 0) debt.pages = due;
      else owed.delete(key);
      return isOwed;
    },
    clear: () => owed.clear(),
  };
}
