import {
  ACCESS_REVOKED,
  DISCONNECTED,
  type ErrorKind,
  NOT_FOUND,
  SabirError,
} from '../core/errors.ts';
import { startTimer, type Timer } from '../core/timers.ts';
import type { Logger } from '../core/translator.ts';
import { createGroups } from '../turns/groups.ts';
import type { User } from '../turns/upstream.ts';
import type { Guard } from './access.ts';
import type { Place } from './chat-route.ts';
import { loggable } from './hook-error.ts';

/** So many people are asked about at once. */
const AT_ONCE = 10;

/** Without a turn, it stays when one ends. */
type OpenStream = { readonly turnId?: string; letGo(why: ErrorKind): void };

/** The streams of one person in one session: one question answers for all of them. */
type Group = { place: Place; streams: Set<OpenStream> };

export type OpenStreams = ReturnType<typeof createOpenStreams>;

/**
 * The streams that are open, by person and session. `access` and `enabled` are asked again for each from time to time,
 * and a person can be disconnected. Their turns go on: only the streams end.
 */
export function createOpenStreams({
  guard,
  accessCheckMs,
  logger,
}: {
  guard: Pick<Guard, 'permit' | 'checkSwitch'>;
  accessCheckMs: number;
  logger: Logger | undefined;
}) {
  const groups = new Map<string, Group>();
  const byTurn = createGroups<string, OpenStream>();
  let timer: Timer | undefined;
  let isChecking = false;

  async function check({ place, streams }: Group): Promise<void> {
    const { user, sessionId, caller } = place;
    try {
      if (caller.kind === 'user') await guard.permit(user, sessionId, 'viewer');
      else await guard.checkSwitch(user, sessionId);
    } catch (error) {
      // Only a clear no ends a stream: a hook that fails may work again the next time.
      if (error instanceof SabirError && error.code === NOT_FOUND.code) {
        logger?.info?.('access was revoked: streams ended', { sessionId, count: streams.size });
        for (const stream of [...streams]) stream.letGo(ACCESS_REVOKED);
      } else {
        logger?.warn('access could not be checked again', { sessionId, error: loggable(error) });
      }
    }
  }

  async function checkAll(): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    const waiting = groups.values();
    const work = async () => {
      for (const group of waiting) await check(group);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    isChecking = false;
  }

  return {
    /** Gives what to call when the stream has ended. */
    add(place: Place, stream: OpenStream): () => void {
      const key = JSON.stringify([place.sessionId, place.caller, claimsOf(place.user)]);
      const group = groups.get(key) ?? { place, streams: new Set() };
      groups.set(key, group);
      group.streams.add(stream);
      const { turnId } = stream;
      if (turnId !== undefined) byTurn.add(turnId, stream);
      if (accessCheckMs > 0 && accessCheckMs < Infinity) {
        timer ??= startTimer(accessCheckMs, () => void checkAll());
      }
      return () => {
        group.streams.delete(stream);
        if (turnId !== undefined) byTurn.delete(turnId, stream);
        if (group.streams.size === 0) groups.delete(key);
        if (groups.size > 0) return;
        timer?.clear();
        timer = undefined;
      };
    },
    disconnect(userId: string): void {
      for (const { place, streams } of [...groups.values()]) {
        if (place.caller.kind !== 'user' || place.user.id !== userId) continue;
        for (const stream of [...streams]) stream.letGo(DISCONNECTED);
      }
    },
    /** Ends all streams of one turn. */
    endTurn(turnId: string, why: ErrorKind): void {
      for (const stream of byTurn.get(turnId)) stream.letGo(why);
    },
    close(): void {
      timer?.clear();
    },
  };
}

/** Two tokens of one person may allow different things. */
function claimsOf(user: User): string {
  try {
    return JSON.stringify(user);
  } catch {
    return user.id;
  }
}
