import type { Role } from '../core/roles.ts';
import type { User } from '../turns/upstream.ts';
import type { Guard } from './guard.ts';
import type { Clock, SessionNotice } from './options.ts';
import type { SessionStorage } from './storage.ts';

/** On a socket of their own, or through a gateway. */
type Connection = 'socket' | 'stream';
type Present = { readonly user: User; readonly role: Role; readonly by: Connection };

export type ConnectedUser = { id: string; name?: string };

type PeopleOptions = {
  storage: SessionStorage;
  clock: Clock;
  guard: Guard;
  notify(notice: SessionNotice): void;
};

/** The people who are in a session now, each with one or more connections. */
export function createPeople({ storage, clock, guard, notify }: PeopleOptions) {
  const present = new Set<Present>();

  const isPresent = (userId: string) => [...present].some(({ user }) => user.id === userId);

  /**
   * A session without a prompt is not stored, and neither are its visitors. A storage that fails keeps no user from coming
   * and going.
   */
  function save({ user, role }: Present): void {
    guard(() => {
      if (storage.bytes() === 0) return;
      const now = clock.now();
      storage.saveParticipant({
        ...toConnectedUser(user),
        role,
        firstSeenAt: storage.participant(user.id)?.firstSeenAt ?? now,
        lastSeenAt: now,
      });
    });
  }

  return {
    /** How many connections there are. */
    get size() {
      return present.size;
    },
    /** How many of them are sockets. */
    get sockets() {
      let sockets = 0;
      for (const { by } of present) if (by === 'socket') sockets++;
      return sockets;
    },
    users(): ConnectedUser[] {
      const users = new Map<string, ConnectedUser>();
      for (const { user } of present) users.set(user.id, toConnectedUser(user));
      return [...users.values()];
    },
    /** Gives the function to call when the connection is gone. */
    enter(user: User, role: Role, by: Connection = 'socket'): () => void {
      const one: Present = { user, role, by };
      save(one);
      const isNew = !isPresent(user.id);
      present.add(one);
      if (isNew) notify({ type: 'joined', user });
      return () => {
        if (!present.delete(one)) return;
        if (!isPresent(user.id)) notify({ type: 'left', user });
        save(one);
      };
    },
    /** Stores everybody who is there: the session has its first prompt. */
    remember(): void {
      for (const one of present) {
        const now = clock.now();
        const { user, role } = one;
        const seen = { firstSeenAt: now, lastSeenAt: now };
        storage.saveParticipant({ ...toConnectedUser(user), role, ...seen });
      }
    },
  };
}

export function toConnectedUser({ id, name }: User): ConnectedUser {
  return typeof name === 'string' ? { id, name } : { id };
}
