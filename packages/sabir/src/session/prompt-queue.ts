import type { QueuedPrompt } from './protocol.ts';
import type { SessionStorage, StoredTurn } from './storage.ts';

/** The prompts that wait, in the order they came; as the storage has them. */
export function createPromptQueue(storage: SessionStorage, waiting: StoredTurn[]) {
  const queue = [...waiting];
  /** Those that everybody was told of. */
  const announced = new Set<string>();

  return {
    get size() {
      return queue.length;
    },
    get first() {
      return queue[0];
    },
    add: (turn: StoredTurn) => void queue.push(turn),
    find: (is: (turn: StoredTurn) => boolean) => queue.find(is),
    announce: (turn: StoredTurn) => void announced.add(turn.turnId),
    /** Takes it out; true if everybody was told that it waited. */
    take(turn: StoredTurn): boolean {
      queue.splice(queue.indexOf(turn), 1);
      return announced.delete(turn.turnId);
    },
    placeOf: (turn: StoredTurn) => queue.indexOf(turn) + 1,
    toList: (): QueuedPrompt[] => queue.map(toQueuedPrompt),
    withdraw(turn: StoredTurn, endedAt: number): void {
      storage.updateTurn(turn.turnId, { status: 'ended', reason: 'withdrawn', endedAt });
      this.take(turn);
    },
  };
}

function toQueuedPrompt(turn: StoredTurn, index: number): QueuedPrompt {
  const { promptId, turnId, content, authorId, authorName, channelType, channelId } = turn;
  return {
    ...{ promptId, turnId, content, position: index + 1, authorId },
    ...(authorName !== undefined && { authorName }),
    ...{ channelType, channelId },
  };
}
