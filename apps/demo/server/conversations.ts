import type { UIMessage } from 'sabir';
import type { AgentPrompt, FinishedTurn } from 'sabir/gateway';

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
    begin({ sessionId, turnId, messages }: AgentPrompt): void {
      latest.delete(sessionId);
      latest.set(sessionId, { turnId, messages });
      for (const oldest of latest.keys()) {
        if (latest.size <= MAX_CONVERSATIONS) break;
        latest.delete(oldest);
      }
    },

    /** What waited goes on in another turn: it is about the same messages. */
    goOn({ sessionId, turnId }: AgentPrompt): void {
      const conversation = latest.get(sessionId);
      if (conversation) conversation.turnId = turnId;
    },

    finish({ sessionId, turnId, message, outcome }: FinishedTurn): void {
      const conversation = latest.get(sessionId);
      // Somebody may have asked for another answer in the meantime.
      if (conversation?.turnId !== turnId) return;
      const before = conversation.messages.filter(({ id }) => id !== message.id);
      conversation.messages = [...before, withReason(message, outcome)];
    },

    history: ({ sessionId }: { sessionId: string }) => latest.get(sessionId)?.messages ?? [],
  };
}

/** Why an answer failed is said once, to whoever is there; whoever comes back should know it too. */
function withReason(message: UIMessage, outcome: FinishedTurn['outcome']): UIMessage {
  if (outcome.status !== 'failed' || !outcome.message) return message;
  return { ...message, metadata: { ...(message.metadata ?? {}), reason: outcome.message } };
}
