import { type TURN_LOST, TURN_LOST_MESSAGE } from '../core/errors.ts';
import { createByteDecoder, createFrameReader, type SseFrame } from '../core/sse.ts';

export type FollowOptions = {
  /**
   * A connection that is silent for this long is dead. Default 45,000: three missed signs of life.
   * 0 for servers that send none.
   */
  silenceMs?: number;
  /** The longest wait before the next attempt to reconnect. Default 10,000. */
  maxWaitMs?: number;
};

const LOST: Pick<typeof TURN_LOST, 'code' | 'status' | 'retryable'> = {
  code: 'turn-lost',
  status: 502,
  retryable: true,
};

/**
 * Reads one turn to its end, over as many connections as it takes. Resolves when the turn is over,
 * when the server has nothing, and when somebody left; rejects when the turn cannot be followed any
 * more.
 *
 * A server that names its turn (`x-sabir-turn`) numbers its frames: an `id` says that everything up
 * to it is there, so what comes without one waits for it, and is dropped with the connection,
 * because a resume sends it again. What such a server sends anew from its beginning begins with
 * `meta`, and whoever takes it begins anew too. Without a name nothing can be taken up again.
 *
 * What was sent and not answered at all is sent again: the server knows a message by its id.
 *
 * Not one object of them all: names of fields are not shortened, and this goes into a page.
 *
 * @param signal Whoever aborts leaves; the turn goes on.
 * @param connect Asks the server for what follows the cursor; where there is none, sends what is to
 *   be sent, or asks for whatever runs. Rejects with a `status` where the server refuses.
 * @param take Hears of each frame once.
 * @param settle Behind the frames of one read. Says whether those were the end of the turn.
 */
export async function followTurn(
  { silenceMs = 45_000, maxWaitMs = 10_000 }: FollowOptions,
  signal: AbortSignal,
  connect: (cursor: string | undefined, signal: AbortSignal, attempts: number) => Promise<Response>,
  take: (frame: SseFrame) => void,
  settle: () => unknown,
): Promise<void> {
  // In here, so that every bundler puts the numbers in their places.
  /** How often without any progress, before the answer counts as lost. */
  const MAX_ATTEMPTS = 20;
  /** The same, while nothing was heard of the turn at all. */
  const MAX_FIRST_ATTEMPTS = 3;
  let cursor: string | undefined;
  for (let attempts = 0; !signal.aborted; ) {
    const link = new AbortController();
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    const cut = () => {
      link.abort();
      // Not every fetch heeds its signal.
      reader?.cancel().catch(() => undefined);
    };
    // In thirds of the time. What is sent may take as long as it takes.
    let silence = attempts ? 0 : -1e9;
    const watch = silenceMs && setInterval(() => silence++ < 3 || cut(), silenceMs / 3);
    // Until the link is cut.
    signal.addEventListener('abort', cut, link);
    try {
      const { status, body, headers } = await connect(cursor, link.signal, attempts);
      const turnId = headers.get('x-sabir-turn');
      const waiting: SseFrame[] = [];
      const decode = createByteDecoder();
      const read = createFrameReader((frame) => {
        waiting.push(frame);
        if (turnId) {
          if (!frame.id) return;
          if (frame.id !== cursor) attempts = 0;
          cursor = frame.id;
        }
        for (const one of waiting) take(one);
        waiting.length = 0;
      });
      // By its status: in some browsers an answer without a body has an empty one.
      if (status < 204) reader = body?.getReader();
      else if (!cursor) return;
      // It has forgotten the turn.
      else attempts = MAX_ATTEMPTS;
      if (turnId) cursor ??= `${turnId}:0`;
      while (reader) {
        silence = 0;
        const { done, value } = await reader.read();
        if (done) break;
        read(decode(value));
        if (settle()) return;
      }
      throw Object.assign(new Error(TURN_LOST_MESSAGE), LOST);
    } catch (error) {
      if (signal.aborted) return;
      const { status } = error as { status?: number };
      // Without a cursor, what was heard of at all cannot be taken up again.
      const isRefused = cursor ? status && status !== 429 && status < 500 : status || reader;
      if (isRefused || attempts >= (cursor ? MAX_ATTEMPTS : MAX_FIRST_ATTEMPTS)) throw error;
    } finally {
      clearInterval(watch);
      cut();
    }
    await pause(Math.min(maxWaitMs, 500 * 2 ** attempts++) * Math.random(), signal);
  }
}

/** Ends early when the network is back, and when nobody waits any more. */
export function pause(ms: number, signal?: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
    signal?.addEventListener('abort', resolve);
    // Once more does no harm, and the signal takes it away.
    if (signal) globalThis.addEventListener?.('online', resolve, { signal });
  });
}
