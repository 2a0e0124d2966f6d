import { EVENTS_GONE, SabirError, TOO_MANY_MESSAGES } from '../core/errors.ts';
import type { Client, Clients, Follow } from './clients.ts';
import type { Guard } from './guard.ts';
import type { Clock } from './options.ts';
import { readEvents } from './read-events.ts';
import type { SessionStorage } from './storage.ts';

type FollowsOptions = {
  storage: SessionStorage;
  clients: Clients;
  clock: Clock;
  guard: Guard;
  /** The end of a turn that was sent but could not be stored yet. */
  unstoredEnd(turnId: string): string | undefined;
};

/** So much is sent in one go, and no more while so much waits to leave. */
const STEP_BYTES = 1_000_000;
const RETRY_MS = 20;
/** How many turns one client may wait for. */
const MOST_FOLLOWS = 100;

/**
 * Sends clients the stored events of turns, at the pace of their sockets. While a client is behind,
 * it gets a followed turn's new events from the storage too, and everything else after that: so all
 * it gets stays in order.
 */
export function createFollows(options: FollowsOptions) {
  const { storage, clients, clock, guard, unstoredEnd } = options;

  function start(client: Client): void {
    const follow = client.follows[0] as Follow;
    const events = readEvents(storage, follow.turnId, follow.after);
    const step = () => {
      if (!guard(() => send(client, follow, events, step))) clients.dismiss(client);
    };
    step();
  }

  function send(
    client: Client,
    follow: Follow,
    events: ReturnType<typeof readEvents>,
    step: () => void,
  ): void {
    let sent = 0;
    for (;;) {
      if (!clients.includes(client)) return;
      const isFull = (client.socket.bufferedAmount ?? 0) > STEP_BYTES;
      if (isFull || sent > STEP_BYTES) {
        clock.after(isFull ? RETRY_MS : 0, step);
        return;
      }
      const next = events.next();
      if (next.done) break;
      sent += next.value.length;
      follow.after = next.value.event.seq;
      clients.tellNow(client, JSON.stringify(next.value.event));
    }
    const end = unstoredEnd(follow.turnId);
    if (end && JSON.parse(end).seq > follow.after) clients.tellNow(client, end);
    client.follows.shift();
    if (client.follows.length > 0) start(client);
    else clients.release(client);
  }

  return {
    /** Throws if a turn that has ended has no events any more. */
    add(client: Client, turnId: string, after: number, hasEnded: boolean): void {
      // The last event of an ended turn is its end: a client that has not seen the end must find it.
      const isGone =
        hasEnded && !unstoredEnd(turnId) && storage.events(turnId, after, 0).length === 0;
      if (isGone) throw new SabirError(EVENTS_GONE);
      if (client.follows.length >= MOST_FOLLOWS) throw new SabirError(TOO_MANY_MESSAGES);
      client.follows.push({ turnId, after });
      if (client.follows.length === 1) start(client);
    },
  };
}
