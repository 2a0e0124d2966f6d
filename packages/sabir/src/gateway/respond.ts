import {
  type ErrorKind,
  LOG_FAILED,
  SHUTTING_DOWN,
  SIGN_IN_EXPIRED,
  VIEWER_TOO_SLOW,
} from '../errors.ts';
import { chunkBytes } from '../turns/chunk-bytes.ts';
import { compactLogged } from '../turns/compact-logged.ts';
import type { AnyTurnLog, LoggedChunk, TurnInfo } from '../turns/log.ts';
import { afterThisTick, startTimeout, startTimer, type Timer } from '../turns/timers.ts';
import { findTurn } from './find-turn.ts';
import type { FrameEncoder } from './frame-encoder.ts';

/** How a viewer's stream came to its end; one that goes to answer is expected back. */
export type Departure = 'ended' | 'left' | 'let-go' | 'to-answer';

export type ViewOptions = {
  log: AnyTurnLog;
  turn: TurnInfo;
  /** The highest number this viewer has seen. */
  after: number;
  /** Its signal tells that the client is gone, where nobody cancels the body. */
  request: Request;
  /** For this viewer's cursor, on its wire. */
  frames: FrameEncoder;
  keepAliveMs: number;
  maxBacklogBytes: number;
  /** When what proved who this is runs out. */
  expiresAt?: number | undefined;
  onFirstChunk?(): void;
  onReplay?(bytes: number): void;
  onSlow?(): void;
  /** The log could not be read. */
  onError?(error: unknown): void;
  /** Runs once. */
  onDeparture?(how: Departure): void;
};

const KEEP_ALIVE = new TextEncoder().encode(': keep-alive\n\n');

/**
 * One viewer of one turn: reads the log from a cursor and writes SSE. It is pulled, so a slow
 * viewer costs a cursor and the batch it is busy with, not a buffer.
 */
export function viewTurn(options: ViewOptions): ReadableStream<Uint8Array> {
  const { log, turn, after, frames, expiresAt } = options;
  const reading = new AbortController();
  const batches = log.read(turn.turnId, frames.from ?? 0, reading.signal)[Symbol.asyncIterator]();
  let isWaiting = false;
  let isOver = false;
  let hasFinished = false;
  let isFirst = true;
  /** This viewer is let go to answer. */
  let isPausing = false;
  let keepAlive: Timer | undefined;
  let expiry: Timer | undefined;
  let onGone: (() => void) | undefined;

  function depart(how: Departure): void {
    if (isOver) return;
    isOver = true;
    keepAlive?.clear();
    expiry?.clear();
    // Through the request, not past it: its signal is silent once it has been collected.
    if (onGone) options.request.signal.removeEventListener('abort', onGone);
    reading.abort();
    options.onDeparture?.(how);
  }

  /** `isBehind`: the batch was there before this viewer asked for it. */
  function toBytes(given: LoggedChunk[], isBehind: boolean): Uint8Array | undefined {
    const pause = frames.pauseIn?.(given);
    isPausing = pause !== undefined;
    const batch = pause === undefined ? given : given.filter(({ seq }) => seq <= pause);
    const isReplay = isFirst && turn.lastSeq > after;
    // What was seen goes through the encoder all the same, and is never merged with what was not.
    const found = batch.findIndex(({ seq }) => seq > after);
    const first = found < 0 ? batch.length : found;
    let fresh = first === 0 ? batch : batch.slice(first);
    if (isReplay) fresh = compactLogged(fresh);
    else if (isBehind && first === 0 && bytesOf(batch) > options.maxBacklogBytes) {
      // What one chunk weighs cannot be made less by waiting.
      let largest = 0;
      for (const { chunk } of batch) largest = Math.max(largest, chunkBytes(chunk));
      fresh = compactLogged(batch);
      if (bytesOf(fresh) > options.maxBacklogBytes + largest) return undefined;
    }
    if (isFirst) options.onFirstChunk?.();
    isFirst = false;
    hasFinished ||= batch.at(-1)?.chunk.type === 'finish';
    if (first > 0) frames.encode(batch.slice(0, first));
    const bytes = frames.encode(fresh);
    if (isReplay) options.onReplay?.(bytes.length);
    return bytes;
  }

  /** The turn goes on, this viewer does not. */
  function letGo(controller: ReadableStreamDefaultController<Uint8Array>, why: ErrorKind): void {
    if (!isOver) close(controller, frames.farewell(why), 'let-go');
  }

  function close(
    controller: ReadableStreamDefaultController<Uint8Array>,
    last: Uint8Array,
    how: Departure,
  ): void {
    if (last.length > 0) controller.enqueue(last);
    controller.close();
    depart(how);
  }

  /** Sends what comes next; gives false while there is nothing in it for this client. */
  async function sendNext(controller: ReadableStreamDefaultController<Uint8Array>) {
    isWaiting = true;
    let hasWaited = false;
    afterThisTick(() => {
      hasWaited = true;
    });
    const next = await batches.next();
    isWaiting = false;
    if (isOver) return true;
    if (next.done) {
      // The log went away under a turn that had not ended.
      const isWhole = hasFinished || (await hasEnded(log, turn));
      if (isOver) return true;
      if (!isWhole) letGo(controller, SHUTTING_DOWN);
      else close(controller, frames.end(), 'ended');
      return true;
    }
    const bytes = toBytes(next.value, !hasWaited);
    if (bytes === undefined) {
      options.onSlow?.();
      letGo(controller, VIEWER_TOO_SLOW);
    } else if (bytes.length > 0) controller.enqueue(bytes);
    if (bytes && isPausing) close(controller, frames.end(), 'to-answer');
    return isOver || bytes?.length !== 0;
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        onGone = () => {
          if (isOver) return;
          controller.close();
          depart('left');
        };
        const { signal } = options.request;
        if (signal.aborted) return onGone();
        signal.addEventListener('abort', onGone);
        if (frames.opening) controller.enqueue(frames.opening);
        if (options.keepAliveMs > 0 && options.keepAliveMs < Infinity) {
          keepAlive = startTimer(options.keepAliveMs, () => {
            // A viewer that is behind needs no proof of life, nor one that has not taken the last.
            if (isWaiting && controller.desiredSize === 0) controller.enqueue(KEEP_ALIVE);
          });
        }
        if (expiresAt === undefined) return;
        expiry = startTimeout(expiresAt - Date.now(), () => letGo(controller, SIGN_IN_EXPIRED));
      },
      async pull(controller) {
        try {
          while (!(await sendNext(controller)));
        } catch (error) {
          options.onError?.(error);
          letGo(controller, LOG_FAILED);
        }
      },
      cancel() {
        depart('left');
      },
    },
    { highWaterMark: 0 },
  );
}

async function hasEnded(log: AnyTurnLog, turn: TurnInfo): Promise<boolean> {
  return (await findTurn(log, turn.turnId, turn))?.outcome !== undefined;
}

function bytesOf(entries: LoggedChunk[]): number {
  let bytes = 0;
  for (const { chunk } of entries) bytes += chunkBytes(chunk);
  return bytes;
}
