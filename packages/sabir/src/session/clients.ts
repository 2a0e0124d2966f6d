import type { Channel } from '../translator.ts';
import type { User } from '../turns/upstream.ts';
import type { SessionRole, SessionSocket } from './options.ts';
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
};

export type Client = ClientInfo & { socket: SessionSocket };

const TOO_SLOW = 4008;

/** The clients of a session. A frame is encoded once, whoever it goes to. */
export function createClients(maxBufferedBytes: number) {
  const clients = new Set<Client>();

  function send(client: Client, frame: string): void {
    const { socket } = client;
    try {
      if ((socket.bufferedAmount ?? 0) > maxBufferedBytes) {
        clients.delete(client);
        socket.close(TOO_SLOW, 'too far behind');
      } else socket.send(frame);
    } catch {
      // It is gone; the platform will say so.
    }
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
    /** False if it was let go before. */
    remove: (client: Client) => clients.delete(client),
    tell: (client: Client, event: object) => send(client, JSON.stringify(event)),
    tellFrame: send,
    /** To everybody, whichever channel they follow. */
    broadcast(event: object): void {
      if (clients.size === 0) return;
      const frame = JSON.stringify(event);
      for (const client of clients) send(client, frame);
    },
    /** To those who follow the channel. */
    broadcastFrame(frame: string, channel: Channel): void {
      for (const client of clients) if (isIn(client, channel)) send(client, frame);
    },
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
