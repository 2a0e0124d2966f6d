import type { ByteSink, ByteSource } from '../core/byte-source.ts';
import type { Chunk } from '../core/chunks.ts';
import { type ErrorKind, SHUTTING_DOWN, SIGN_IN_EXPIRED } from '../core/errors.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { startTimeout, startTimer, type Timer } from '../core/timers.ts';
import { closingsOf } from '../turns/closings.ts';
import type { Bytes, WireEncoder } from '../wires/wire-encoder.ts';
import type { Departure, Viewer } from './viewer.ts';

/** Where a prompt stands that waits behind others. */
export interface QueueWatch {
  /** How many prompts have to end before this one, and itself; 0 where none is known to be before it. */
  position(): number;
  /** Calls back when that changes. Gives the function that ends the subscription. */
  subscribe(listener: () => void): () => void;
  /** Settles when the turn begins; false if its prompt was withdrawn. Rejects if it will not begin in this process. */
  whenBegun(): Promise<boolean>;
}

type QueuedViewerOptions = {
  queue: QueueWatch;
  turnId: string;
  messageId: string;
  encoder: WireEncoder;
  /** It knows cursors and comes back by itself: a stream that ends early needs no error. */
  isResuming: boolean;
  keepAliveMs: number;
  expiresAt?: number | undefined;
  /**
   * The viewer of the turn, once it has begun; undefined if the log has no such turn. `isShown`: the message was begun
   * while it waited.
   */
  toViewer(isShown: boolean): Viewer | undefined | Promise<Viewer | undefined>;
  /** Runs once, unless the turn's viewer has taken over. */
  onDeparture(how: Departure): void;
};

const KEEP_ALIVE: Bytes = new TextEncoder().encode(': keep-alive\n\n');
const WITHDRAWN: TurnOutcome = { status: 'stopped', reason: 'withdrawn' };

/**
 * One viewer of a prompt that waits. Its place in the queue belongs to the session and not to the turn, so that it is not
 * in the log: it is shown as `data-queue` under the cursor 0. When the turn begins, a viewer of the turn goes on with the stream.
 */
export class QueuedViewer implements ByteSource {
  #options: QueuedViewerOptions;
  #sink: ByteSink | undefined;
  /** The last bytes of one that was over before it was opened. */
  #unsent: Bytes | undefined;
  #viewer: Viewer | undefined;
  #isReady = false;
  #isOver = false;
  #shown: number | undefined;
  #unsubscribe: () => void;
  #keepAlive: Timer | undefined;
  #expiry: Timer | undefined;

  /** Follows from now on: a log that retains nothing would forget a turn that ends before the stream is opened. */
  constructor(options: QueuedViewerOptions) {
    this.#options = options;
    this.#unsubscribe = options.queue.subscribe(() => this.#show());
    void this.#follow();
  }

  open(sink: ByteSink): void {
    this.#sink = sink;
    if (this.#viewer) {
      this.#viewer.open(sink);
      return;
    }
    if (this.#isOver) {
      sink.end(this.#unsent);
      return;
    }
    const { keepAliveMs, expiresAt } = this.#options;
    if (keepAliveMs > 0 && keepAliveMs < Infinity) {
      this.#keepAlive = startTimer(keepAliveMs, () => {
        if (this.#isReady) this.#write(KEEP_ALIVE);
      });
    }
    if (expiresAt !== undefined) {
      this.#expiry = startTimeout(expiresAt - Date.now(), () => this.letGo(SIGN_IN_EXPIRED));
    }
    this.#show();
  }

  resume(): void {
    this.#isReady = true;
    this.#viewer?.resume();
  }

  cancel(): void {
    if (this.#viewer) this.#viewer.cancel();
    else this.#depart('left');
  }

  /** The prompt goes on waiting, this stream does not. */
  letGo(why: ErrorKind): void {
    this.#viewer?.letGo(why);
    if (this.#viewer || this.#isOver) return;
    const { encoder, messageId, isResuming } = this.#options;
    const structure: Chunk[] = this.#shown === undefined ? [] : [{ type: 'start', messageId }];
    this.#end(isResuming ? undefined : encoder.farewell(why, { after: 0, structure }), 'let-go');
  }

  #end(bytes: Bytes | undefined, how: Departure): void {
    if (this.#sink) this.#sink.end(bytes);
    else this.#unsent = bytes;
    this.#depart(how);
  }

  #write(bytes: Bytes): void {
    this.#isReady = this.#sink?.write(bytes) ?? false;
  }

  /** Each chunk under the cursor 0: a client that resumes from there gets all of the turn. */
  #encode(chunks: Chunk[]): Bytes {
    const { encoder, turnId } = this.#options;
    const cursor = new TextEncoder().encode(`id: ${turnId}:0\n`);
    return concat(chunks.flatMap((chunk) => [cursor, encoder.encode([{ seq: 0, chunk }])]));
  }

  #show(): void {
    const { queue, messageId } = this.#options;
    const position = queue.position();
    if (!this.#sink || this.#isOver || this.#viewer || position === this.#shown) return;
    const opening: Chunk[] = this.#shown === undefined ? [{ type: 'start', messageId }] : [];
    if (position === 0 && this.#shown === undefined) return;
    this.#shown = position;
    const status = position === 0 ? 'begun' : 'waiting';
    const data = { position, status };
    this.#write(this.#encode([...opening, { type: 'data-queue', id: 'queue', data }]));
  }

  async #follow(): Promise<void> {
    const hasBegun = await this.#options.queue.whenBegun().catch(() => undefined);
    if (this.#isOver) return;
    // From here on the turn's viewer begins the message, unless this one has.
    this.#unsubscribe();
    const viewer = hasBegun ? await this.#toViewer() : undefined;
    if (this.#isOver) {
      viewer?.cancel();
      return;
    }
    if (!viewer) {
      if (hasBegun === false) this.#withdraw();
      else this.letGo(SHUTTING_DOWN);
      return;
    }
    if (this.#shown) {
      const data = { position: 0, status: 'begun' };
      this.#write(this.#encode([{ type: 'data-queue', id: 'queue', data }]));
    }
    this.#stop();
    this.#viewer = viewer;
    if (this.#sink) viewer.open(this.#sink);
    if (this.#isReady) viewer.resume();
  }

  async #toViewer(): Promise<Viewer | undefined> {
    try {
      return await this.#options.toViewer(this.#shown !== undefined);
    } catch {
      // The log could not say whether it has the turn.
      return undefined;
    }
  }

  /** A withdrawn prompt has no turn in the log: its stream ends as a stopped one does. */
  #withdraw(): void {
    const { encoder, messageId } = this.#options;
    const isShown = this.#shown !== undefined;
    const opening: Chunk[] = isShown ? [{ type: 'start', messageId }] : [];
    const data = { position: 0, status: 'withdrawn' };
    const queue: Chunk[] = isShown ? [{ type: 'data-queue', id: 'queue', data }] : [];
    const closings = this.#encode([...queue, ...closingsOf(opening, messageId, WITHDRAWN)]);
    this.#end(concat([closings, encoder.end()]), 'ended');
  }

  #stop(): void {
    this.#unsubscribe();
    this.#keepAlive?.clear();
    this.#expiry?.clear();
  }

  #depart(how: Departure): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stop();
    this.#options.onDeparture(how);
  }
}

function concat(pieces: Uint8Array[]): Bytes {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
