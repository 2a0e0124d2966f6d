import { startTimeout } from '../../core/timers.ts';
import type { News } from './news.ts';

type Listener = (turnId: string | undefined) => void;

const RETRY_MS = 1_000;

/** The listeners of this process for turns that begin: one Redis subscription per chat, shared by its listeners. */
export function createBeginnings(news: News) {
  const chats = new Map<string, Set<Listener>>();

  function listenTo(channel: string, listeners: Set<Listener>): void {
    const tell = (turnId?: string) => {
      for (const listener of listeners) listener(turnId);
    };
    news
      .listen(channel, tell, tell)
      // What began before Redis had the subscription was missed.
      .then(() => tell())
      .catch(() => {
        startTimeout(RETRY_MS, () => {
          if (chats.get(channel) === listeners) listenTo(channel, listeners);
        });
      });
  }

  return {
    listen(channel: string, listener: Listener): () => void {
      // The same function may listen twice.
      const one: Listener = (turnId) => listener(turnId);
      const known = chats.get(channel);
      const listeners = known ?? new Set();
      listeners.add(one);
      if (!known) {
        chats.set(channel, listeners);
        listenTo(channel, listeners);
      }
      return () => {
        listeners.delete(one);
        if (listeners.size > 0 || chats.get(channel) !== listeners) return;
        chats.delete(channel);
        news.leave(channel);
      };
    },
    close: () => chats.clear(),
  };
}
