import { SabirError, SHUTTING_DOWN } from '../../core/errors.ts';
import { createSubscriber, type RedisClient, type Subscriber } from './client.ts';
import type { Store } from './store.ts';

export type News = ReturnType<typeof createNews>;

type Listener = { hear(message: string): void; refresh(): void };

/**
 * The one connection of this process that listens, for all its turns. Opened when somebody wants to
 * hear something. Whoever listens is told after a drop that something may have been missed.
 */
export function createNews(client: RedisClient, store: Store, probe: string) {
  const listeners = new Map<string, Listener>();
  let subscriber: Subscriber | undefined;
  let isClosed = false;

  function open(): Subscriber {
    if (isClosed) throw new SabirError(SHUTTING_DOWN);
    if (subscriber) return subscriber;
    const opened = createSubscriber(client, (channel, message) => {
      listeners.get(channel)?.hear(message);
    });
    opened.onReady(() => void catchUp(opened));
    opened.onOver(() => void replace(opened));
    subscriber = opened;
    return opened;
  }

  /** For a client that was told not to connect again. */
  async function replace(over: Subscriber): Promise<void> {
    if (isClosed || subscriber !== over) return;
    subscriber = undefined;
    over.close();
    await Promise.all([...listeners].map(([channel, listener]) => subscribe(channel, listener)));
  }

  /** Nobody waits for it: where it fails, whoever listens looks from time to time. */
  async function subscribe(channel: string, listener: Listener): Promise<void> {
    try {
      await store.insist(async () => open().subscribe(channel), isWanted(channel, listener));
      listener.refresh();
    } catch {
      // As above.
    }
  }

  const isWanted = (channel: string, listener: Listener) => ({
    isWanted: () => !isClosed && listeners.get(channel) === listener,
  });

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
      await store.insist(async () => open().subscribe(channel), isWanted(channel, listener));
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
