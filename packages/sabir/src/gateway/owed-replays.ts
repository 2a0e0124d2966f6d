import type { SharedNotes } from '../turns/log.ts';

/** How long a page may take between asking for the history and for the running answer. */
const OWED_MS = 60_000;
const MAX_PLANNED = 10_000;
/** A debt is for one of a history's last answers. */
const MAX_SETTLED = 20;

export type OwedReplays = ReturnType<typeof createOwedReplays>;

/**
 * A history leaves out the answer that is being written, since a resume brings it. If the turn ends
 * in between, the resume finds nothing running: then the page is owed the whole turn all the same.
 * Gateways that share a log share their debts, since a page may come to any of them.
 */
export function createOwedReplays(notes: SharedNotes) {
  /** What a turn's message was to be called, by what its source has called it. */
  const planned = new Map<string, string>();
  const nameOf = (userId: string, messageId: string) => JSON.stringify([userId, messageId]);
  return {
    /** `messageId` is what it was to be called when the turn began: the one that all gateways know. */
    owe: (userId: string, messageId: string): Promise<void> =>
      notes.add(nameOf(userId, messageId), OWED_MS),
    /** The id of the answer is certain when its turn has ended: a source may name one late. */
    name(messageId: string, named: string): void {
      if (named === messageId) return;
      const oldest = planned.keys().next().value;
      if (planned.size >= MAX_PLANNED && oldest !== undefined) planned.delete(oldest);
      planned.set(named, messageId);
    },
    /**
     * This person has got a history with these messages. Whoever asked for an earlier one and never
     * resumed would leave a debt that gives the next page an answer that it has.
     */
    settle: (userId: string, messageIds: string[]): Promise<void> =>
      notes.clear(
        messageIds.slice(-MAX_SETTLED).map((id) => nameOf(userId, planned.get(id) ?? id)),
      ),
    /** Pays one of them, if there is one to pay. */
    take: (userId: string, messageId: string): Promise<boolean> =>
      notes.take(nameOf(userId, messageId)),
  };
}
