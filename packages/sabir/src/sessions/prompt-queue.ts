import type { User } from '../turns/upstream.ts';
import type { PromptInfo, SessionStorage, StoredPrompt } from './storage.ts';

/** A prompt that waits. Its text may be large, and stays in the storage. */
export type QueuedPrompt = PromptInfo & {
  /** How the prompt begins. */
  excerpt: string;
  bytes: number;
  /** Who asked, with everything that is known of them in this process. */
  user: User;
  /** The people in the session were notified that it waits. */
  isAnnounced: boolean;
};

const EXCERPT_LENGTH = 500;

/** The prompts that wait, in the order they came; as the storage has them. */
export function createPromptQueue(storage: SessionStorage) {
  const queue: QueuedPrompt[] = [];
  let bytes = 0;

  function add(prompt: StoredPrompt, user: User): QueuedPrompt {
    const queued = toQueued(prompt, user);
    queue.push(queued);
    bytes += queued.bytes;
    return queued;
  }

  for (const { promptId, status } of storage.openPrompts()) {
    if (status !== 'queued') continue;
    const prompt = storage.prompt(promptId) as StoredPrompt;
    add(prompt, authorOf(prompt)).isAnnounced = true;
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
    list: (): readonly QueuedPrompt[] => queue,
    /** From 1; 0 for a prompt that does not wait. */
    positionOf: ({ promptId }: { promptId: string }) =>
      queue.findIndex((queued) => queued.promptId === promptId) + 1,
    /** How many of them are this user's. */
    countOf: (userId: string) => queue.filter(({ authorId }) => authorId === userId).length,
    find: (promptId: string) => queue.find((queued) => queued.promptId === promptId),
    add,
    remove(queued: QueuedPrompt): void {
      queue.splice(queue.indexOf(queued), 1);
      bytes -= queued.bytes;
    },
  };
}

/** As much of the author as is kept. */
export function authorOf({ authorId, authorName }: PromptInfo): User {
  return { id: authorId, ...(authorName !== undefined && { name: authorName }) };
}

function toQueued({ text, attachments, body: _, ...info }: StoredPrompt, user: User): QueuedPrompt {
  const bytes = attachments.reduce((sum, { url }) => sum + url.length, text.length);
  // A slice would keep the whole prompt in memory: this is a copy.
  const excerpt: string = JSON.parse(JSON.stringify(text.slice(0, EXCERPT_LENGTH)));
  return { ...info, excerpt, bytes, user, isAnnounced: false };
}
