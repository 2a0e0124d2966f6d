import type { TurnInfo, TurnLog } from '../turns/log.ts';
import type { Place } from './chat-route.ts';

/** How long a page may take between asking for the history and for the running answer. */
const OWED_MS = 60_000;
/** How long after the history a page may ask for the answer to a prompt that waits: those in front of it come first. */
const WAITING_MS = 3_600_000;
const MAX_PLANNED = 10_000;
/** A debt is for one of a history's last answers. */
const MAX_SETTLED = 20;

export type OwedReplays = ReturnType<typeof createOwedReplays>;

/**
 * A history leaves out the answer that is being written, since a resume brings it. If the turn ends
 * in between, the resume finds nothing running: then the page is owed the whole turn all the same.
 * Gateways that share a log share their debts, since a page may come to any of them.
 */
export function createOwedReplays(log: Pick<TurnLog, 'notes' | 'ended'>) {
  const { notes } = log;
  /** What a turn's message was to be called, by what its source has called it. */
  const planned = new Map<string, string>();
  const nameOf = (userId: string, messageId: string) => JSON.stringify([userId, messageId]);

  /** `messageId` is what it was to be called when the turn began: the one that all gateways know. */
  function owe(userId: string, messageId: string, isWaiting = false): Promise<void> {
    return notes.add(nameOf(userId, messageId), isWaiting ? WAITING_MS : OWED_MS);
  }

  /** Pays one of them, if there is one to pay. */
  function take(userId: string, messageId: string): Promise<boolean> {
    return notes.take(nameOf(userId, messageId));
  }

  return {
    owe,
    take,
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
    /**
     * The turn that a resume without a cursor shows: the oldest that the page's history left out, else the `latest` while it
     * runs. Several prompts that waited may have been answered since the page was last sent an answer.
     */
    async next({ user, logSession, logChat }: Place, latest: TurnInfo) {
      // Also while it runs: a page is not sent the same answer twice.
      const isOwed = await take(user.id, latest.messageId);
      if (!isOwed && !latest.outcome) return latest;
      const ended = (await log.ended(logSession, logChat, MAX_SETTLED)).filter(
        ({ turnId, lastSeq }) => turnId !== latest.turnId && lastSeq > 0,
      );
      // All at once: most often there is none, and each would be a round trip.
      const areOwed = await Promise.all(ended.map(({ messageId }) => take(user.id, messageId)));
      const [oldest, ...others] = ended.filter((_, index) => areOwed[index]);
      if (!oldest) return isOwed ? latest : undefined;
      const later = others.map(({ messageId }) => owe(user.id, messageId, true));
      if (isOwed) later.push(owe(user.id, latest.messageId));
      await Promise.all(later);
      return oldest;
    },
  };
}
