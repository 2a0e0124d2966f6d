import type { ByteSink, ByteSource } from '../core/byte-source.ts';
import type { Chunk } from '../core/chunks.ts';
import {
  type ErrorKind,
  LOG_FAILED,
  SHUTTING_DOWN,
  SIGN_IN_EXPIRED,
  VIEWER_TOO_SLOW,
} from '../core/errors.ts';
import { NO_LONGER_NEEDED } from '../core/no-longer-needed.ts';
import { afterThisTick, startTimeout, startTimer, type Timer } from '../core/timers.ts';
import { compactLogged } from '../turns/compact-logged.ts';
import type { LoggedChunk, TurnInfo } from '../turns/log.ts';
import type { Bytes, WireEncoder } from '../wires/wire-encoder.ts';
import {
  type Fanout,
  type Fanouts,
  type Passed,
  type Piece,
  passedAfter,
  structureOf,
  type TailViewer,
} from './fanout.ts';
import type { Pausing } from './pausing.ts';

/** How a viewer's stream came to its end; one that goes to answer is expected back. */
export type Departure = 'ended' | 'left' | 'let-go' | 'to-answer';

export type ViewOptions = {
  fanouts: Fanouts;
  turn: TurnInfo;
  /** The highest number this viewer has seen. */
  after: number;
  /** Of this viewer's wire, at the beginning of the turn. */
  encoder: WireEncoder;
  /** For a client that can answer an approval only when its stream has ended. */
  pausing?: Pausing | undefined;
  /** It knows cursors and comes back by itself: a stream that ends early needs no error. */
  isResuming: boolean;
  /** It does not keep a turn that all other viewers have left. @default false */
  isPassive?: boolean;
  keepAliveMs: number;
  maxBacklogBytes: number;
  /** When what proved who this is runs out. */
  expiresAt?: number | undefined;
  onFirstChunk?(): void;
  onReplay?(bytes: number): void;
  onSlow?(): void;
  /** A tool call of the turn asks to be approved. */
  onApprovalRequest?: (() => void) | undefined;
  /** Runs once. */
  onDeparture?(how: Departure): void;
};

const KEEP_ALIVE: Bytes = new TextEncoder().encode(': keep-alive\n\n');
/** A replay goes out in pieces of about this size: what a viewer does not take is one of them. */
const PIECE_BYTES = 128 * 1024;

/**
 * One viewer of one turn: SSE from a cursor on. It is at its turn's tail, where the fan-out gives it
 * what is new, or behind, where it reads the log by itself as fast as its client takes it: so a slow
 * viewer costs a cursor and one piece, not a buffer.
 */
export class Viewer implements ByteSource, TailViewer {
  /** At its cursor. */
  encoder: WireEncoder;
  cursor: number;
  isReady = false;
  readonly isPassive: boolean;
  #options: Omit<ViewOptions, 'encoder'>;
  #fanout: Fanout;
  #sink: ByteSink | undefined;
  /** The last bytes of one that was over before it was opened. */
  #unsent: Bytes | undefined;
  #isAtTail = false;
  #isOver = false;
  /** It has never been at the tail. */
  #isReplay: boolean;
  #isFirst = true;
  #hasFinished = false;
  #structure: Chunk[] = [];
  /** While it is behind: its own way through the log. */
  #batches: AsyncIterator<LoggedChunk[]> | undefined;
  #reading: AbortController | undefined;
  #isReading = false;
  /** While it has fallen behind: how much of the turn had passed at its cursor. */
  #passed: Passed | undefined;
  /** It is so far behind, or was never at the tail, that it is sent runs of deltas as one. */
  #isCompacting: boolean;
  #heldPiece: string | undefined;
  #keepAlive: Timer | undefined;
  #expiry: Timer | undefined;

  constructor({ encoder, ...options }: ViewOptions) {
    const { after, turn, pausing, isResuming, isPassive = false } = options;
    this.#options = options;
    this.isPassive = isPassive;
    this.encoder = encoder;
    // What is sent may follow from what the client has seen already: then that is read too.
    this.cursor = encoder.isStateless && isResuming && !pausing?.needsAll ? after : 0;
    this.#isReplay = turn.lastSeq > after;
    this.#isCompacting = this.#isReplay;
    this.#fanout = options.fanouts.of(turn);
    this.#fanout.enter(this);
    this.#join();
  }

