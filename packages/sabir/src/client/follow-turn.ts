import { TURN_LOST } from '../errors.ts';
import { createSseDecoder, type SseFrame } from '../sse.ts';

export type TurnFeed = {
  /**
   * Asks the server: first with what is to be sent, then for what follows the cursor, or for
   * whatever runs where there is none. Rejects with a `status` where the server refuses.
   */
  connect(cursor: string | undefined, isFirst: boolean, signal: AbortSignal): Promise<Response>;
  /** What one read brought, each frame once. True when that was the end of the turn. */
  take(frames: SseFrame[]): boolean;
  /** Whoever aborts leaves; the turn goes on. */
  signal: AbortSignal;
  /** A connection that is silent for this long is dead. 0 for servers that send no signs of life. */
  silenceMs: number;
  /** The longest wait between two attempts. */
  maxWaitMs: number;
};

/** How often without any progress, before the answer counts as lost. */
const MAX_ATTEMPTS = 20;
/** The same, while nothing was heard of the turn at all. */
const MAX_FIRST_ATTEMPTS = 3;

const isWorthAnother = (status: number) => status === 408 || status === 429 || status > 499;

/**
 * Reads one turn to its end, over as many connections as it takes. Resolves with true when the
 * turn is over, with false when the server has nothing or somebody left; rejects when the turn
 * cannot be followed any more.
 *
 * A server that names its turn (`x-sabir-turn`) numbers its frames: an `id` says that everything up
 * to it is there, so what comes without one waits for it, and is dropped with the connection,
 * because a resume sends it again. What such a server sends anew from its beginning begins with
 * `meta`, and whoever takes it begins anew too. Without a name nothing can be taken up again.
 */
export async function followTurn(feed: TurnFeed): Promise<boolean> {
  const { signal, silenceMs } = feed;
  let cursor: string | undefined;
  let failure: unknown;
  let attempts = 0;
  /** Of the next connection: whether it sends, where there is something to send. */
  let isFirst = true;
  while (!signal.aborted) {
    if (failure) {
      if (attempts >= (cursor ? MAX_ATTEMPTS : MAX_FIRST_ATTEMPTS)) throw failure;
      await pause(Math.min(feed.maxWaitMs, 500 * 2 ** attempts++), signal);
    }
    const link = new AbortController();
    const cut = () => link.abort();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let heardAt = Date.now();
    // Set when it fires, not with every read: there are many of those.
    const watch = () => {
      const leftMs = heardAt + silenceMs - Date.now();
      if (leftMs <= 0) cut();
      else timer = setTimeout(watch, leftMs);
    };
    signal.addEventListener('abort', cut);
    try {
      // What is sent may take its time.
      if (failure && silenceMs > 0) watch();
      const response = await feed.connect(cursor, isFirst, link.signal);
      if (!response.body || response.status === 204) {
        if (isFirst) return false;
        // It has forgotten the turn, or what was sent never arrived: then it is sent again.
        if (cursor) attempts = MAX_ATTEMPTS;
        isFirst = true;
        continue;
      }
      const turnId = response.headers.get('x-sabir-turn');
      if (turnId) cursor ??= `${turnId}:0`;
      let waiting: SseFrame[] = [];
      let whole: SseFrame[] = [];
      const decoder = createSseDecoder({
        frame(frame) {
          waiting.push(frame);
          if (turnId && !frame.id) return;
          cursor = frame.id ?? cursor;
          whole = whole.length > 0 ? whole.concat(waiting) : waiting;
          waiting = [];
        },
      });
      const reader = response.body.getReader();
      // Not every fetch heeds its signal.
      link.signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined));
      heardAt = Date.now();
      if (!timer && silenceMs > 0) watch();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        heardAt = Date.now();
        decoder.push(value);
        if (whole.length === 0) continue;
        attempts = 0;
        const frames = whole;
        whole = [];
        if (feed.take(frames)) return true;
      }
      failure = Object.assign(new Error(TURN_LOST.userMessage), TURN_LOST);
      if (!turnId) attempts = MAX_ATTEMPTS;
      isFirst = false;
    } catch (error) {
      failure = error;
      const { status } = error as { status?: number };
      if (status && (isFirst || !isWorthAnother(status))) attempts = MAX_ATTEMPTS;
      isFirst = false;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', cut);
      cut();
    }
  }
  return false;
}

/** Ends early when the network is back, and when nobody waits any more. */
function pause(ms: number, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms * (0.5 + Math.random() / 2));
    signal.addEventListener('abort', resolve);
    globalThis.addEventListener?.('online', resolve, { once: true, signal });
  });
}
