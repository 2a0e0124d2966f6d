import type { SseFrame } from '../core/sse.ts';
import { type FollowOptions, followTurn } from './follow-turn.ts';
import { retryAfterMs, toError, toRequestError } from './http.ts';

/**
 * `offline` without a network, or when three attempts in a row have failed: the server is away.
 * `refused` when the server answers with an error that no retry can mend; it is in `error`.
 */
export type ConnectionStatus = 'connecting' | 'open' | 'reconnecting' | 'offline' | 'refused';

export type Link = { status: ConnectionStatus; error?: Error };

/** Receives the frames of a follow stream, in order. */
export type FollowSink = {
  /** Of one read; none for a sign of life. A turn's frames come once their id has. */
  onFrames(frames: SseFrame[]): void;
  onLink(link: Link): void;
};

/** How many attempts may fail before the server counts as away. */
const AWAY_AFTER = 3;
const FIRST_WAIT_MS = 500;
/** A connection that lasted this long ends the longer and longer waits. */
const STEADY_MS = 5_000;

/** Stands for "nothing read yet": a connection that can always be made anew. */
const START = ':0';

/**
 * Reads a follow stream over as many connections as it takes, until the signal aborts or the server
 * refuses: then it rejects.
 */
export async function readFollow(
  { maxWaitMs = 10_000, ...options }: FollowOptions,
  request: (cursor: string | undefined, signal: AbortSignal) => Promise<Response>,
  cursor: string | undefined,
  { onFrames, onLink }: FollowSink,
  signal: AbortSignal,
): Promise<void> {
  let frames: SseFrame[] = [];
  /** The cursor behind `frames`. */
  let next = cursor;
  /** Attempts without a frame, and those without a connection that lasted. */
  let failures = 0;
  let attempts = 0;
  let openedAt = Infinity;
  let askedMs = 0;
  let hasRenewed = false;
  await followTurn(
    options,
    signal,
    false,
    async (_, link) => {
      askedMs = 0;
      frames = [];
      next = cursor;
      openedAt = Infinity;
      const response = await request(cursor, link);
      if (!response.ok) {
        askedMs = retryAfterMs(response);
        throw await toRequestError(response);
      }
      if (!/^text\/event-stream\b/i.test(response.headers.get('content-type') ?? ''))
        throw toError(undefined, { status: 406 });
      return response;
    },
    (frame, held: SseFrame[]) => {
      if (frame.event?.startsWith('follow.')) {
        held.length = 0;
        frames.push(frame);
        if (failures > 0 || frame.event === 'follow.state') onLink({ status: 'open' });
        failures = 0;
        openedAt = Math.min(openedAt, Date.now());
        hasRenewed = false;
      } else {
        held.push(frame);
        if (frame.id) {
          next = frame.id;
          frames.push(...held.splice(0));
        }
      }
      return next ?? START;
    },
    () => {
      const some = frames;
      frames = [];
      onFrames(some);
      cursor = next;
    },
    ({ status = 0 }) => {
      if (status === 401 && !hasRenewed) {
        // Headers are made anew for each request: an expired token has a successor by now.
        hasRenewed = true;
        return Infinity;
      }
      return status === 0 || status === 408 || status === 429 || status >= 500 ? Infinity : 0;
    },
    () => {
      if (Date.now() - openedAt > STEADY_MS) attempts = 0;
      const isOffline = globalThis.navigator?.onLine === false;
      onLink({ status: isOffline || ++failures > AWAY_AFTER ? 'offline' : 'reconnecting' });
      if (isOffline) return maxWaitMs;
      const ms = Math.min(maxWaitMs, FIRST_WAIT_MS * 2 ** attempts++);
      return Math.max(ms * Math.random(), askedMs);
    },
  );
}
