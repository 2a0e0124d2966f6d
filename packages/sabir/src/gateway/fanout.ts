import type { Chunk } from '../core/chunks.ts';
import { NO_LONGER_NEEDED } from '../core/no-longer-needed.ts';
import { chunkBytes, OVERHEAD_BYTES } from '../turns/chunk-bytes.ts';
import type { LoggedChunk, TurnInfo, TurnLog } from '../turns/log.ts';
import type { Bytes, WireEncoder } from '../wires/wire-encoder.ts';
import { createFlushPace, type FlushPace } from './flush-pace.ts';
import { createPieces, type Pieces } from './pieces.ts';

/** The next entries of a turn, for all viewers of one wire that have seen everything before them. */
export type Piece = {
  entries: readonly LoggedChunk[];
  /** Those of them that are no deltas. */
  structure: readonly LoggedChunk[];
  bytes: Bytes;
  /** Several viewers are given them. */
  isShared: boolean;
  /** The encoder as it was before them. Only where a viewer may have to stop in between. */
  before: WireEncoder | undefined;
};

/** What a fan-out needs of a viewer at the tail of its turn. */
export interface TailViewer {
  /** At the viewer's cursor. Others may share it, so that only a fork of it may be given entries. */
  encoder: WireEncoder;
  readonly cursor: number;
  /** Whether it would take a piece now. */
  readonly isReady: boolean;
  /** Does not keep a turn that all other viewers have left. */
  readonly isPassive: boolean;
  take(piece: Piece): void;
  /** It was not ready, and reads on by itself; `encoder` is in its state at the viewer's cursor. */
  fallBehind(encoder: WireEncoder, passed: Passed): void;
  /** The turn has ended; `isWhole` is false where the log went away before that. */
  end(isWhole: boolean): void;
  fail(): void;
}

/** How much of a turn has passed at its tail, in bytes, since this process follows it. */
export type Passed = {
  bytes: number;
  compactBytes: number;
  largestBytes: number;
  /** The last chunk was a delta: one that follows adds only its text to the run. */
  isInRun: boolean;
};

/** Viewers at the same place on the same wire. */
type Group = { encoder: WireEncoder; viewers: Set<TailViewer> };

/** From so many viewers on, writing to all of them takes long enough to be paced. */
const CROWD = 32;

type FanoutOptions = {
  log: TurnLog;
  turn: TurnInfo;
  pace: FlushPace;
  onError(error: unknown): void;
  onEmpty(): void;
};

/**
 * Follows one turn's log for all its viewers in this process. Those that have caught up are at its
 * tail: each batch is encoded once for each wire, and they all get the same bytes. A viewer that
 * comes late, or was too slow to take a batch, reads the log by itself until it is at the tail.
 */
export class Fanout {
  readonly turn: TurnInfo;
  /** What the viewers at the tail have seen. */
  position: number;
  /** See `Passed`. */
  passed: Passed = { bytes: 0, compactBytes: 0, largestBytes: 0, isInRun: false };
  #options: FanoutOptions;
  #members = 0;
  /** Those of them that are not passive: while there are any, the log knows that the turn is read here. */
  #active = 0;
  #presence: AbortController | undefined;
  /** The viewers at the tail, by what they are sent. */
  #groups = new Map<string, Group>();
  #reading = new AbortController();
  #last: Chunk | undefined;
  #isOver = false;
  /** It has seen the turn's end. */
  hasEnded = false;

  constructor(options: FanoutOptions) {
    this.#options = options;
    this.turn = options.turn;
    this.position = options.turn.lastSeq;
  }

