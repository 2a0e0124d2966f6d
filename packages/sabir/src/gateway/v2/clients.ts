import type { Role } from '../../core/roles.ts';
import type { Channel } from '../../core/translator.ts';
import {
  type Clock,
  isSameChannel,
  type PromptInfo,
  type SessionLimits,
  type SessionSocket,
} from '../../sessions/index.ts';
import type { User } from '../../turns/upstream.ts';

/** The user of a V2 socket, and what the socket asked for. */
export type ClientInfo = {
  user: User;
  role: Role;
  /** Only this channel's turns. @default all */
  channel?: Channel;
  /** Whether it also gets what is for old clients: `chunk`, and the whole message at every change. @default true */
  hasSnapshots?: boolean;
  /** How many messages `init` holds. @default the session's limit */
  messages?: number;
  /** Gets the size of `init`. */
  onInit?(bytes: number): void;
};

/** Where an event comes from: a turn, by V2's name for it, and the number of the chunk. */
export type Place = { readonly turnId: string; readonly seq: number };

/** A turn that a client reads from the log, and the last of its events that the client has. */
export type Follow = { readonly prompt: PromptInfo; readonly after: number };

export type Client = ClientInfo & {
  readonly socket: SessionSocket;
  /** Since when more waits to be sent than may, in milliseconds since 1970. */
  behindSince?: number | undefined;
  /** The turns that it reads from the log, one after the other. */
  readonly follows: Follow[];
  /** How far it has read the turn that it followed last. */
  followed?: Place;
  /** Frames that wait until it has those. */
  held: string[];
  heldBytes: number;
};

/** The close code for a client that is too far behind: it comes back. */
export const TOO_FAR_BEHIND = 4008;
/** How long a client may be behind: a large message takes its time on the way. */
const SLOW_MS = 5_000;
/** With more than so many times the limit unread on all sockets of a user, the session waits for none of them. */
const AT_MOST = 8;

type ClientsOptions = {
  limits: Pick<SessionLimits, 'clientBufferBytes'>;
  clock: Clock;
  onLimit(limit: 'clientBufferBytes'): void;
};

export type Clients = ReturnType<typeof createClients>;

/** The V2 clients of a session. A frame is encoded once, however many clients it goes to. */
export function createClients({ limits, clock, onLimit }: ClientsOptions) {
  const clients = new Set<Client>();

  function send(client: Client, frame: string, place?: Place): void {
    const { follows, followed } = client;
    if (follows.length === 0) {
      const isKnown = place && place.turnId === followed?.turnId && place.seq <= followed.seq;
      if (!isKnown) sendNow(client, frame);
      // A client that follows the turn finds this frame in the log.
    } else if (!follows.some(({ prompt }) => prompt.messageId === place?.turnId)) {
      hold(client, frame);
    }
  }

  function hold(client: Client, frame: string): void {
    client.held.push(frame);
    client.heldBytes += frame.length;
    if (client.heldBytes > limits.clientBufferBytes) dismiss(client);
  }

  function sendNow(client: Client, frame: string): void {
    if (!clients.has(client)) return;
    try {
      if (isTooSlow(client)) dismiss(client);
      else client.socket.send(frame);
    } catch {
      // The socket is gone; the platform reports it.
    }
  }

  /** Closes the socket of a client that is too far behind: it reconnects and follows what it missed. */
  function dismiss(client: Client): void {
    if (!clients.delete(client)) return;
    onLimit('clientBufferBytes');
    client.socket.close(TOO_FAR_BEHIND, 'too far behind');
  }

  function isTooSlow(client: Client): boolean {
    const waiting = client.socket.bufferedAmount ?? 0;
    if (waiting <= limits.clientBufferBytes) {
      client.behindSince = undefined;
      return false;
    }
    client.behindSince ??= clock.now();
    const isLong = clock.now() - client.behindSince >= SLOW_MS;
    return isLong || unreadBy(client.user.id) > AT_MOST * limits.clientBufferBytes;
  }

  function unreadBy(userId: string): number {
    let unread = 0;
    for (const { user, socket } of clients) {
      if (user.id === userId) unread += socket.bufferedAmount ?? 0;
    }
    return unread;
  }

  return {
    get size() {
      return clients.size;
    },
    get hasSnapshots() {
      for (const { hasSnapshots } of clients) if (hasSnapshots !== false) return true;
      return false;
    },
    add: (client: Client) => void clients.add(client),
    remove: (client: Client) => clients.delete(client),
    /** False once it was removed or dismissed. */
    includes: (client: Client) => clients.has(client),
    tell: (client: Client, event: object) => send(client, JSON.stringify(event)),
    /** Also to one that follows a turn. */
    tellNow: sendNow,
    dismiss,
    /** It has the turns it followed: sends what was held back. */
    release(client: Client): void {
      const { held } = client;
      Object.assign(client, { held: [], heldBytes: 0 });
      for (const frame of held) send(client, frame);
    },
    /** To all clients, whichever channel they read. */
    broadcast(event: object): void {
      if (clients.size === 0) return;
      const frame = JSON.stringify(event);
      for (const client of clients) send(client, frame);
    },
    /** To all clients, with an event for each channel that they read. */
    broadcastEach(toEvent: (client: Client) => object): void {
      const frames = new Map<string, string>();
      for (const client of clients) {
        const key = JSON.stringify(client.channel ?? null);
        const frame = frames.get(key) ?? JSON.stringify(toEvent(client));
        frames.set(key, frame);
        send(client, frame);
      }
    },
    /** To the clients of a channel. An event that comes from the log has a place there. */
    broadcastIn(event: object, channel: Channel, place?: Place): void {
      let frame: string | undefined;
      for (const client of clients) {
        if (!isIn(client, channel)) continue;
        frame ??= JSON.stringify(event);
        send(client, frame, place);
      }
    },
    /** To the old clients of a channel. */
    broadcastSnapshot(frame: string, channel: Channel): void {
      for (const client of clients) {
        if (client.hasSnapshots !== false && isIn(client, channel)) send(client, frame);
      }
    },
    closeAll(code: number, reason: string): void {
      for (const { socket } of clients) {
        try {
          socket.close(code, reason);
        } catch {
          // It is gone already.
        }
      }
      clients.clear();
    },
  };
}

/** Whether a client reads this channel. */
export function isIn({ channel }: Pick<ClientInfo, 'channel'>, place: Channel): boolean {
  return !channel || isSameChannel(channel, place);
}
