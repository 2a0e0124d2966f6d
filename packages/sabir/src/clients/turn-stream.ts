import type { Chunk } from '../core/chunks.ts';
import { TURN_LOST } from '../core/errors.ts';
import { ChunkGroups, LostError, type Wire } from './chunk-groups.ts';
import { type BodyReader, followTurn } from './follow-turn.ts';
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

/** How often a request without a response is repeated before `open` rejects. */
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
 * One viewer's stream of one turn, as `followTurn` reads it: every chunk once, in order, until the
 * turn ends or cannot be followed any more: then the last chunk is an `error`. An abort or a cancel
 * only ends this stream; the turn goes on.
 */
export class TurnStream {
  #options: TurnStreamOptions;
  #groups: ChunkGroups;
  /** There once the server has answered. */
  #controller: ReadableStreamDefaultController<Chunk> | undefined;
  /** Lets go of the connection, whatever it does. */
  #leaving = new AbortController();
  /** The connection there is, or the one being made. */
  #link: AbortSignal | undefined;
  /** The reader has taken something. */
  #pulled: (() => void) | undefined;
  #stopDeciding: (() => void) | undefined;
  /** How many attempts the last failure is worth, and how long the server asks to be left alone. */
  #patience = 0;
  #askedMs = 0;
  /** When a connection that was tried for before will have lasted for the longest wait. */
  #lastsAt = Infinity;
  /** A token that had run out was asked for anew, since there was last a connection. */
  #hasRenewed = false;
  #hasWaited = false;
  #hasEnded = false;

