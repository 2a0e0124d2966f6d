import type { UIMessage } from 'sabir';
import type { ChunkTurn, FinishedTurn } from 'sabir/gateway';

const MAX_CONVERSATIONS = 100;

/**
 * What was said so far, by session: a page that comes back asks for it. Each turn brings the whole
 * conversation along, so the latest turn of a session is all there is to keep.
 *
 * Kept in memory, the most recent hundred; a server with a database would ask that instead.
 */
export function createConversations() {
  const latest = new Map<string, { turnId: string; messages: UIMessage[] }>();

  return {
    begin({ sessionId, turnId, messages }: ChunkTurn): void {
      latest.delete(sessionId);
      latest.set(sessionId, { turnId, messages });
      for (const oldest of latest.keys()) {
        if (latest.size <= MAX_CONVERSATIONS) break;
        latest.delete(oldest);
      }
    },

    finish({ sessionId, turnId, message }: FinishedTurn): void {
      const conversation = latest.get(sessionId);
      // Somebody may have asked for another answer in the meantime.
      if (conversation?.turnId !== turnId) return;
      conversation.messages = [...conversation.messages, message];
    },

    history: ({ sessionId }: { sessionId: string }) => latest.get(sessionId)?.messages ?? [],
  };
}
