import type { Channel } from '../core/translator.ts';
import type { User } from '../turns/upstream.ts';
import type {
  Clock,
  SessionAgentOptions,
  SessionLimits,
  SessionRole,
  SessionSocket,
} from './options.ts';
import type { ConnectedUser } from './protocol.ts';

/** Who is on a client's socket, and what they want to be told. */
export type ClientInfo = {
  user: User;
  role: SessionRole;
  /** Only this channel's turns. Default: all. */
  channel?: Channel;
  /**
   * Whether it is also told what is for old clients: `chunk`, and the whole message at every
   * change. Default true.
   */
  hasSnapshots?: boolean;
  /** How many messages it wants to be told first. Default: the session's limit. */
  messages?: number;
  /** A gateway that the session believes: it checks, and reports, what its users do. */
  isGateway?: boolean;
};

/** A turn, and the last of its events that a client has. */
export type Follow = { readonly turnId: string; after: number };

export type Client = ClientInfo & {
  socket: SessionSocket;
  /** Since when more waits to be sent than may, in milliseconds since 1970. */
  behindSince?: number | undefined;
  /** The turns whose stored events it is being sent, one after the other. */
  follows: Follow[];
  /** What waits until it has those. */
  held: string[];
  heldBytes: number;
};

const TOO_SLOW = 4008;
/** How long somebody may be behind: a large message takes its time on the way. */
const SLOW_MS = 5_000;
/** With more than so many times the limit unread on all sockets of a user, none of them is waited for. */
const AT_MOST = 8;

type ClientsOptions = {
  limits: Pick<SessionLimits, 'clientBufferBytes'>;
  clock: Clock;
  onLimit: SessionAgentOptions['onLimit'];
};

/** The clients of a session. A frame is encoded once, whoever it goes to. */
export function createClients({ limits, clock, onLimit }: ClientsOptions) {
  const clients = new Set<Client>();

  function send(client: Client, frame: string, turnId?: string): void {
    if (client.follows.length === 0) sendNow(client, frame);
    // It will find this one in the storage.
    else if (!client.follows.some((followed) => followed.turnId === turnId)) hold(client, frame);
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
      // It is gone; the platform will say so.
    }
  }

  /** Closes the socket of one that is too far behind: it reconnects and follows what it missed. */
  function dismiss(client: Client): void {
    if (!clients.delete(client)) return;
    onLimit?.('clientBufferBytes');
    client.socket.close(TOO_SLOW, 'too far behind');
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

  function broadcastFrame(frame: string, channel: Channel, turnId?: string): void {
    for (const client of clients) if (isIn(client, channel)) send(client, frame, turnId);
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
    all: (): readonly Client[] => [...clients],
    /** False if it was let go before. */
    remove: (client: Client) => clients.delete(client),
    /** It was not let go. */
    includes: (client: Client) => clients.has(client),
    tell: (client: Client, event: object) => send(client, JSON.stringify(event)),
    /** Also to one that is being sent the events of a turn. */
    tellNow: sendNow,
    dismiss,
    /** It has the events of the turns it follows: what was held back can go. */
    release(client: Client): void {
      const { held } = client;
      Object.assign(client, { held: [], heldBytes: 0 });
      for (const frame of held) send(client, frame);
    },
    /** To everybody, whichever channel they follow. */
    broadcast(event: object): void {
      if (clients.size === 0) return;
      const frame = JSON.stringify(event);
      for (const client of clients) send(client, frame);
    },
    /** To everybody, what each of those who follow the same is to be told. */
    broadcastEach(toEvent: (client: Client) => object): void {
      const frames = new Map<string, string>();
      for (const client of clients) {
        const key = JSON.stringify(client.channel ?? null);
        const frame = frames.get(key) ?? JSON.stringify(toEvent(client));
        frames.set(key, frame);
        send(client, frame);
      }
    },
    /** To those who follow the channel. */
    broadcastIn: (event: object, channel: Channel) =>
      broadcastFrame(JSON.stringify(event), channel),
    broadcastFrame,
    /** To those of them who are told in the old way. */
    broadcastSnapshot(frame: string, channel: Channel): void {
      for (const client of clients) {
        if (client.hasSnapshots !== false && isIn(client, channel)) send(client, frame);
      }
    },
    has: (userId: string) => [...clients].some(({ user }) => user.id === userId),
    users(): ConnectedUser[] {
      const users = new Map<string, ConnectedUser>();
      for (const { user } of clients) users.set(user.id, toConnectedUser(user));
      return [...users.values()];
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

export type Clients = ReturnType<typeof createClients>;

export function isIn({ channel }: Pick<ClientInfo, 'channel'>, place: Channel): boolean {
  if (!channel) return true;
  return channel.channelType === place.channelType && channel.channelId === place.channelId;
}

export function toConnectedUser({ id, name }: User): ConnectedUser {
  return typeof name === 'string' ? { id, name } : { id };
}
