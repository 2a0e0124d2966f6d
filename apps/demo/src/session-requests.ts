import { SabirChatTransport } from 'sabir/client';
import type { ChatMessage } from './chat-message.ts';
import type { Connection } from './connection.ts';

/** A server that cannot be asked for the history must not keep the page from being used. */
const HISTORY_MS = 5_000;

/** A page that leaves has not stopped anything: there is a button for that. */
export const DETACH = { 'x-sabir-detach': '1' };

/** What a window asks of its session beside what `useChat` does. */
export function createSessionRequests(address: string, chatId: string, { fetch }: Connection) {
  const api = `${address}/chat`;
  const verbs = new SabirChatTransport<ChatMessage>({ api, fetch });
  return {
    api,
    answer: (answer: { questionId: string; answer: unknown }) => verbs.answer(chatId, answer),
    /** For everybody: the answer that runs, and what waits behind it. */
    stop: () => verbs.stop(chatId),

    /** All that was said, without the answer that is being written. */
    async history(): Promise<ChatMessage[]> {
      const signal = AbortSignal.timeout(HISTORY_MS);
      const response = await fetch(`${address}/messages`, { signal });
      if (!response.ok) throw new Error(`The history could not be read: ${response.status}`);
      return response.json();
    },

    /** Asks for a turn without watching it: it comes when its time does. */
    async enqueue(text: string): Promise<void> {
      const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] };
      const response = await fetch(api, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...DETACH },
        body: JSON.stringify({ id: chatId, trigger: 'submit-message', messages: [message] }),
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`The message was not taken: ${response.status}`);
    },
  };
}

export type SessionRequests = ReturnType<typeof createSessionRequests>;
