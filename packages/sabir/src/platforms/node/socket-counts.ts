import { type ErrorKind, SOCKETS_FULL, TOO_MANY_SOCKETS } from '../../core/errors.ts';
import { createByteBudgets } from './byte-budgets.ts';
import type { SocketLimits } from './session-server-options.ts';

type Limits = Pick<
  SocketLimits,
  'sockets' | 'socketsPerUser' | 'socketsPerSession' | 'initBytesPerSecond'
>;
type Refusal = { limit: keyof Limits; kind: ErrorKind };

/** What a connection costs beside the bytes of its `init`. */
const CONNECT_BYTES = 100_000;

/** The open sockets of clients: how many there are in all, of each user and in each session. */
export function createSocketCounts(limits: Limits) {
  const ofUser = new Map<string, number>();
  const inSession = new Map<string, number>();
  const initBytes = createByteBudgets(limits.initBytesPerSecond);
  let total = 0;

  return {
    get total() {
      return total;
    },
    mostOfUser: () => Math.max(0, ...ofUser.values()),
    mostInSession: () => Math.max(0, ...inSession.values()),
    /** Which limit one more would exceed. */
    refusalOf(userId: string, sessionId: string): Refusal | undefined {
      if (total >= limits.sockets) return { limit: 'sockets', kind: SOCKETS_FULL };
      if ((ofUser.get(userId) ?? 0) >= limits.socketsPerUser) {
        return { limit: 'socketsPerUser', kind: TOO_MANY_SOCKETS };
      }
      if ((inSession.get(sessionId) ?? 0) >= limits.socketsPerSession) {
        return { limit: 'socketsPerSession', kind: TOO_MANY_SOCKETS };
      }
      if (initBytes.isSpent(userId)) return { limit: 'initBytesPerSecond', kind: TOO_MANY_SOCKETS };
      return undefined;
    },
    /** This user was sent an `init` of so many bytes. */
    spendInit: (userId: string, bytes: number) => initBytes.spend(userId, CONNECT_BYTES + bytes),
    /** Gives the function to call when the socket is gone. */
    add(userId: string, sessionId: string): () => void {
      const change = (by: 1 | -1) => {
        total += by;
        count(ofUser, userId, by);
        count(inSession, sessionId, by);
      };
      change(1);
      return () => change(-1);
    },
  };
}

function count(counts: Map<string, number>, key: string, by: number): void {
  const next = (counts.get(key) ?? 0) + by;
  if (next > 0) counts.set(key, next);
  else counts.delete(key);
}
