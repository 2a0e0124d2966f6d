import type { Chunk } from '../core/chunks.ts';
import { TURN_LOST } from '../core/errors.ts';
import { createSseDecoder } from '../core/sse.ts';
import { ChunkGroups, LostError, type Wire } from './chunk-groups.ts';
import { type ChatRequestError, retryAfterMs, setQuietTimeout, toRequestError } from './http.ts';

export type TurnRequest = RequestInit & { headers: Headers };

/** How often, and how soon, a connection that dropped is tried again. */
export type Backoff = {
  /** The first wait, doubled every time. Default 500; a random part of it is left out. */
  initialMs?: number;
  /** The longest wait. Default 10,000. */
  maxMs?: number;
  /** How often without any progress, before the answer counts as lost. Default 20. */
  attempts?: number;
};

export type ReconnectEvent = {
  chatId: string;
  /** `waiting` before every attempt, `connected` when one has succeeded. */
  status: 'waiting' | 'connected';
  attempt: number;
};

export type TurnStreamOptions = {
  wire: Wire<unknown>;
  /** Asked anew for every connection. With a cursor: whatever follows it. */
  request(cursor: string | undefined): Promise<[url: string, init: TurnRequest]>;
  /** Sends something: what the server refuses is not asked for again, and an upload takes its time. */
  isSend: boolean;
  signal: AbortSignal | undefined;
  /** The signal aborted while the stream was open, or on its way. */
  onAbort(): void;
  fetch: typeof globalThis.fetch | undefined;
  silenceMs: number;
  backoff: Backoff;
  onReconnect(status: ReconnectEvent['status'], attempt: number): void;
};

/** How often a request that nobody answered is made again before its caller is told. */
const FIRST_ATTEMPTS = 3;
/** A server that numbers its frames sends a number within this time of the first. */
const DECIDE_MS = 300;
/** How long a body may take to end after its last chunk before it is cut. */
const DRAIN_MS = 250;
/** How many chunks may wait for a reader before we stop reading. */
const QUEUE_CHUNKS = 256;

const NOT_A_STREAM = 'The server did not answer with a stream of events.';
const NO_STREAMS = 'This fetch cannot read streams. Give one that can, for example expo/fetch.';

const isWorthAnother = (status: number) => status === 408 || status === 429 || status >= 500;
const ignore = () => undefined;

/**
 * One viewer's stream of one turn, over as many connections as it takes: every chunk once, in
 * order, until the turn ends or cannot be followed any more, which is then said in an `error`.
 * Whoever aborts or cancels only leaves: the turn goes on.
 */
export class TurnStream {
  #options: TurnStreamOptions;
  #controller: ReadableStreamDefaultController<Chunk> | undefined;
  #groups: ChunkGroups;
  /** The connection there is, or the one being made. */
  #link: AbortController | undefined;
  /** Ends a pause between two attempts. */
  #wake: (() => void) | undefined;
  /** The reader has taken something. */
  #pulled: (() => void) | undefined;
  /** A cursor before the first chunk of the turn that was joined: it may end before that comes. */
  #joined: string | undefined;
  #attempt = 0;
  #hasEnded = false;
  #onEnd: Array<() => void> = [];

