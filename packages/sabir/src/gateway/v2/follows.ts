import { EVENTS_GONE, SabirError, TOO_MANY_MESSAGES } from '../../core/errors.ts';
import { NO_LONGER_NEEDED } from '../../core/no-longer-needed.ts';
import type { Clock, PromptInfo, Session } from '../../sessions/index.ts';
import { createV2Encoder } from '../../wires/agent-ops/encode.ts';
import type { Client, Clients, Follow } from './clients.ts';

type FollowsOptions = {
  session: Session;
  clients: Clients;
  clock: Clock;
  /** The number of the last chunk of this turn that all clients have. */
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

  async function run(client: Client, prompts: Map<Follow, PromptInfo>): Promise<void> {
    for (let follow = client.follows[0]; follow; follow = client.follows[0]) {
      await send(client, follow, prompts.get(follow) as PromptInfo);
      client.follows.shift();
      prompts.delete(follow);
    }
    clients.release(client);
  }

  async function send(client: Client, follow: Follow, prompt: PromptInfo): Promise<void> {
    const { turnId, messageId, promptId, channelType, channelId } = prompt;
    const encoder = createV2Encoder({
      turnId: messageId,
      promptId,
      channel: { channelType, channelId },
    });
    const reading = new AbortController();
    for await (const batch of log.read(turnId, 0, reading.signal, STEP_BYTES)) {
      for (const { seq, chunk } of batch) {
        for (const event of encoder.push(chunk)) {
          if (seq > follow.after && event.type !== 'agentStatus') {
            clients.tellNow(client, JSON.stringify({ ...event, seq }));
          }
        }
      }
      const last = batch.at(-1)?.seq ?? 0;
      await untilTaken(client);
      // From here on it gets what the others get.
      const isLevel = session.running?.turnId === turnId && last >= positionOf(turnId);
      if (!clients.includes(client) || isLevel) break;
    }
    reading.abort(NO_LONGER_NEEDED);
  }

  async function untilTaken({ socket }: Client): Promise<void> {
    while ((socket.bufferedAmount ?? 0) > STEP_BYTES) {
      await new Promise<void>((resolve) => void clock.after(RETRY_MS, resolve));
    }
  }

  const pending = new WeakMap<Client, Map<Follow, PromptInfo>>();

  return {
    /** Throws if the log no longer has the turn, or never had so much of it. */
    async add(client: Client, prompt: PromptInfo, after: number): Promise<void> {
      const { turnId, messageId } = prompt;
      const known = await log.get(turnId);
      const isGone = known ? after > known.lastSeq : prompt.status === 'ended';
      if (isGone) throw new SabirError(EVENTS_GONE);
      // A turn that has not begun has nothing to follow yet: its events come to everybody.
      if (!known || !clients.includes(client)) return;
      if (client.follows.length >= MOST_FOLLOWS) throw new SabirError(TOO_MANY_MESSAGES);
      const follow: Follow = { turnId: messageId, after };
      const prompts = pending.get(client) ?? new Map<Follow, PromptInfo>();
      pending.set(client, prompts);
      prompts.set(follow, prompt);
      client.follows.push(follow);
      if (client.follows.length === 1) run(client, prompts).catch(() => clients.dismiss(client));
    },
  };
}
