import type { Chunk } from '../../core/chunks.ts';
import {
  type ErrorKind,
  LOG_FAILED,
  SabirError,
  TURN_FENCED,
  TURN_TOO_LARGE,
} from '../../core/errors.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import { steadyNow } from '../../core/timers.ts';
import { areClosings } from '../chunk-bytes.ts';
import { encodeBatch } from '../chunk-codec.ts';
import { CommandQueue } from '../command-queue.ts';
import type { TurnCommand, TurnWriter } from '../log.ts';
import { createTurnProgress, type TurnProgress } from '../turn-progress.ts';
import type { TurnKeys } from './keys.ts';
import { createRecent, type Written } from './recent.ts';
import { CLOSE, LEASE_LEFT, RELEASE, RENEW } from './scripts.ts';
import type { Store } from './store.ts';

export type WriterOptions = {
  store: Store;
  turnId: string;
  keys: TurnKeys & { chat: string; request: string };
  token: string;
  lastSeq: number;
  mark: number;
  /** Of a turn that was taken over: where it stands. */
  progress: string | undefined;
  leaseMs: number;
  /** How long a live turn's keys are kept when nobody is heard of any more. */
  liveMs: number;
  /** How long an ended turn's are. */
  keepMs: number;
  maxTurnBytes: number;
  /** Its keys are kept for longer; what else belongs to it should be too. */
  onBump(): void;
  /** It ended here, with so many bytes. */
  onClosed(bytes: number): Promise<void>;
  /** It was given up here. Waited for: whoever does so may end right then. */
  onReleased(): Promise<unknown>;
  /** It is not written here any more, for whichever reason. */
  onDone(): void;
};

/** What is published whole; of what is longer only the number is, and readers fetch it. */
const MOST_PUBLISHED = 64 * 1024;
/**
 * The one who writes a turn: holds its token. Every chunk is numbered here; one append is under way
 * at a time, and what comes meanwhile is the next one's. An append is said again until Redis has it.
 */