  constructor(options: TurnStreamOptions) {
    this.#options = options;
    this.#groups = new ChunkGroups(options.wire, (chunk) => {
      if (!this.#hasEnded) this.#controller?.enqueue(chunk);
    });
  }

  /** Resolves when the server answers; null if it has nothing. */
  async open(): Promise<ReadableStream<Chunk> | null> {
    const { signal, onAbort } = this.#options;
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const leave = () => {
        reject(signal?.reason);
        this.#controller?.error(signal?.reason);
        end();
        this.#leave();
        onAbort();
      };
      const end = () => {
        this.#hasEnded = true;
        this.#stopDeciding?.();
        signal?.removeEventListener('abort', leave);
      };
      signal?.addEventListener('abort', leave);
      const finish = (error?: Partial<ChatRequestError>) => {
        // The last body has its own time to end.
        if (!this.#groups.isOver) this.#leave();
        if (this.#hasEnded) return;
        if (!this.#controller) {
          if (error) reject(error);
          else resolve(null);
        } else {
          if (!this.#groups.isOver && !this.#groups.hasFailed) {
            const errorText = (error?.status && error.message) || TURN_LOST.userMessage;
            this.#controller.enqueue({ type: 'error', errorText });
          }
          this.#controller.close();
        }
        end();
      };
      const onOpen = () => {
        if (this.#controller) return;
        const source: UnderlyingDefaultSource<Chunk> = {
          start: (controller) => {
            this.#controller = controller;
          },
          pull: () => this.#pulled?.(),
          cancel: () => {
            end();
            this.#leave();
          },
        };
        resolve(new ReadableStream(source, { highWaterMark: QUEUE_CHUNKS }));
      };
      this.#follow(onOpen).then(() => finish(), finish);
    });
  }

  #follow(onOpen: () => void): Promise<void> {
    const { silenceMs, backoff, isSend, onReconnect } = this.#options;
    const groups = this.#groups;
    const left = new Promise<never>((_, reject) => {
      this.#leaving.signal.addEventListener('abort', reject);
    });
    left.catch(ignore);
    return followTurn(
      {
        // Timers take what is longer for nothing at all.
        silenceMs: silenceMs > 0 && silenceMs < 2 ** 31 ? silenceMs : 0,
        waitMs: backoff.initialMs,
        maxWaitMs: backoff.maxMs,
      },
      this.#leaving.signal,
      isSend,
      async (cursor, link, attempts) => {
        this.#link = link;
        // Headers may be long in coming.
        const response = await Promise.race([this.#connect(cursor, attempts), left]);
        groups.begin();
        if (response.status === 204) return response;
        this.#hasRenewed = false;
        if (attempts) this.#lastsAt = Date.now() + (backoff.maxMs ?? 10_000);
        if (this.#hasWaited) onReconnect('connected', attempts);
        this.#hasWaited = false;
        onOpen();
        return response;
      },
      (frame, held: unknown[]) => groups.take(frame, held),
      (reader, isEnd) => this.#settle(reader, isEnd),
      (error) => {
        this.#stopDeciding?.();
        this.#stopDeciding = undefined;
        // What came without numbers cannot be told apart from what would come again.
        if (error instanceof LostError || groups.isUnnumbered) return 0;
        // The end of a long connection does not count as a failed attempt.
        return this.#patience && (Date.now() > this.#lastsAt ? Infinity : this.#patience);
      },
      (ms, attempts) => {
        this.#hasWaited = true;
        onReconnect('waiting', attempts);
        return Math.max(ms, this.#askedMs);
      },
    );
  }

  /** A stream, or a 204 where the server has nothing. */
  async #connect(cursor: string | undefined, attempts: number): Promise<Response> {
    const { request, isSend, backoff } = this.#options;
    const isFirst = !this.#controller;
    const attemptsOnceOpen = backoff.attempts ?? 20;
    this.#askedMs = 0;
    this.#lastsAt = Infinity;
    this.#patience = isFirst ? FIRST_ATTEMPTS : attemptsOnceOpen;
    const [url, init] = await request(cursor);
    // A promise to come back by itself, and to stop explicitly: a stream may end without the turn.
    // And how often this was tried: who only repeats itself wants to hear what became of it.
    init.headers.set('x-sabir-resume', `${attempts}`);
    // Looked up late: other libraries patch it.
    const fetch = this.#options.fetch ?? globalThis.fetch;
    const response = await fetch(url, { ...init, signal: this.#link as AbortSignal });
    const { status, ok, body } = response;
    if (isStream(response)) {
      this.#patience = body ? attemptsOnceOpen : 0;
      if (body) return response;
      throw new Error(NO_STREAMS);
    }
    if (status === 204) {
      // The server has forgotten a turn that nothing was seen of: it is sent again.
      if (isSend && cursor && !this.#groups.cursor) return this.#connect(undefined, attempts);
      if (!isFirst || !isSend) return response;
    }
    const isRenewal = status === 401 && !this.#hasRenewed;
    if (isFirst && (isSend || ok)) this.#patience = 0;
    // Headers are made afresh, so a token that ran out has a successor by now.
    else if (isRenewal) this.#hasRenewed = true;
    else if (!ok && !isWorthAnother(status)) this.#patience = 0;
    this.#askedMs = retryAfterMs(response);
    throw ok ? new Error(NOT_A_STREAM) : await toRequestError(response);
  }

  /** True at the end of the turn. Waits for a reader that has enough to read. */
  async #settle(reader: BodyReader, isEnd: boolean): Promise<boolean> {
    const groups = this.#groups;
    if (isEnd && !this.#link?.aborted) groups.end();
    if (groups.isOver) this.#drain(reader);
    else if (groups.isUndecided) {
      this.#stopDeciding ??= setQuietTimeout(() => this.#decide(), DECIDE_MS);
    }
    if (!groups.isOver && !this.#hasEnded && (this.#controller?.desiredSize ?? 1) <= 0) {
      await new Promise<void>((resolve) => {
        this.#pulled = resolve;
      });
    }
    return groups.isOver;
  }

  #decide(): void {
    if (!this.#groups.isUndecided) return;
    this.#groups.pass();
    if (this.#groups.isOver) this.#leave();
  }

  /** Lets a body end by itself, so that its connection can be used again; but not for long. */
  #drain(reader: BodyReader): void {
    const leave = () => {
      stop();
      this.#leave();
    };
    const stop = setQuietTimeout(leave, DRAIN_MS);
    const next = (): Promise<void> =>
      reader.read().then(({ done }) => (done ? leave() : next()), leave);
    void next();
  }

  #leave(): void {
    this.#leaving.abort();
    this.#pulled?.();
  }
}

function isStream(response: Response): boolean {
  const type = response.headers.get('content-type') ?? '';
  return response.ok && /^text\/event-stream\b/i.test(type);
}
