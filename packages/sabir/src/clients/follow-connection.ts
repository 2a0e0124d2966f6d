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
  let failures = 0;
  let askedMs = 0;
  let hasRenewed = false;
  onLink({ status: 'connecting' });
  await followTurn(
    options,
    signal,
    false,
    async (_, link) => {
      askedMs = 0;
      frames = [];
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
        hasRenewed = false;
      } else {
        held.push(frame);
        if (frame.id) {
          cursor = frame.id;
          frames.push(...held.splice(0));
        }
      }
      return cursor ?? START;
    },
    () => {
      onFrames(frames);
      frames = [];
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
      failures++;
      const isAway = failures > AWAY_AFTER || globalThis.navigator?.onLine === false;
      onLink({ status: isAway ? 'offline' : 'reconnecting' });
      const ms = Math.min(maxWaitMs, FIRST_WAIT_MS * 2 ** (failures - 1));
      return Math.max(ms * Math.random(), askedMs);
    },
  );
}

/** Resolves when the page is shown again or its network is back. */
export function untilShown(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      if (!globalThis.document?.hidden) resolve();
    };
    for (const type of ['online', 'pageshow', 'visibilitychange'])
      globalThis.addEventListener?.(type, done, { signal });
    signal.addEventListener('abort', () => resolve());
  });
}
