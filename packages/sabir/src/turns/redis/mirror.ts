import { LOG_FAILED, SabirError } from '../../core/errors.ts';
import { startTimeout, type Timer } from '../../core/timers.ts';
import type { LoggedChunk } from '../log.ts';
import { type ReadableTurn, type TurnReader, wakeReaders } from '../turn-reader.ts';
import { PackedChunks } from './packed-chunks.ts';

export type MirrorNeeds = {
  /**
   * Everything after `after` that is stored, and whether that is all there will be. What was there
   * once (`isKnown`) may be read to its end, though nobody else is told of it any more.
   */
  fetch(after: number, how: Fetching): Promise<Fetched>;
  /** Resolves when nothing that is published from now on is missed. */
  listen(): Promise<unknown>;
  /** It is not read for now, or only passively. */
  rest(): void;
  /** Called once, when nobody reads any more. */
  leave(): void;
};

export type Fetching = {
  isKnown: boolean;
  /** It is read here, and not only passively: others may want to know. */
  isRead: boolean;
  isWanted(): boolean;
};

export type Fetched = {
  entries: Entry[];
  /** The turn is not there any more, or never was. */
  isGone: boolean;
  isEnded: boolean;
  lastSeq: number;
  /** When to look again, should nothing be heard: its writer may have gone. */
  lookAgainMs: number;
};

/** An append, under the number of its last chunk. */
export type Entry = { last: number; stored: string };

/** How often to look while nothing can be heard. */
const UNHEARD_MS = 500;
/** Whoever comes back soon finds it as it was. */
const LINGER_MS = 2_000;

/**
 * What this process knows of a turn that is read here: one for all its readers, filled from the
 * stream and kept up to date by what is published. The stream is the truth, what is published a
 * hint: where one is missed or something is doubtful, the stream is read.
 */
export class Mirror implements ReadableTurn {
  readonly followers = new Set<TurnReader>();
  isEnded = false;
  isLetGo = false;
  failure: unknown;
  #chunks = new PackedChunks();
  #needs: MirrorNeeds;
  #readers = 0;
  /** Those of them that are not passive. */
  #active = 0;
  #hasBegun = false;
  #isResting = false;
  #isLeft = false;
  #isListening = false;
  #isTrying = false;
  #isKnown = false;
  /** The number of its last chunk, once that was heard. */
  #endsAt: number | undefined;
  #isFetching = false;
  /** Something was heard while the stream was being read. */
  #isStale = false;
  /** How often in a row nothing was there, though something should have been. */
  #fruitless = 0;
  #look: Timer | undefined;
  #linger: Timer | undefined;

  constructor(needs: MirrorNeeds) {
    this.#needs = needs;
  }

  get length(): number {
    return this.#chunks.length;
  }

  after(seq: number, maxBytes: number): LoggedChunk[] {
    return this.#chunks.after(seq, maxBytes);
  }

  /** Nobody may read it any more: a new one is needed. */
  get isOver(): boolean {
    return this.#isLeft || this.isLetGo || this.failure !== undefined;
  }

