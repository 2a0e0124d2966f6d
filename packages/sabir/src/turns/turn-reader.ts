import type { LoggedChunk } from './log.ts';

/** As much of a turn as its readers need. */
export type ReadableTurn = {
  /** How many chunks there are so far: the first has the number 1, and none is ever taken out. */
  readonly length: number;
  /** Those behind a number, each with its own, up to about so many bytes of them. */
  after(seq: number, maxBytes: number): LoggedChunk[];
  isEnded: boolean;
  /** The log was closed: nothing more is given, though there may be more. */
  isLetGo: boolean;
  /** Readers that have once read all there was, until they leave. */
  followers: Set<TurnReader>;
  /** It cannot be read any further. */
  failure?: unknown;
  /** A reader has come, and another time that it has gone: for turns that are held while read. */
  joined?(isPassive: boolean): void;
  left?(isPassive: boolean): void;
};

type Result = IteratorResult<LoggedChunk[], undefined>;

const DONE: Result = { done: true, value: undefined };

/**
 * One reader's way through a turn. Not a generator: that could not be left while it waits, and
 * costs more promises a batch. Holds the turn, not the log that keeps it.
 */
export class TurnReader implements AsyncIterableIterator<LoggedChunk[], undefined> {
  #turn: ReadableTurn | undefined;
  /** How many chunks it has been given; the next is at this index. */
  #cursor: number;
  #signal: AbortSignal;
  #batchBytes: number;
  #isPassive: boolean;
  #isListening = false;
  #pending: Promise<Result> | undefined;
  #resolve: ((result: Result) => void) | undefined;
  #reject: ((error: unknown) => void) | undefined;

  constructor(
    turn: ReadableTurn | undefined,
    after: number,
    signal: AbortSignal,
    batchBytes = Infinity,
    isPassive = false,
  ) {
    this.#turn = turn;
    this.#cursor = Math.max(0, Math.floor(after) || 0);
    this.#signal = signal;
    this.#batchBytes = batchBytes;
    this.#isPassive = isPassive;
    if (!turn?.left) return;
    if (signal.aborted) {
      this.#turn = undefined;
      return;
    }
    // It may be left while it does not wait, by whoever never asks for more.
    turn.joined?.(isPassive);
    this.#listen();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    // Somebody asks twice at once: the second gets what follows the first's.
    if (this.#pending) return this.#pending.then(() => this.next());
    const turn = this.#turn;
    if (!turn || turn.isLetGo || this.#signal.aborted) return this.return();
    if (this.#cursor < turn.length) {
      const value = turn.after(this.#cursor, this.#batchBytes);
      this.#cursor += value.length;
      return Promise.resolve({ done: false, value });
    }
    if (turn.failure !== undefined) return this.#fail(turn.failure);
    if (turn.isEnded) return this.return();
    turn.followers.add(this);
    this.#listen();
    this.#pending = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    return this.#pending;
  }

  #listen(): void {
    if (!this.#isListening) this.#signal.addEventListener('abort', this.#leave);
    this.#isListening = true;
  }

  #fail(failure: unknown): Promise<never> {
    this.#leave();
    return Promise.reject(failure);
  }

  get isWaiting(): boolean {
    return this.#pending !== undefined;
  }

  /** The turn has grown by the batch, or has ended. Called while it waits. */
  wake(batch: LoggedChunk[] | undefined): void {
    const turn = this.#turn;
    if (!turn) return;
    const { length } = turn;
    if (this.#cursor < length && !turn.isLetGo) {
      const isAtBatch = batch !== undefined && this.#cursor === length - batch.length;
      const value = isAtBatch ? batch : turn.after(this.#cursor, this.#batchBytes);
      this.#cursor += value.length;
      this.#settle({ done: false, value });
    } else if (turn.failure !== undefined) {
      const reject = this.#reject;
      this.#resolve = undefined;
      this.#leave();
      reject?.(turn.failure);
    } else if (turn.isEnded) this.#leave();
  }

  return(): Promise<Result> {
    this.#leave();
    return Promise.resolve(DONE);
  }

  #leave = (): void => {
    const turn = this.#turn;
    this.#turn = undefined;
    turn?.followers.delete(this);
    turn?.left?.(this.#isPassive);
    if (this.#isListening) this.#signal.removeEventListener('abort', this.#leave);
    this.#isListening = false;
    this.#settle(DONE);
  };

  #settle(result: Result): void {
    const resolve = this.#resolve;
    this.#resolve = undefined;
    this.#reject = undefined;
    this.#pending = undefined;
    resolve?.(result);
  }
}

/** Wakes the readers that wait, after the turn has ended or, behind `before`, grown. Those at its tail share a batch. */
export function wakeReaders(turn: ReadableTurn, before = turn.length): void {
  let batch: LoggedChunk[] | undefined;
  for (const reader of turn.followers) {
    if (!reader.isWaiting) continue;
    if (before < turn.length) batch ??= turn.after(before, Infinity);
    reader.wake(batch);
  }
}
