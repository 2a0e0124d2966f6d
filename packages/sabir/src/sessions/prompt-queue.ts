import { type Clients, isIn } from './clients.ts';
import type { QueuedPrompt, StatusEvent } from './protocol.ts';
import type { SessionStorage, StoredTurn, TurnInfo } from './storage.ts';

/** A turn that waits: its prompt may be large, and stays in the storage. */
export type QueuedTurn = TurnInfo & {
  /** How the prompt begins. */
  excerpt: string;
  bytes: number;
};

type PromptQueueOptions = {
  storage: SessionStorage;
  clients: Clients;
  /** Those that were waiting when the process ended. */
  waiting: TurnInfo[];
  /** Why the first one waits. */
  reason(): 'busy' | 'waking';
};

/** Everybody is told the whole queue at every change: of a long prompt, how it begins. */
const SHOWN_LENGTH = 500;

/** The prompts that wait, in the order they came; as the storage has them. */
export function createPromptQueue({ storage, clients, waiting, reason }: PromptQueueOptions) {
  const queue = waiting.map(({ turnId }) => toQueued(storage.turn(turnId) as StoredTurn));
  /** Those that everybody was told of. */
  const announced = new Set(waiting.map(({ turnId }) => turnId));
  let bytes = queue.reduce((sum, turn) => sum + turn.bytes, 0);

  const placeOf = (turn: QueuedTurn) => queue.indexOf(turn) + 1;
  const toList = (): QueuedPrompt[] => queue.map(toQueuedPrompt);

  function toStanding(turn: QueuedTurn): StatusEvent {
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
  function take(turn: QueuedTurn): boolean {
    queue.splice(queue.indexOf(turn), 1);
    bytes -= turn.bytes;
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
    find: (is: (turn: QueuedTurn) => boolean) => queue.find(is),
    add(turn: StoredTurn): QueuedTurn {
      const queued = toQueued(turn);
      queue.push(queued);
      bytes += queued.bytes;
      return queued;
    },
    /** Says where it stands, if it has to wait. */
    announce(turn: QueuedTurn): void {
      if (placeOf(turn) === 0) return;
      announced.add(turn.turnId);
      clients.broadcastIn(toStanding(turn), turn);
      tell();
    },
    take,
    toList,
    toStanding,
    /** It is taken up: whoever was told that it waits is told that it no longer does. */
    tellTaken(turn: QueuedTurn): void {
      const { promptId, turnId } = turn;
      const data = { promptDequeued: true, remaining: queue.length, promptId, turnId };
      clients.broadcastIn({ type: 'status', data } satisfies StatusEvent, turn);
      tell();
    },
    withdraw(turn: QueuedTurn, endedAt: number): void {
      const { promptId, turnId, excerpt: content } = turn;
      storage.updateTurn(turnId, { status: 'ended', reason: 'withdrawn', endedAt });
      take(turn);
      const data = { promptId, turnId, content };
      clients.broadcastIn({ type: 'queue.withdrawn', data }, turn);
      tell();
    },
  };
}

function toQueued({ content, attachments, ...info }: StoredTurn): QueuedTurn {
  const bytes = attachments.reduce((sum, { url }) => sum + url.length, content.length);
  // A slice would keep the whole prompt in memory: this is a copy.
  const excerpt: string = JSON.parse(JSON.stringify(content.slice(0, SHOWN_LENGTH)));
  return { ...info, excerpt, bytes };
}

function toQueuedPrompt(turn: QueuedTurn, index: number): QueuedPrompt {
  const { promptId, turnId, excerpt, authorId, authorName, channelType, channelId } = turn;
  return {
    promptId,
    turnId,
    content: excerpt,
    position: index + 1,
    authorId,
    ...(authorName !== undefined && { authorName }),
    channelType,
    channelId,
  };
}
