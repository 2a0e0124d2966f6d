import { type Clients, isIn } from './clients.ts';
import type { QueuedPrompt, StatusEvent } from './protocol.ts';
import type { SessionStorage, StoredTurn } from './storage.ts';

type PromptQueueOptions = {
  storage: SessionStorage;
  clients: Clients;
  /** Those that were waiting when the process ended. */
  waiting: StoredTurn[];
  /** Why the first one waits. */
  reason(): 'busy' | 'waking';
};

/** Everybody is told the whole queue at every change: of a long prompt, how it begins. */
const SHOWN_LENGTH = 500;

/** The prompts that wait, in the order they came; as the storage has them. */
export function createPromptQueue({ storage, clients, waiting, reason }: PromptQueueOptions) {
  const queue = [...waiting];
  /** Those that everybody was told of. */
  const announced = new Set(waiting.map(({ turnId }) => turnId));
  let bytes = waiting.reduce((sum, turn) => sum + bytesOf(turn), 0);

  const placeOf = (turn: StoredTurn) => queue.indexOf(turn) + 1;
  const toList = (): QueuedPrompt[] => queue.map(toQueuedPrompt);

  function toStanding(turn: StoredTurn): StatusEvent {
    const { promptId, turnId } = turn;
    const queuePosition = placeOf(turn);
    return {
      type: 'status',
      data: { promptQueued: true, queuePosition, queueReason: reason(), promptId, turnId },
    };
  }

  /** Where the prompts stand, for everybody who follows their channels. */
  function tell(): void {
    const all = toList();
    clients.broadcastEach((client) => {
      const shown = all.filter((prompt) => isIn(client, prompt));
      const pending = shown.at(-1) ?? null;
      return { type: 'queue.state', data: { pending, queue: shown, queueReason: reason() } };
    });
  }

  /** Out of the queue; true if everybody was told that it waited. */
  function take(turn: StoredTurn): boolean {
    queue.splice(queue.indexOf(turn), 1);
    bytes -= bytesOf(turn);
    return announced.delete(turn.turnId);
  }

  return {
    get size() {
      return queue.length;
    },
    get bytes() {
      return bytes;
    },
    get first() {
      return queue[0];
    },
    /** How many of them are this user's. */
    countOf: (userId: string) => queue.filter(({ authorId }) => authorId === userId).length,
    find: (is: (turn: StoredTurn) => boolean) => queue.find(is),
    add(turn: StoredTurn): void {
      queue.push(turn);
      bytes += bytesOf(turn);
    },
    /** Says where it stands, if it has to wait. */
    announce(turn: StoredTurn): void {
      if (placeOf(turn) === 0) return;
      announced.add(turn.turnId);
      clients.broadcastIn(toStanding(turn), turn);
      tell();
    },
    take,
    toList,
    toStanding,
    /** It is taken up: whoever was told that it waits is told that it no longer does. */
    tellTaken(turn: StoredTurn): void {
      const { promptId, turnId } = turn;
      const data = { promptDequeued: true, remaining: queue.length, promptId, turnId };
      clients.broadcastIn({ type: 'status', data } satisfies StatusEvent, turn);
      tell();
    },
    withdraw(turn: StoredTurn, endedAt: number): void {
      const { promptId, turnId } = turn;
      storage.updateTurn(turnId, { status: 'ended', reason: 'withdrawn', endedAt });
      take(turn);
      const { content } = toQueuedPrompt(turn, 0);
      const data = { promptId, turnId, content };
      clients.broadcastIn({ type: 'queue.withdrawn', data }, turn);
      tell();
    },
  };
}

function toQueuedPrompt(turn: StoredTurn, index: number): QueuedPrompt {
  const { promptId, turnId, content, authorId, authorName, channelType, channelId } = turn;
  return {
    ...{ promptId, turnId, content: content.slice(0, SHOWN_LENGTH), position: index + 1, authorId },
    ...(authorName !== undefined && { authorName }),
    ...{ channelType, channelId },
  };
}

function bytesOf({ content, attachments }: StoredTurn): number {
  return attachments.reduce((sum, { url }) => sum + url.length, content.length);
}