export class RedisTurnWriter implements TurnWriter {
  readonly turnId: string;
  readonly renewMs: number;
  #options: WriterOptions;
  #lastSeq: number;
  #mark: number;
  #progress: TurnProgress;
  /** What is to be stored of it with the next write. */
  #unstored = '';
  /** By this process's clock: when the lease ends if nothing more is heard. */
  #leaseEnd: number;
  #bumpedAt: number;
  #recent = createRecent();
  /** An append was given up that may have been stored. */
  #isUnsure = false;
  /** Every write has a number of its own, by which one that is said again is known. */
  #writes = 0;
  #givenUp: ErrorKind | undefined;
  #isClosed = false;
  #closing: Promise<void> | undefined;
  #appending: Promise<unknown> = Promise.resolve();
  #renewing: Promise<void> | undefined;
  #commands = new CommandQueue();
  /** Which commands were read. By name: a Redis that has lost some puts others in their place. */
  #read = new Set<string>();
  #pulling: Promise<void> | undefined;
  #isPullStale = false;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.turnId = options.turnId;
    this.renewMs = Math.min(2_000, options.leaseMs / 3);
    this.#lastSeq = options.lastSeq;
    this.#mark = options.mark;
    this.#progress = createTurnProgress(options.progress);
    this.#bumpedAt = steadyNow();
    this.#leaseEnd = this.#bumpedAt + options.leaseMs;
  }

  get isHeld(): boolean {
    return steadyNow() < this.#leaseEnd;
  }

  append(chunks: Chunk[], mark?: number): Promise<number> {
    const doing = this.#appending.then(() => this.#append(chunks, mark));
    this.#appending = doing.catch(() => undefined);
    return doing;
  }

  async #append(chunks: Chunk[], mark?: number): Promise<number> {
    this.#check();
    if (this.#isUnsure) await this.#findPlace();
    if (chunks.length === 0) {
      await this.renew();
      return this.#lastSeq;
    }
    const { maxTurnBytes } = this.#options;
    const { stored, bytes } = encodeBatch(chunks);
    const first = this.#lastSeq;
    const last = first + chunks.length;
    this.#mark = mark ?? this.#mark;
    for (const [at, chunk] of chunks.entries()) {
      if (chunk.type !== 'text-delta') this.#progress.see(first + at + 1, chunk);
    }
    if (this.#progress.takeChange()) this.#unstored = this.#progress.encode();
    const written = { first, last, stored, bytes, mark: this.#mark };
    const limit = areClosings(chunks) ? '' : maxTurnBytes;
    let reply: unknown;
    try {
      reply = await this.#write(written, limit);
      const place = placeOf(reply);
      if (place !== undefined && place < first) {
        await this.#rewind(place);
        reply = await this.#write(written, limit);
      }
    } catch (error) {
      this.#isUnsure = true;
      throw error;
    }
    // One that had been given up was heard after all.
    const place = placeOf(reply);
    if (place !== undefined && place > first) {
      this.#goOnAt(place);
      return this.#append(chunks, mark);
    }
    if (reply === 'TOO LARGE') throw new SabirError(TURN_TOO_LARGE);
    this.#heed(reply);
    if (reply !== 'OK') throw new SabirError(LOG_FAILED);
    this.#lastSeq = last;
    this.#recent.add(written, steadyNow());
    return last;
  }

  async #write(written: Written, limit: number | '' = ''): Promise<unknown> {
    const { store, keys, token, leaseMs, liveMs } = this.#options;
    const { first, last, stored, bytes, mark } = written;
    const askedAt = steadyNow();
    // Whoever looks for turns that nobody writes any more does not have to look at this one.
    const isBump = askedAt - this.#bumpedAt > leaseMs / 2;
    const life = isBump || first === 0 ? liveMs : '';
    const isWhole = stored.length > MOST_PUBLISHED ? 0 : 1;
    const own = [token, this.#isInTime(), first, last, stored, bytes, limit, mark];
    own.push(leaseMs, life, keys.channel, isWhole, ++this.#writes, this.#unstored);
    const reply = await store.insist(() => store.append([keys.turn, keys.chunks], own));
    if (reply === 'OK') {
      this.#unstored = '';
      this.#leaseEnd = Math.max(this.#leaseEnd, askedAt + LEASE_LEFT * leaseMs);
      // One that only appends is not to lose its other keys, nor a command that was not heard of.
      if (isBump) this.renew().catch(() => undefined);
    }
    return reply;
  }

  /** Redis is back with less than it had confirmed: what is missing is written again. */
  async #rewind(lastSeq: number): Promise<void> {
    const missing = this.#recent.after(lastSeq);
    if (!missing) throw new SabirError(LOG_FAILED);
    this.#unstored = this.#progress.encode();
    for (const written of missing) {
      const reply = await this.#write(written);
      this.#heed(reply);
      if (reply !== 'OK') throw new SabirError(LOG_FAILED);
    }
  }

  /** One that was given up may have been stored, or may not. */
  async #findPlace(): Promise<void> {
    const { store, keys } = this.#options;
    const last = await store.insist(() => store.send(keys.turn, 'HGET', keys.turn, 'last'));
    if (typeof last !== 'string') throw this.#giveUp(this.isHeld ? LOG_FAILED : TURN_FENCED);
    if (Number(last) < this.#lastSeq) await this.#rewind(Number(last));
    else if (Number(last) > this.#lastSeq) this.#goOnAt(Number(last));
    this.#isUnsure = false;
  }

  #goOnAt(lastSeq: number): void {
    this.#lastSeq = lastSeq;
    this.#recent.clear();
  }

  /** However often it is asked for while Redis is away, it is asked once. */
  renew(): Promise<void> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renew(): Promise<void> {
    this.#check();
    const { store, keys, token, leaseMs, liveMs } = this.#options;
    const { turn, chunks, commands, chat, request } = keys;
    const argv = [token, this.#isInTime(), leaseMs, liveMs];
    const all = [turn, chunks, commands, chat, request];
    const askedAt = steadyNow();
    const count = await store.insist(() => store.run(RENEW, all, argv));
    this.#heed(count);
    this.#leaseEnd = askedAt + leaseMs;
    this.#bumpedAt = askedAt;
    this.#options.onBump();
    if (Number(count) > this.#read.size) this.pull();
  }

  commands(): AsyncIterable<TurnCommand> {
    return this.#commands.read();
  }

  /** There are commands, or there may be. */
  pull(): void {
    if (this.#givenUp || this.#isClosed) return;
    if (this.#pulling) {
      this.#isPullStale = true;
      return;
    }
    this.#pulling = this.#pull()
      // They are seen when the lease is renewed, at the latest.
      .catch(() => undefined)
      .finally(() => {
        this.#pulling = undefined;
        if (!this.#isPullStale) return;
        this.#isPullStale = false;
        this.pull();
      });
  }

  async #pull(): Promise<void> {
    const { store, keys } = this.#options;
    const { commands } = keys;
    const found = await store.ask(() => store.send(commands, 'LRANGE', commands, 0, -1));
    this.#take(found as string[]);
  }

  #take(found: string[]): void {
    for (const entry of found) {
      const [id, command] = JSON.parse(entry) as [string, TurnCommand];
      if (this.#read.has(id)) continue;
      this.#read.add(id);
      this.#commands.push(command);
    }
  }

  close(outcome: TurnOutcome, storeElsewhere?: () => void): Promise<void> {
    this.#closing ??= this.#close(outcome, storeElsewhere).catch((error) => {
      this.#closing = undefined;
      throw error;
    });
    return this.#closing;
  }

  async #close(outcome: TurnOutcome, storeElsewhere: (() => void) | undefined): Promise<void> {
    this.#check();
    // After a lease without contact, another process may own the turn, and what it stores counts.
    if (storeElsewhere && !this.isHeld) await this.renew();
    storeElsewhere?.();
    const { store, keys, token, keepMs, onClosed } = this.#options;
    const { turn, chunks, commands, chat, request, channel } = keys;
    const isGood = outcome.status === 'finished' || outcome.status === 'paused';
    const argv = [token, this.#isInTime(), JSON.stringify(outcome), isGood ? 1 : 0, keepMs];
    const all = [turn, chunks, commands, chat, request];
    const run = () => store.run(CLOSE, all, [...argv, channel, this.#lastSeq]);
    let reply = await store.insist(run);
    const place = placeOf(reply);
    if (place !== undefined) {
      await this.#rewind(place);
      reply = await store.insist(run);
    }
    this.#heed(reply);
    if (!Array.isArray(reply)) throw new SabirError(LOG_FAILED);
    const [bytes, given] = reply as [number, string[]];
    this.#isClosed = true;
    this.#take(given);
    this.#done();
    await onClosed(Number(bytes));
  }

  async release(): Promise<void> {
    this.#check();
    const { store, keys, token } = this.#options;
    const argv = [token, this.#isInTime()];
    try {
      const reply = await store.ask(() => store.run(RELEASE, [keys.turn], argv));
      if (reply === 'OK') await this.#options.onReleased();
    } finally {
      this.#giveUp(TURN_FENCED);
    }
  }

  /** The log is closed: whatever this writer would still do is not kept. */
  drop(): void {
    if (!this.#isClosed) this.#giveUp(TURN_FENCED);
  }

  #check(): void {
    if (this.#givenUp || this.#isClosed) throw new SabirError(this.#givenUp ?? TURN_FENCED);
  }

  /** What was asked for while the lease was held counts, also if Redis hears it later. */
  #isInTime(): 0 | 1 {
    return this.isHeld ? 1 : 0;
  }

  /** Somebody else has it; or nobody can, and it is not there. */
  #heed(reply: unknown): void {
    if (reply === 'FENCED') throw this.#giveUp(TURN_FENCED);
    // One that was said again after a while may have been somebody else's meanwhile.
    if (reply === 'GONE') throw this.#giveUp(this.isHeld ? LOG_FAILED : TURN_FENCED);
  }

  #giveUp(why: ErrorKind): SabirError {
    if (!this.#givenUp) {
      this.#givenUp = why;
      this.#done();
    }
    return new SabirError(this.#givenUp);
  }

  #done(): void {
    this.#recent.clear();
    this.#commands.end();
    this.#options.onDone();
  }
}

/** How far a turn is, if that is the reply. Clients may be told to give numbers as text. */
function placeOf(reply: unknown): number | undefined {
  if (typeof reply === 'string' && !/^\d+$/.test(reply)) return undefined;
  return Array.isArray(reply) ? undefined : Number(reply);
}
