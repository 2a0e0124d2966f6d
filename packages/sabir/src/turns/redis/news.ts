import { SabirError, SHUTTING_DOWN } from '../../errors.ts';
import { createSubscriber, type RedisClient, type Subscriber } from './client.ts';
import type { Store } from './store.ts';

export type News = ReturnType<typeof createNews>;

/**
 * The one connection of this process that listens, for all its turns. Opened when somebody wants to
 * hear something. Whoever listens is told after a drop that something may have been missed.
 */
export function createNews(client: RedisClient, store: Store, probe: string) {
  const listeners = new Map<string, { hear(message: string): void; refresh(): void }>();
  let subscriber: Subscriber | undefined;
  let isClosed = false;

  function open(): Subscriber {
    if (isClosed) throw new SabirError(SHUTTING_DOWN);
    if (subscriber) return subscriber;
    const opened = createSubscriber(client, (channel, message) => {
      listeners.get(channel)?.hear(message);
    });
    opened.onReady(() => void catchUp(opened));
    subscriber = opened;
    return opened;
  }

  /** Behind all that the client subscribes to again by itself: then nothing more is missed. */
  async function catchUp(opened: Subscriber): Promise<void> {
    try {
      await opened.subscribe(probe);
    } catch {
      // Lost again: the next one that is ready catches up.
      return;
    }
    for (const { refresh } of listeners.values()) refresh();
  }

  return {
    /** Resolves when nothing that is said from now on is missed. */
    async listen(
      channel: string,
      hear: (message: string) => void,
      refresh: () => void,
    ): Promise<void> {
      const listener = { hear, refresh };
      listeners.set(channel, listener);
      const isWanted = () => !isClosed && listeners.get(channel) === listener;
      await store.insist(async () => open().subscribe(channel), { isWanted });
    },
    leave(channel: string): void {
      if (!listeners.delete(channel) || isClosed) return;
      // One that is heard once more is of no harm.
      subscriber?.unsubscribe(channel).catch(() => undefined);
    },
    close(): void {
      isClosed = true;
      listeners.clear();
      subscriber?.close();
    },
  };
}
