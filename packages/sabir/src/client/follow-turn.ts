import { TURN_LOST } from '../errors.ts';
import { createByteDecoder, createFrameReader, type SseFrame } from '../sse.ts';

export type FollowOptions = {
  /**
   * A connection that is silent for this long is dead. Default 45,000: three missed signs of life.
   * 0 for servers that send none.
   */
  silenceMs?: number;
  /** The longest wait before the next attempt to reconnect. Default 10,000. */
  maxWaitMs?: number;
};

export type TurnFeed = {
  /** Whoever aborts leaves; the turn goes on. */
  signal: AbortSignal;
  /**
   * Asks the server for what follows the cursor; where there is none, sends what is to be sent, or
   * asks for whatever runs. Rejects with a `status` where the server refuses.
   */
  connect(cursor: string | undefined, signal: AbortSignal): Promise<Response>;
  /** Hears of each frame once. */
  take(frame: SseFrame): void;
  /** Behind the frames of one read. True when those were the end of the turn. */
  settle(): boolean;
};

/** How often without any progress, before the answer counts as lost. */
const MAX_ATTEMPTS = 20;
/** The same, while nothing was heard of the turn at all. */
const MAX_FIRST_ATTEMPTS = 3;

/**
 * Reads one turn to its end, over as many connections as it takes. Resolves with true when the
 * turn is over, with false when the server has nothing or somebody left; rejects when the turn
 * cannot be followed any more.
 *
 * A server that names its turn (`x-sabir-turn`) numbers its frames: an `id` says that everything up
 * to it is there, so what comes without one waits for it, and is dropped with the connection,
 * because a resume sends it again. What such a server sends anew from its beginning begins with
 * `meta`, and whoever takes it begins anew too. Without a name nothing can be taken up again.
 *
 * What was sent and not answered at all is sent again: the server knows a message by its id.
 */
export async function followTurn(
  { silenceMs = 45_000, maxWaitMs = 10_000 }: FollowOptions,
  { signal, connect, take, settle }: TurnFeed,
): Promise<boolean> {
  let cursor: string | undefined;
  let failure: unknown;
  for (let attempts = 0; !signal.aborted; ) {
    const link = new AbortController();
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    const cut = () => {
      link.abort();
      // Not every fetch heeds its signal.
      reader?.cancel().catch(() => undefined);
    };
    // In thirds of the time. What is sent may take as long as it takes.
    let silence = failure ? 0 : -1e9;
    const watch = silenceMs && setInterval(() => silence++ < 2 || cut(), silenceMs / 3);
    // Until the link is cut.
    signal.addEventListener('abort', cut, link);
    try {
      const response = await connect(cursor, link.signal);
      const turnId = response.headers.get('x-sabir-turn');
      if (!response.body) {
        if (!cursor) return false;
        // It has forgotten the turn.
        attempts = MAX_ATTEMPTS;
      } else {
        if (turnId) cursor ??= `${turnId}:0`;
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
        reader = response.body.getReader();
        for (;;) {
          silence = 0;
          const { done, value } = await reader.read();
          if (done) break;
          read(decode(value));
          if (settle()) return true;
        }
      }
      throw Object.assign(new Error(TURN_LOST.userMessage), TURN_LOST);
    } catch (error) {
      if (signal.aborted) break;
      failure = error;
      const { status } = error as { status?: number };
      const isWorthAnother = !status || (cursor && (status === 429 || status > 499));
      if (!isWorthAnother) attempts = MAX_ATTEMPTS;
    } finally {
      clearInterval(watch);
      cut();
    }
    if (attempts >= (cursor ? MAX_ATTEMPTS : MAX_FIRST_ATTEMPTS)) throw failure;
    const ms = Math.min(maxWaitMs, 500 * 2 ** attempts++);
    await pause(ms * (0.5 + Math.random() / 2), signal);
  }
  return false;
}

/** Ends early when the network is back, and when nobody waits any more. */
export function pause(ms: number, signal?: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
    signal?.addEventListener('abort', resolve);
    if (signal) globalThis.addEventListener?.('online', resolve, { once: true, signal });
  });
}