  open(sink: ByteSink): void {
    this.#sink = sink;
    if (this.#isOver) {
      sink.end(this.#unsent);
      return;
    }
    const { keepAliveMs, expiresAt, pausing } = this.#options;
    if (keepAliveMs > 0 && keepAliveMs < Infinity) {
      this.#keepAlive = startTimer(keepAliveMs, () => {
        // A viewer that is behind needs no proof of life, nor one that has not taken the last.
        if (this.#isAtTail && this.isReady) this.#write(KEEP_ALIVE);
      });
    }
    if (expiresAt !== undefined) {
      const ms = expiresAt - Date.now();
      this.#expiry = startTimeout(ms, () => this.letGo(SIGN_IN_EXPIRED));
    }
    if (pausing?.opening) this.#write(pausing.opening);
  }

  resume(): void {
    this.isReady = true;
    this.#releasePiece();
    if (!this.#isAtTail) void this.#catchUp();
  }

  cancel(): void {
    this.#depart('left');
  }

  /** The turn goes on, this stream does not. */
  letGo(why: ErrorKind): void {
    if (this.#isOver) return;
    const { isResuming, after } = this.#options;
    const viewed = { after, structure: this.#structure };
    this.#close(isResuming ? undefined : this.encoder.farewell(why, viewed), 'let-go');
  }

  take(piece: Piece): void {
    const { entries, structure, bytes, before } = piece;
    const pausedAt = this.#see(structure);
    if (pausedAt !== undefined && before) {
      this.#pause(entries, pausedAt, before.fork());
      return;
    }
    this.cursor = entries.at(-1)?.seq ?? this.cursor;
    this.#send(bytes, entries, piece.isShared);
  }

  fallBehind(encoder: WireEncoder, passed: Passed): void {
    this.#isAtTail = false;
    this.encoder = encoder;
    this.#passed = passed;
  }

  end(isWhole: boolean): void {
    if (isWhole || this.#hasFinished) this.#close(this.encoder.end(), 'ended');
    else this.letGo(SHUTTING_DOWN);
  }

  fail(): void {
    this.letGo(LOG_FAILED);
  }

  #join(): void {
    // What it has seen already it must not be sent again.
    if (this.cursor < this.#options.after || !this.#fanout.join(this)) return;
    this.#isAtTail = true;
    this.#isReplay = false;
    this.#isCompacting = false;
    this.#passed = undefined;
    this.#stopReading();
  }

  /** Reads the log by itself, for as long as its client takes it, until it is at the tail. */
  async #catchUp(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (this.isReady && !this.#isAtTail && !this.#isOver) {
        if (this.#isTooSlow()) {
          this.#letGoAsSlow();
          break;
        }
        await this.#readOn();
        if (this.#isOver) break;
        this.#join();
        // A long replay leaves the others their turn.
        if (!this.#isAtTail) await new Promise<void>(afterThisTick);
      }
    } catch {
      this.fail();
    } finally {
      this.#isReading = false;
    }
  }

  /** Whether it has fallen so far behind that compacting what it missed does not help. */
  #isTooSlow(): boolean {
    if (!this.#passed) return false;
    const { maxBacklogBytes } = this.#options;
    const { bytes, compactBytes, largestBytes } = this.#fanout.passed;
    this.#isCompacting ||= bytes - this.#passed.bytes > maxBacklogBytes;
    // What one chunk takes cannot be made less by waiting.
    const most = maxBacklogBytes + largestBytes;
    return this.#isCompacting && compactBytes - this.#passed.compactBytes > most;
  }

  #letGoAsSlow(): void {
    this.#options.onSlow?.();
    this.letGo(VIEWER_TOO_SLOW);
  }

  async #readOn(): Promise<void> {
    const { fanouts, turn, after } = this.#options;
    if (!this.#batches) {
      this.#reading = new AbortController();
      const { signal } = this.#reading;
      const batches = fanouts.log.read(
        turn.turnId,
        this.cursor,
        signal,
        PIECE_BYTES,
        this.isPassive,
      );
      this.#batches = batches[Symbol.asyncIterator]();
    }
    const { done, value } = await this.#batches.next();
    if (this.#isOver) return;
    if (done) {
      const isWhole = this.#hasFinished || (await this.#fanout.isEnded());
      if (this.#isOver) return;
      // The log no longer keeps a turn for a viewer that takes so long to read it.
      if (!isWhole && this.#fanout.hasEnded) this.#letGoAsSlow();
      else this.end(isWhole);
      return;
    }
    // What the viewers at the tail have not been given yet comes from there.
    const ahead = this.#fanout.position - this.cursor;
    const isPastTail = ahead > 0 && ahead < value.length && this.#fanout.position >= after;
    this.#sendOwn(isPastTail ? value.slice(0, ahead) : value);
  }

  #sendOwn(entries: readonly LoggedChunk[]): void {
    const { after, onReplay } = this.#options;
    const from = this.cursor;
    if (this.#passed) this.#passed = passedAfter(this.#passed, entries);
    const pausedAt = this.#see(structureOf(entries));
    if (pausedAt !== undefined) {
      this.#pause(entries, pausedAt, this.encoder.fork());
      return;
    }
    this.cursor = entries.at(-1)?.seq ?? from;
    const make = () => {
      const encoder = this.encoder.fork();
      // Nothing is merged across the viewer's cursor.
      const seen = Math.max(0, Math.min(after - from, entries.length));
      if (seen > 0) encoder.skip(entries.slice(0, seen));
      const fresh = seen > 0 ? entries.slice(seen) : entries;
      return { bytes: encoder.encode(this.#isCompacting ? compactLogged(fresh) : fresh), encoder };
    };
    if (!this.#isCompacting || from < after) {
      const { bytes, encoder } = make();
      this.encoder = encoder;
      if (this.#isReplay) onReplay?.(bytes.length);
      this.#send(bytes, entries);
      return;
    }
    const key = `${this.#fanout.turn.turnId} ${this.encoder.key} ${from} ${this.cursor}`;
    const { bytes, encoder } = this.#options.fanouts.pieces.hold(key, make);
    this.#heldPiece = key;
    this.encoder = encoder;
    if (this.#isReplay) onReplay?.(bytes.length);
    this.#send(bytes, entries, true);
    if (this.isReady) this.#releasePiece();
  }

  /** Where in these its stream ends because its client has to answer first, if it does. */
  #see(structure: readonly LoggedChunk[]): number | undefined {
    const { pausing, isResuming, onApprovalRequest } = this.#options;
    if (onApprovalRequest && structure.some(isApprovalRequest)) onApprovalRequest();
    if (!isResuming) {
      for (const { chunk } of structure) {
        if (!chunk.type.startsWith('data-')) this.#structure.push(chunk);
      }
    }
    return pausing?.pauseIn(structure);
  }

  #pause(entries: readonly LoggedChunk[], pausedAt: number, encoder: WireEncoder): void {
    const { after, pausing } = this.#options;
    const until = entries.filter(({ seq }) => seq <= pausedAt);
    encoder.skip(until.filter(({ seq }) => seq <= after));
    this.#send(encoder.encode(until.filter(({ seq }) => seq > after)), until);
    if (pausing) this.#close(pausing.end(), 'to-answer');
  }

  #send(bytes: Bytes, entries: readonly LoggedChunk[], isShared = false): void {
    if (this.#isFirst) this.#options.onFirstChunk?.();
    this.#isFirst = false;
    this.#hasFinished = entries.at(-1)?.chunk.type === 'finish' || this.#hasFinished;
    if (bytes.length > 0) this.#write(bytes, isShared);
  }

  #write(bytes: Bytes, isShared = false): void {
    this.isReady = this.#sink?.write(bytes, isShared) ?? false;
  }

  #close(bytes: Bytes | undefined, how: Departure): void {
    if (this.#isOver) return;
    const last = bytes && bytes.length > 0 ? bytes : undefined;
    if (this.#sink) this.#sink.end(last);
    else this.#unsent = last;
    this.#depart(how);
  }

  #depart(how: Departure): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#keepAlive?.clear();
    this.#expiry?.clear();
    this.#stopReading();
    this.#releasePiece();
    this.#fanout.leave(this);
    this.#options.onDeparture?.(how);
  }

  #stopReading(): void {
    this.#reading?.abort(NO_LONGER_NEEDED);
    this.#reading = undefined;
    this.#batches = undefined;
  }

  #releasePiece(): void {
    if (this.#heldPiece !== undefined) this.#options.fanouts.pieces.release(this.#heldPiece);
    this.#heldPiece = undefined;
  }
}

function isApprovalRequest({ chunk }: LoggedChunk): boolean {
  return chunk.type === 'tool-approval-request';
}
