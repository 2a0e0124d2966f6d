import { EVENTS_GONE, SabirError, TOO_MANY_MESSAGES } from '../../core/errors.ts';
import { NO_LONGER_NEEDED } from '../../core/no-longer-needed.ts';
import type { Clock, PromptInfo, Session } from '../../sessions/index.ts';
import { createV2Encoder } from '../../wires/agent-ops/encode.ts';
import type { Client, Clients, Follow, Place } from './clients.ts';
import { withSeq } from './feed.ts';

type FollowsOptions = {
  session: Session;
  clients: Clients;
  clock: Clock;
  /** The number of the last chunk of this turn that all clients have; infinite where they get no more of it. */
  positionOf(turnId: string): number;
};

/** So much is sent in one go, and no more while so much waits to leave. */
const STEP_BYTES = 1_000_000;
const RETRY_MS = 20;
/** How many turns one client may wait for. */
const MOST_FOLLOWS = 100;

/**
 * Sends clients what they missed of turns, from the log and at the pace of their sockets. While a client is behind, it
 * gets the turn's new events from the log too, and everything else after that: so all it gets stays in order.
 */
export function createFollows({ session, clients, clock, positionOf }: FollowsOptions) {
  const { log } = session;

  async function run(client: Client): Promise<void> {
    for (let follow = client.follows[0]; follow; follow = client.follows[0]) {
      await send(client, follow);
    }
  }

  async function send(client: Client, { prompt, after }: Follow): Promise<void> {
    const { turnId, messageId, promptId, channelType, channelId } = prompt;
    const channel = { channelType, channelId };
    const encoder = createV2Encoder({ turnId: messageId, promptId, channel });
    const reading = new AbortController();
    let last = 0;
    for await (const batch of log.read(turnId, 0, reading.signal, STEP_BYTES)) {
      for (const { seq, chunk } of batch) {
        for (const event of encoder.push(chunk)) {
          if (seq > after && event.type !== 'agentStatus') {
            clients.tellNow(client, JSON.stringify(withSeq(event, seq)));
          }
        }
        last = seq;
      }
      await untilTaken(client);
      if (last < positionOf(turnId) && clients.includes(client)) continue;
      // From here on it gets what the others get. Before the reader is left, which takes its time.
      end(client, { turnId: messageId, seq: last });
      reading.abort(NO_LONGER_NEEDED);
      return;
    }
    end(client, { turnId: messageId, seq: last });
  }

  /** In one step: what is sent to all from now on must neither be left out nor overtake what was held back. */
  function end(client: Client, followed: Place): void {
    client.follows.shift();
    client.followed = followed;
    if (client.follows.length === 0) clients.release(client);
  }

  async function untilTaken(client: Client): Promise<void> {
    while (clients.includes(client) && (client.socket.bufferedAmount ?? 0) > STEP_BYTES) {
      await new Promise<void>((resolve) => void clock.after(RETRY_MS, resolve));
    }
  }

  return {
    /** Throws if the log no longer has the turn, or never had so much of it. */
    async add(client: Client, prompt: PromptInfo, after: number): Promise<void> {
      const known = await log.get(prompt.turnId);
      const isGone = known ? after > known.lastSeq : prompt.status === 'ended';
      if (isGone) throw new SabirError(EVENTS_GONE);
      // A turn that has not begun has nothing to follow yet: its events come to everybody.
      if (!known || !clients.includes(client)) return;
      if (client.follows.length >= MOST_FOLLOWS) throw new SabirError(TOO_MANY_MESSAGES);
      client.follows.push({ prompt, after });
      if (client.follows.length === 1) run(client).catch(() => clients.dismiss(client));
    },
  };
}