  /** For each viewer once, before it reads. */
  enter({ isPassive }: TailViewer): void {
    if (!isPassive && this.#active++ === 0) this.#showPresence();
    if (this.#members++ === 0) void this.#follow();
  }

  /** A reader that is never asked for anything. */
  #showPresence(): void {
    const { log, turn } = this.#options;
    this.#presence = new AbortController();
    log.read(turn.turnId, this.position, this.#presence.signal);
  }

  leave(viewer: TailViewer): void {
    this.#drop(viewer);
    if (!viewer.isPassive && --this.#active === 0) this.#presence?.abort(NO_LONGER_NEEDED);
    if (--this.#members > 0) return;
    this.#reading.abort(NO_LONGER_NEEDED);
    this.#options.onEmpty();
  }

  /** Whether the viewer is at the tail: then it is given what follows. */
  join(viewer: TailViewer): boolean {
    if (this.#isOver || viewer.cursor !== this.position) return false;
    const { key } = viewer.encoder;
    const group = this.#groups.get(key) ?? { encoder: viewer.encoder.fork(), viewers: new Set() };
    this.#groups.set(key, group);
    group.viewers.add(viewer);
    viewer.encoder = group.encoder;
    return true;
  }

  get #isCrowd(): boolean {
    return this.#members >= CROWD;
  }

  #drop(viewer: TailViewer): void {
    const { key } = viewer.encoder;
    const group = this.#groups.get(key);
    if (group?.viewers.delete(viewer) && group.viewers.size === 0) this.#groups.delete(key);
  }

  async #follow(): Promise<void> {
    const { log, turn, pace } = this.#options;
    const { signal } = this.#reading;
    try {
      const passively = log.read(turn.turnId, this.position, signal, Infinity, true);
      const batches = passively[Symbol.asyncIterator]();
      for (;;) {
        // Before the log is asked: what comes while we wait is part of the same batch.
        if (this.#isCrowd) await pace.wait();
        const { done, value } = await batches.next();
        if (signal.aborted) return;
        if (done) break;
        this.#send(value);
      }
      this.#isOver = true;
      this.hasEnded = this.#last?.type === 'finish' || (await this.isEnded());
      for (const viewer of this.#viewers()) viewer.end(this.hasEnded);
    } catch (error) {
      this.#isOver = true;
      if (signal.aborted) return;
      this.#options.onError(error);
      for (const viewer of this.#viewers()) viewer.fail();
    }
  }

  /** Whether the turn has ended, and not only its log. */
  async isEnded(): Promise<boolean> {
    const { log, turn } = this.#options;
    return (await log.get(turn.turnId))?.outcome !== undefined;
  }

  #viewers(): TailViewer[] {
    return [...this.#groups.values()].flatMap(({ viewers }) => [...viewers]);
  }

  #send(entries: readonly LoggedChunk[]): void {
    const structure = structureOf(entries);
    for (const group of this.#groups.values()) {
      const { encoder, viewers } = group;
      const before = this.#keepBefore(group, structure);
      if (viewers.size === 0) {
        this.#groups.delete(encoder.key);
        continue;
      }
      const bytes = encoder.encode(entries);
      const piece = { entries, structure, bytes, isShared: viewers.size > 1, before };
      const from = performance.now();
      for (const viewer of viewers) viewer.take(piece);
      if (this.#isCrowd) this.#options.pace.add(performance.now() - from);
    }
    this.#last = entries.at(-1)?.chunk;
    this.position = entries.at(-1)?.seq ?? this.position;
    this.passed = passedAfter(this.passed, entries);
  }

  /** Leaves out those that are not ready. Gives the encoder's present state where it is still needed. */
  #keepBefore(
    { encoder, viewers }: Group,
    structure: readonly LoggedChunk[],
  ): WireEncoder | undefined {
    let before: WireEncoder | undefined;
    if (structure.some(({ chunk }) => PAUSES.has(chunk.type))) before = encoder.fork();
    for (const viewer of viewers) {
      if (viewer.isReady) continue;
      before ??= encoder.fork();
      viewers.delete(viewer);
      viewer.fallBehind(before, this.passed);
    }
    return before;
  }
}

/** What an encoder, a question or an end may depend on: little of a long answer. */
export function structureOf(entries: readonly LoggedChunk[]): readonly LoggedChunk[] {
  // Most batches are a single delta.
  if (entries.length === 1 && isDelta((entries[0] as LoggedChunk).chunk)) return NONE;
  return entries.filter(({ chunk }) => !isDelta(chunk));
}

/** Where a viewer's stream may end because its client has to answer first. */
const PAUSES: ReadonlySet<string> = new Set(['finish-step', 'data-question', 'data-client-tool']);

const NONE: readonly LoggedChunk[] = [];

function isDelta({ type }: Chunk): boolean {
  return type === 'text-delta' || type === 'reasoning-delta' || type === 'tool-input-delta';
}

/** A run of deltas is one chunk when it is compacted, and takes what one takes beside its text. */
export function passedAfter(
  { bytes, compactBytes, largestBytes, isInRun }: Passed,
  entries: readonly LoggedChunk[],
): Passed {
  for (const { chunk } of entries) {
    const size = chunkBytes(chunk);
    bytes += size;
    compactBytes += isInRun && isDelta(chunk) ? size - OVERHEAD_BYTES : size;
    isInRun = isDelta(chunk);
    largestBytes = Math.max(largestBytes, size);
  }
  return { bytes, compactBytes, largestBytes, isInRun };
}

export type Fanouts = ReturnType<typeof createFanouts>;

/** The turns that have viewers in this process. */
export function createFanouts(log: TurnLog, onError: (turnId: string, error: unknown) => void) {
  const fanouts = new Map<string, Fanout>();
  const pace = createFlushPace();
  const pieces: Pieces = createPieces();
  return {
    log,
    pieces,
    of(turn: TurnInfo): Fanout {
      const { turnId } = turn;
      const known = fanouts.get(turnId);
      if (known) return known;
      const fanout = new Fanout({
        log,
        turn,
        pace,
        onError: (error) => onError(turnId, error),
        onEmpty: () => void (fanouts.get(turnId) === fanout && fanouts.delete(turnId)),
      });
      fanouts.set(turnId, fanout);
      return fanout;
    },
  };
}
