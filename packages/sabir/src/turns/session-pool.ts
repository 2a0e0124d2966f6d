import { SabirError, UPSTREAM_UNREACHABLE } from '../core/errors.ts';
import { forget } from '../core/forget.ts';
import { NO_LONGER_NEEDED } from '../core/no-longer-needed.ts';
import { startTimeout, type Timer } from '../core/timers.ts';
import { unlessAborted } from '../core/within.ts';
import type { SessionIdentity, Upstream, UpstreamSession } from './upstream.ts';

export type SessionLease = { readonly session: UpstreamSession; release(): void };

type Entry = {
  opening?: Promise<UpstreamSession>;
  session?: UpstreamSession;
  giveUp: AbortController;
  leases: number;
  userId: string;
  isRetired?: true;
  linger?: Timer;
};

export type SessionPool = {
  lease(identity: SessionIdentity, signal: AbortSignal): Promise<SessionLease>;
  /** A user's sessions are closed: those that are leased, when they are released. New leases open new ones. */
  retire(userId: string): void;
  readonly size: number;
  close(): void;
};

/** One that never becomes idle again is not kept for ever. */
const MOST_BUSY_MS = 600_000;
const LEAST_LOOK_MS = 1_000;
/** Turns that end together must not delay the others by the closing of their connections. */
const LEAST_LINGER_MS = 20;
/** So many linger at most; past that, the one that has been idle the longest is closed. Anybody can cause one. */
const MOST_IDLE = 500;

/**
 * One live session per session id, user *and* role, shared by all turns of it: what one person may
 * see is never read through another's connection. One that nobody uses lingers for a moment, since
 * the next message often comes soon, and for longer if it still has something to stop.
 */
export function createSessionPool(
  upstreamOf: (sessionId: string) => Upstream | Promise<Upstream>,
  lingerMs: number,
): SessionPool {
  const entries = new Map<string, Entry>();
  /** Connections without a lease and with nothing to stop, by their keys; the longest idle first. */
  const idle = new Map<string, Entry>();

  function drop(key: string, entry: Entry): void {
    if (entries.get(key) === entry) entries.delete(key);
    if (idle.get(key) === entry) idle.delete(key);
    entry.linger?.clear();
    entry.giveUp.abort(NO_LONGER_NEEDED);
    void forget(() => entry.session?.close());
  }

  function linger(key: string, entry: Entry, afterMs: number, busyMs = 0): void {
    entry.linger = startTimeout(afterMs, () => {
      const { session } = entry;
      const isNeeded = session?.isBusy && !session.isClosed && busyMs < MOST_BUSY_MS;
      if (!isNeeded) return drop(key, entry);
      const nextMs = Math.min(Math.max(lingerMs, LEAST_LOOK_MS), MOST_BUSY_MS - busyMs);
      linger(key, entry, nextMs, busyMs + nextMs);
    });
  }

  function rest(key: string, entry: Entry): void {
    linger(key, entry, Math.max(lingerMs, LEAST_LINGER_MS));
    if (entry.session?.isBusy) return;
    idle.set(key, entry);
    const [oldest] = idle;
    if (oldest && idle.size > MOST_IDLE) drop(...oldest);
  }

  async function open(entry: Entry, identity: SessionIdentity): Promise<UpstreamSession> {
    const { signal } = entry.giveUp;
    const upstream = await upstreamOf(identity.sessionId);
    const session = await upstream.open({ ...identity, signal });
    // Everybody left while it was being opened.
    if (signal.aborted) void forget(() => session.close());
    entry.session = session;
    return session;
  }

  function addEntry(key: string, identity: SessionIdentity): Entry {
    const entry: Entry = { giveUp: new AbortController(), leases: 0, userId: identity.user.id };
    entry.opening = open(entry, identity);
    entry.opening.catch(() => drop(key, entry));
    entries.set(key, entry);
    return entry;
  }

  return {
    async lease(identity, signal) {
      const { sessionId, user, role } = identity;
      const key = JSON.stringify([sessionId, user.id, role]);
      let entry = entries.get(key);
      if (entry?.session?.isClosed) {
        drop(key, entry);
        entry = undefined;
      }
      entry ??= addEntry(key, identity);
      const leased = entry;
      leased.leases++;
      leased.linger?.clear();
      idle.delete(key);
      let isReleased = false;
      const release = () => {
        if (isReleased) return;
        isReleased = true;
        leased.leases--;
        if (leased.leases > 0) return;
        if (leased.isRetired) drop(key, leased);
        if (entries.get(key) !== leased) return;
        if (!leased.session || leased.session.isClosed) drop(key, leased);
        else rest(key, leased);
      };
      try {
        const session = await unlessAborted(
          leased.opening as Promise<UpstreamSession>,
          signal,
          () => new SabirError(UPSTREAM_UNREACHABLE, 'It took too long.'),
        );
        return { session, release };
      } catch (error) {
        release();
        throw error;
      }
    },
    retire(userId) {
      for (const [key, entry] of entries) {
        if (entry.userId !== userId) continue;
        entry.isRetired = true;
        if (entry.leases === 0) drop(key, entry);
        else entries.delete(key);
      }
    },
    get size() {
      return entries.size;
    },
    close() {
      for (const [key, entry] of entries) drop(key, entry);
    },
  };
}
