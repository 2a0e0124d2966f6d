import { type TURN_LOST, TURN_LOST_MESSAGE } from '../core/errors.ts';
import { createFrameReader, type SseFrame } from '../core/sse.ts';
import { toError } from './http.ts';
import { PAGE_EVENTS } from './page-events.ts';

export type FollowOptions = {
  /**
   * A connection that is silent for this long is dead. Default 45,000: three missed signs of life.
   * 0 for servers that send none.
   */
  silenceMs?: number;
  /** The longest wait before the next attempt to reconnect. Default 10,000. */
  maxWaitMs?: number;
};

export type BodyReader = ReadableStreamDefaultReader<Uint8Array>;

/**
 * Reads one turn to its end, over as many connections as it takes. Resolves when the turn is over,
 * when the server has nothing, and when the caller aborts; rejects when the turn cannot be followed
 * any more. The caller decides what a frame is and how many attempts a failure is worth.
 *
 * Parameters instead of one options object: minifiers do not shorten field names, and this code goes
 * into a page.
 *
 * @param signal Aborts to leave; the turn goes on. The caller aborts it at the end as well: a last body
 *   that ends by itself leaves its connection to other requests.
 * @param isSend Without a cursor, `connect` sends something: an upload has no time limit.
 * @param connect Asks the server for what follows the cursor; where there is none, sends what is to
 *   be sent, or asks for whatever runs. Rejects where the server refuses.
 * @param take Gets every frame and returns the cursor that covers what it has used. It keeps frames
 *   without a cursor in `held`, which is dropped with the connection: a resume sends them again.
 * @param settle Behind the frames of one read, and behind the last. Says whether those were the end
 *   of the turn; nothing more is read until it has.
 * @param getPatience How many attempts without any progress a failure is worth; infinitely many, and
 *   this is none of them.
 * @param onWait Called before the wait for each attempt. Returns how long to wait.
 */
export async function followTurn<Held>(
  {
    silenceMs = 45_000,
    waitMs = 500,
    maxWaitMs = 10_000,
  }: FollowOptions & {
    /** The first wait, doubled with every attempt. */
    waitMs?: number | undefined;
  },
  signal: AbortSignal,
  isSend: unknown,
  connect: (cursor: string | undefined, signal: AbortSignal, attempts: number) => Promise<Response>,
  take: (frame: SseFrame, held: Held[], turnId: string | null) => string | null | undefined,
  settle: (reader: BodyReader, isEnd: boolean) => unknown,
  getPatience: (
    error: Error & { status?: number },
    cursor: string | undefined,
    reader: BodyReader | undefined,
  ) => number,
  onWait?: (ms: number, attempts: number) => number,
): Promise<void> {
  let cursor: string | undefined;
  let attempts = 0;
  let link: AbortController;
  let reader: BodyReader | undefined;
  let timer: ReturnType<typeof setTimeout> | 0 | undefined;
  /** Ends a pause between two attempts. */
  let wake: (() => void) | undefined;
  const cut = () => {
    clearTimeout(timer as number);
    link.abort();
    // Not every fetch heeds its signal.
    reader?.cancel().catch(() => undefined);
    wake?.();
  };
  let staleAt: number;
  // The page is shown again, or its network is back: the next attempt does not wait. A connection
  // from before the network went away is half-open; one that missed a sign of life while the page
  // slept may be. Without a cursor neither is cut: it could not be resumed.
  // A loop of its own: `onShown` costs a page 16 bytes more.
  for (const type of PAGE_EVENTS)
    globalThis.addEventListener?.(
      type,
      () =>
        globalThis.document?.hidden ||
        ((link.signal.aborted || (cursor && (type === 'online' || Date.now() > staleAt))) && cut()),
      { signal },
    );
  const watch = () => {
    staleAt = Date.now() + silenceMs / 2;
    clearTimeout(timer as number);
    timer = silenceMs && setTimeout(cut, silenceMs);
  };
  signal.onabort = cut;
  while (!signal.aborted) {
    link = new AbortController();
    if (cursor || !isSend) watch();
    try {
      const { status, body, headers } = await connect(cursor, link.signal, attempts);
      const turnId = headers.get('x-sabir-turn');
      const held: Held[] = [];
      const decoder = new TextDecoder();
      const read = createFrameReader((frame) => {
        const next = take(frame, held, turnId);
        if (next && next !== cursor) {
          cursor = next;
          attempts = 0;
        }
      });
      reader = body?.getReader();
      // By its status: in some browsers an answer without a body has an empty one.
      if (status === 204) {
        if (!cursor) return;
        // It has forgotten the turn.
        attempts = Infinity;
      }
      if (turnId) cursor ??= `${turnId}:0`;
      while (reader) {
        watch();
        const { done, value } = await reader.read();
        // The time that `settle` takes is not the server's silence.
        clearTimeout(timer as number);
        read(decoder.decode(value, { stream: true }));
        if (await settle(reader, done)) return;
        if (done) break;
      }
      throw toError(TURN_LOST_MESSAGE, {
        status: 502,
        code: 'turn-lost',
        retryable: true,
      } satisfies Partial<typeof TURN_LOST>);
    } catch (error) {
      cut();
      if (signal.aborted) return;
      const patience = getPatience(error as Error, cursor, reader);
      if (attempts >= patience) throw error;
      let ms = maxWaitMs;
      // An attempt without a network is none, and the network's return ends the wait.
      if (navigator.onLine !== false) {
        ms = Math.min(ms, waitMs * 2 ** attempts) * Math.random();
        if (patience < Infinity) attempts++;
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
        timer = setTimeout(resolve, onWait ? onWait(ms, attempts) : ms);
      });
    }
  }
}
