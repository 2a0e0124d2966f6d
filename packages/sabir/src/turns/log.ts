/**
 * A turn is an append-only log of chunks. Write to the log, then read from the log.
 *
 * Whoever sends, watches, comes back or joins late reads the same log by the same path, each from a
 * cursor of its own. `memory.ts` keeps turns in this process, `redis/` in a store that several share.
 */
import type { Chunk } from '../core/chunks.ts';
import type { LimitUse } from '../core/metrics.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { Role } from '../core/roles.ts';
import type { AskedQuestion } from './turn-progress.ts';
import type { Attachment } from './upstream.ts';

/** A chunk and its place: the first of a turn is 1, and there are no gaps. */
export type LoggedChunk = { seq: number; chunk: Chunk };

export type Stop = { type: 'stop'; reason?: string };
export type Answer = {
  type: 'answer';
  questionId: string;
  answer: unknown;
  /** Who answers, and as what. */
  by?: { userId: string; role: Role };
};
/** A message for a turn that runs. */
export type Steer = {
  type: 'steer';
  /** The id of the user's message. */
  id: string;
  text: string;
  attachments: Attachment[];
  /** Who says it, and as what. */
  by?: { userId: string; role: Role };
};
export type TurnCommand = Stop | Answer | Steer;

/** A turn that was given so many answers and messages takes no more messages: a log keeps them until the turn ends. */
export const MOST_COMMANDS = 64;

/** A turn takes no more bytes of messages than this, for the same reason. */
export const MOST_STEER_BYTES = 1_000_000;

/** As `MOST_STEER_BYTES` counts: the text and the files. */
export function steerBytesOf({ text, attachments }: Pick<Steer, 'text' | 'attachments'>): number {
  return attachments.reduce((sum, { url }) => sum + url.length, text.length);
}

export type BeginTurn = {
  sessionId: string;
  chatId: string;
  /** Of a turn that was named before it begins, with an id that `createTurnId` made for this chat. */
  turnId?: string;
  /** What makes two requests the same request: see `begin`. */
  requestId: string;
  /** The id of the message that the turn writes, unless its source names one. */
  messageId: string;
  /** Who asked for it, where that is known. */
  userId?: string;
  /**
   * The client says that it sends this again because nobody answered, not because somebody asked
   * again: it gets the turn that it began, whatever became of that, for as long as it is kept.
   */
  isRepeat?: boolean;
  /**
   * What another process needs to go on with the turn when the one that began it is gone. JSON, which
   * the log only keeps.
   */
  origin?: unknown;
};

export type TurnInfo = Omit<BeginTurn, 'origin' | 'isRepeat' | 'turnId'> & {
  turnId: string;
  /** `queued` until the turn says something, and while it says that its prompt waits behind others. */
  status: 'queued' | 'running' | 'ended';
  /** What the turn has asked so far, the oldest first, whatever came of it. */
  questions: readonly AskedQuestion[];
  /** The id that the source has given the message, once it has. */
  sourceMessageId?: string;
  /** The highest number written so far; 0 while there is none. */
  lastSeq: number;
  /** Milliseconds since 1970. */
  startedAt: number;
  /** Both are there once the turn has ended. */
  endedAt?: number;
  outcome?: TurnOutcome;
};

/** A live turn whose writer has gone, and the writer for whoever goes on with it. */
export type OrphanedTurn = {
  turn: TurnInfo;
  /** As it was begun with. */
  origin: unknown;
  /** As it was last appended with; 0 if it never was. */
  mark: number;
  /** Holds the lease from now on. Its commands are all that the turn was ever given. */
  writer: TurnWriter;
};

/** Promises that one process makes and another keeps. None of them is vital. */
export interface SharedNotes {
  /** One more under this name, for so long. */
  add(name: string, ms: number): Promise<void>;
  /** One less, if there is one. */
  take(name: string): Promise<boolean>;
  clear(names: string[]): Promise<void>;
}

/**
 * Where turns are kept. An implementation
 * - MUST make `begin` atomic and idempotent by `requestId` within a session *and* chat: while such
 *   a turn is live, or finished (or paused) a moment ago, it gives that turn and no second writer.
 *   After one that failed, was stopped or lost, it begins anew, unless it `isRepeat`;
 * - MUST begin a turn that has a `turnId` already once: after that, `begin` gives that turn, however it ended, for as long
 *   as it is kept. It MUST refuse an id that a turn of another chat has;
 * - MUST number chunks from 1 without gaps, and give every reader, wherever it starts, each later
 *   chunk exactly once and in order, and end the reading when the turn has ended and all is read;
 * - MUST keep every chunk that `append` acknowledged, to the degree the store promises;
 * - MUST hold a turn to one writer, by a lease that `append` and `renew` extend. A turn whose lease
 *   ran out MUST be ended by whoever notices: closings for what is open, outcome `lost`. The writer
 *   that lost it gets `turn-fenced` from then on, and nothing it does is kept;
 * - MUST deliver every command that `command` said true to, once and in order, also one that came
 *   before the writer listened; MUST say false for a turn that is unknown or has ended, for any but the
 *   first answer to a question, and for any but the first message with the same id;
 * - MUST reject a message that takes a turn past `MOST_COMMANDS` or `MOST_STEER_BYTES` with `cannot-steer`;
 * - MUST tell in `TurnInfo` what the chunks that it has acknowledged say of the turn's queue and questions
 *   (`createTurnProgress`), and which questions an accepted command has answered;
 * - MUST call the listeners of `onBegin` with the id of each turn that begins in their chat, in any process, once `get`
 *   finds the turn; and without an id where it may have missed one;
 * - MUST refuse an append past `maxTurnBytes` with `turn-too-large`, and still take the closings;
 * - MUST forget ended turns by their retention time, and earlier when they are too many bytes;
 * - MUST run the `store` of a `close` before the turn counts as ended, and not end a turn whose `store` throws. A log on the
 *   same database as what `store` writes MUST commit both together or neither;
 * - MUST NOT merge or renumber what is stored: compaction happens when reading;
 * - MUST NOT hand out anything by a chat id alone: turns are keyed by session and chat;
 * - MUST NOT keep the process alive by its timers, nor hold anything for a reader that has left.
 *
 * `test/turn-log-conformance.ts` checks all of it.
 */