  joined(isPassive: boolean): void {
    this.#readers++;
    if (!isPassive) this.#active++;
    this.#linger?.clear();
    const isFirst = !isPassive && this.#active === 1;
    if (this.#hasBegun && !this.#isResting && !isFirst) return;
    this.#hasBegun = true;
    this.#isResting = false;
    void this.#fetch();
  }

  left(isPassive: boolean): void {
    const wasLast = !isPassive && --this.#active === 0;
    if (--this.#readers > 0) {
      if (wasLast && !this.isEnded && !this.isOver) this.#needs.rest();
      return;
    }
    if (this.isEnded || this.isOver) {
      this.#leave();
      return;
    }
    this.#isResting = true;
    this.#needs.rest();
    this.#linger = startTimeout(LINGER_MS, () => this.#leave());
  }

  /** What was published: the number of the last chunk, then what was stored if it is not too long. */
  hear(message: string): void {
    if (this.#isLeft || this.isEnded) return;
    if (message.startsWith('e')) {
      this.#endsAt = Number(message.slice(1));
      if (this.#endsAt === this.length && !this.#isFetching) this.#end();
      else void this.#fetch();
      return;
    }
    const space = message.indexOf(' ');
    if (space < 0) {
      if (Number(message) > this.length || message === '') void this.#fetch();
      return;
    }
    const last = Number(message.slice(0, space));
    if (last <= this.length) return;
    const before = this.length;
    if (this.#isFetching || !this.#addHeard(last, message.slice(space + 1))) void this.#fetch();
    else wakeReaders(this, before);
  }

  /** Whoever may publish may publish anything. */
  #addHeard(last: number, stored: string): boolean {
    try {
      return this.#chunks.add(last, stored);
    } catch {
      return false;
    }
  }

  /** Something may have been missed. */
  refresh(): void {
    if (!this.isEnded) void this.#fetch();
  }

  /** The log is closed. */
  letGo(): void {
    this.isLetGo = true;
    this.isEnded = true;
    wakeReaders(this);
    this.#leave();
  }

  async #fetch(): Promise<void> {
    if (this.#isFetching) {
      this.#isStale = true;
      return;
    }
    this.#isFetching = true;
    const before = this.length;
    try {
      do {
        this.#isStale = false;
        const found = await this.#needs.fetch(this.length, {
          isKnown: this.#isKnown,
          isRead: this.#active > 0,
          isWanted: () => !this.#isLeft,
        });
        if (this.#isLeft || this.isEnded) return;
        if (this.#take(found)) break;
        if (!this.#isListening) void this.#listen();
      } while (this.#isStale && !this.#isLeft);
    } catch (error) {
      this.failure = error;
    } finally {
      this.#isFetching = false;
    }
    if (this.failure !== undefined || this.isEnded) {
      this.#stopLooking();
      wakeReaders(this);
      if (this.#readers <= 0) this.#leave();
    } else if (this.length > before) wakeReaders(this, before);
  }

  /** What is published between the reading and the listening would be missed: it is read again. */
  async #listen(): Promise<void> {
    if (this.#isTrying) return;
    this.#isTrying = true;
    try {
      await this.#needs.listen();
      this.#isListening = true;
    } catch {
      // Until it is tried again it looks by itself.
      return;
    } finally {
      this.#isTrying = false;
    }
    if (!this.#isLeft) this.refresh();
  }

  /** True if that was all. */
  #take({ entries, isGone, isEnded, lastSeq, lookAgainMs }: Fetched): boolean {
    for (const { last, stored } of entries) {
      if (last > this.length && !this.#chunks.add(last, stored)) throw new SabirError(LOG_FAILED);
    }
    // It was there, and its end was not seen: the store has lost it.
    const hasAll = this.#endsAt !== undefined && this.length >= this.#endsAt;
    if (isGone && this.#isKnown && !hasAll) throw new SabirError(LOG_FAILED);
    if (isGone || (isEnded && this.length >= lastSeq)) {
      this.isEnded = true;
      return true;
    }
    this.#isKnown = true;
    const isBehind = this.length < lastSeq;
    this.#fruitless = isBehind && entries.length === 0 ? this.#fruitless + 1 : 0;
    // The store has lost what it had acknowledged.
    if (this.#fruitless > 2) throw new SabirError(LOG_FAILED);
    this.#isStale ||= isBehind;
    this.#look?.clear();
    const ms = this.#isListening ? lookAgainMs : Math.min(lookAgainMs, UNHEARD_MS);
    this.#look = startTimeout(ms, () => void this.#fetch());
    return false;
  }

  #stopLooking(): void {
    this.#look?.clear();
    this.#look = undefined;
  }

  #end(): void {
    this.isEnded = true;
    this.#stopLooking();
    wakeReaders(this);
    if (this.#readers <= 0) this.#leave();
  }

  #leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#linger?.clear();
    this.#stopLooking();
    this.#needs.leave();
  }
}