  constructor(options: TurnStreamOptions) {
    this.#options = options;
    this.#groups = new ChunkGroups(options.wire, (chunk) => {
      this.#attempt = 0;
      if (!this.#hasEnded) this.#controller?.enqueue(chunk);
    });
  }

  /** Resolves when the server answers; null if it has nothing. */
  async open(): Promise<ReadableStream<Chunk> | null> {
    const { signal } = this.#options;
    signal?.throwIfAborted();
    try {
      const response = await Promise.race([this.#connect(true), this.#watchSignal()]);
      if (response) return this.#start(response);
    } catch (error) {
      this.#end();
      throw error;
    }
    this.#end();
    return null;
  }

  /** Rejects when the caller leaves, and lets go of everything then. */
  #watchSignal(): Promise<never> {
    const { signal } = this.#options;
    const left = new Promise<never>((_, reject) => {
      const leave = () => {
        reject(signal?.reason);
        if (!this.#hasEnded) this.#controller?.error(signal?.reason);
        this.#leave();
        this.#options.onAbort();
      };
      signal?.addEventListener('abort', leave);
      this.#onEnd.push(() => signal?.removeEventListener('abort', leave));
    });
    left.catch(ignore);
    return left;
  }

  #start(response: Response): ReadableStream<Chunk> {
    // A network that is back need not wait for its turn, and what it left half-open is dead.
    const onOnline = () => {
      if (this.#wake) this.#wake();
      else if (this.#groups.cursor !== undefined) this.#link?.abort();
    };
    globalThis.addEventListener?.('online', onOnline);
    this.#onEnd.push(() => globalThis.removeEventListener?.('online', onOnline));
    return new ReadableStream<Chunk>(
      {
        start: (controller) => {
          this.#controller = controller;
          void this.#run(response);
        },
        pull: () => this.#pulled?.(),
        cancel: () => this.#leave(),
      },
      { highWaterMark: QUEUE_CHUNKS },
    );
  }

  async #run(first: Response): Promise<void> {
    try {
      for (let response: Response | null = first; ; response = await this.#connect(false)) {
        if (response === null) throw new LostError();
        await this.#read(response);
        if (this.#groups.isOver || this.#hasEnded) break;
        // What came without numbers cannot be told apart from what would come again.
        if (this.#groups.isUnnumbered) throw new LostError();
      }
    } catch (error) {
      if (!this.#hasEnded && !this.#groups.hasFailed) {
        const { status, message } = error as Partial<ChatRequestError>;
        const errorText = (status && message) || TURN_LOST.userMessage;
        this.#controller?.enqueue({ type: 'error', errorText });
      }
    }
    this.#close();
  }

  /** Reads one body to its end, or until it drops. */
  async #read(response: Response): Promise<void> {
    const groups = this.#groups;
    const { silenceMs, backoff } = this.#options;
    const link = this.#link as AbortController;
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    // A fetch that does not heed its signal must not hold us up.
    link.signal.addEventListener('abort', () => void reader.cancel().catch(ignore));
    const startedAt = Date.now();
    let heardAt = startedAt;
    let isPaused = false;
    let stopDeciding: (() => void) | undefined;
    let stopWatching = ignore as () => void;
    const watch = () => {
      const leftMs = isPaused ? silenceMs : heardAt + silenceMs - Date.now();
      if (silenceMs > 0 && leftMs <= 0) link.abort();
      else stopWatching = setQuietTimeout(watch, leftMs);
    };
    watch();
    const decoder = createSseDecoder({
      frame: (frame) => groups.frame(frame),
      bytes: () => {
        heardAt = Date.now();
      },
    });
    groups.begin();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (link.signal.aborted) return;
        if (done) return groups.end();
        decoder.push(value);
        if (groups.isOver) return drain(reader, link);
        if (groups.isUndecided) stopDeciding ??= setQuietTimeout(() => this.#decide(), DECIDE_MS);
        if ((this.#controller?.desiredSize ?? 1) > 0) continue;
        isPaused = true;
        await new Promise<void>((resolve) => {
          this.#pulled = resolve;
        });
        isPaused = false;
        heardAt = Date.now();
      }
    } catch (error) {
      if (error instanceof LostError) throw error;
    } finally {
      stopWatching();
      stopDeciding?.();
      if (!groups.isOver) link.abort();
      if (Date.now() - startedAt > (backoff.maxMs ?? 10_000)) this.#attempt = 0;
    }
  }

  #decide(): void {
    if (!this.#groups.isUndecided || this.#hasEnded) return;
    this.#groups.pass();
    if (this.#groups.isOver) this.#close();
  }

  /**
   * A response to read, or null where the server has nothing. Throws where it refuses, and when
   * trying any further is no use.
   */
  async #connect(isFirst: boolean): Promise<Response | null> {
    const { isSend, backoff, onReconnect } = this.#options;
    const attempts = isFirst ? FIRST_ATTEMPTS : (backoff.attempts ?? 20);
    let hasRenewed = false;
    let hasWaited = false;
    let error: unknown;
    let waitMs = isFirst ? -1 : 0;
    for (;;) {
      if (waitMs >= 0) {
        if (this.#attempt >= attempts) throw error ?? new LostError();
        hasWaited = true;
        await this.#pause(waitMs);
      }
      waitMs = 0;
      let response: Response;
      try {
        response = await this.#dial();
      } catch (caught) {
        if (this.#hasEnded) throw caught;
        error = caught;
        continue;
      }
      const { status } = response;
      if (isStream(response)) {
        if (!response.body) throw new Error(NO_STREAMS);
        const turnId = response.headers.get('x-sabir-turn');
        // From here on the turn has a name: sent again, one that failed would be begun again.
        if (turnId) this.#joined = `${turnId}:0`;
        if (hasWaited) onReconnect('connected', this.#attempt);
        return response;
      }
      if (status === 204 && isSend && this.#joined && this.#groups.cursor === undefined) {
        // The server has forgotten a turn that nothing was seen of: it is sent again.
        this.#joined = undefined;
        waitMs = -1;
        continue;
      }
      if (status === 204 && !(isFirst && isSend)) return null;
      error = response.ok ? new Error(NOT_A_STREAM) : await toRequestError(response);
      waitMs = retryAfterMs(response);
      this.#link?.abort();
      if (isFirst && (isSend || response.ok)) throw error;
      // Headers are made afresh, so a token that ran out has a successor by now.
      if (status === 401 && !hasRenewed) hasRenewed = true;
      else if (!response.ok && !isWorthAnother(status)) throw error;
    }
  }

  async #dial(): Promise<Response> {
    const { request, isSend, silenceMs } = this.#options;
    const cursor = this.#groups.cursor ?? this.#joined;
    const link = new AbortController();
    this.#link = link;
    const isUpload = isSend && cursor === undefined;
    const stop = isUpload ? ignore : setQuietTimeout(() => link.abort(), silenceMs);
    try {
      const [url, init] = await request(cursor);
      // A promise to come back by itself, and to stop explicitly: a stream may end without the turn.
      // And how often this was tried: who only repeats itself wants to hear what became of it.
      init.headers.set('x-sabir-resume', `${this.#attempt}`);
      // Looked up late: other libraries patch it.
      const fetch = this.#options.fetch ?? globalThis.fetch;
      return await fetch(url, { ...init, signal: link.signal });
    } finally {
      stop();
    }
  }

  /** Holds a process alive on purpose: an answer is still expected. */
  async #pause(askedMs: number): Promise<void> {
    const { initialMs = 500, maxMs = 10_000 } = this.#options.backoff;
    const ms = Math.min(maxMs, initialMs * 2 ** this.#attempt) * (0.5 + Math.random() / 2);
    // Being offline is nobody's failure.
    if (globalThis.navigator?.onLine !== false) this.#attempt += 1;
    this.#options.onReconnect('waiting', this.#attempt);
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      timer = setTimeout(resolve, Math.max(ms, askedMs));
    });
    clearTimeout(timer);
    this.#wake = undefined;
    if (this.#hasEnded) throw new LostError();
  }

  #leave(): void {
    this.#end();
    this.#link?.abort();
    this.#wake?.();
    this.#pulled?.();
  }

  #close(): void {
    if (!this.#hasEnded) this.#controller?.close();
    this.#end();
  }

  #end(): void {
    this.#hasEnded = true;
    for (const undo of this.#onEnd.splice(0)) undo();
  }
}

function isStream(response: Response): boolean {
  const type = response.headers.get('content-type') ?? '';
  return response.ok && /^text\/event-stream\b/i.test(type);
}

/** Lets a body end by itself, so that its connection can be used again; but not for long. */
function drain(reader: ReadableStreamDefaultReader<Uint8Array>, link: AbortController): void {
  const stop = setQuietTimeout(() => link.abort(), DRAIN_MS);
  const next = (): Promise<void> =>
    reader.read().then(({ done }) => (done ? stop() : next()), stop);
  void next();
}