export interface TurnLog {
  /** Hard to guess, and short: it is in the id of every frame. */
  createTurnId(sessionId: string, chatId: string): string;
  begin(info: BeginTurn): Promise<{ writer: TurnWriter } | { existing: TurnInfo }>;
  /** The turn that was begun last in this chat, live or retained. */
  latest(sessionId: string, chatId: string): Promise<TurnInfo | undefined>;
  get(turnId: string): Promise<TurnInfo | undefined>;
  /**
   * Everything after `after`, in batches: what is there in one, then what comes as it comes. Ends
   * with the turn, when `signal` aborts, and at once for a turn that is unknown. With `batchBytes`,
   * what is there comes in batches of about that size; a larger chunk comes alone. A reader counts for
   * `isReadElsewhere` from this call on, until `signal` aborts or it has read to the end, unless it `isPassive`.
   */
  read(
    turnId: string,
    after: number,
    signal: AbortSignal,
    batchBytes?: number,
    isPassive?: boolean,
  ): AsyncIterable<LoggedChunk[]>;
  command(turnId: string, command: TurnCommand): Promise<boolean>;
  /**
   * The turns of a chat that have not ended, wherever they run, or those of all chats of a session;
   * the oldest first.
   */
  live(sessionId: string, chatId?: string): Promise<TurnInfo[]>;
  /** Of the last `most` turns of a chat, those that have ended and are retained, in the order they began. */
  ended(sessionId: string, chatId: string, most: number): Promise<TurnInfo[]>;
  /**
   * Calls `listener` when a turn begins in this chat, whichever process begins it. Without an id, turns may have begun
   * unnoticed, as while the store was away: ask `live` and `latest`. A listener may get the same id again, and must not
   * throw. Returns a function that ends the subscription.
   */
  onBegin(
    sessionId: string,
    chatId: string,
    listener: (turnId: string | undefined) => void,
  ): () => void;
  /** How much of the log's own limits is used, by their names: the gateway shows them among its metrics. */
  readonly limits: Readonly<Record<string, LimitUse>>;
  /** What the gateways of one log have to know together beside turns, for a while. */
  readonly notes: SharedNotes;
  /**
   * Turns outlive the process that writes them, and another one can take them over. Where they do not, a turn
   * whose writer is gone is lost, and `onOrphan` never calls back.
   */
  readonly outlivesProcess: boolean;
  /** Whether another process reads this turn, other than passively. */
  isReadElsewhere(turnId: string): Promise<boolean>;
  /**
   * Offers every turn whose writer is gone to `adopt`: if that resolves to true, the adopter continues or ends the
   * turn. The log ends a turn that is not adopted as lost. The log looks for such turns by itself, viewers or none.
   * Returns a function that ends the subscription.
   */
  onOrphan(adopt: (orphan: OrphanedTurn) => Promise<boolean>): () => void;
  /** Releases everything the log holds. Readers end. */
  close(): Promise<void>;
}

export interface TurnWriter {
  readonly turnId: string;
  /** The longest time between two calls of `append` or `renew`. */
  readonly renewMs: number;
  /** False when the lease has run out, as far as this process knows: another one may own the turn. */
  readonly isHeld: boolean;
  /**
   * Resolves with the number of the last chunk once the store has all of them. `mark` is kept in the
   * same step, for the process that takes the turn over when this writer is gone.
   */
  append(chunks: Chunk[], mark?: number): Promise<number>;
  /** Extends the lease of a turn that has nothing to write. */
  renew(): Promise<void>;
  /** Ends when the turn has ended. */
  commands(): AsyncIterable<TurnCommand>;
  /** Gives up the lease without ending the turn, so that another process can take the turn over at once. */
  release(): Promise<void>;
  /**
   * Ends the turn, whose last chunks are written already. Later calls do nothing. `store` keeps what follows from the
   * turn elsewhere, such as its message in a history: it may run again for a turn that another process takes over.
   */
  close(outcome: TurnOutcome, store?: () => void): Promise<void>;
}
