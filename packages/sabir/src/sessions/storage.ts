import type { Channel } from '../core/translator.ts';
import type { SessionMessage } from '../sources/agent-ops/index.ts';
import type { FileAttachment } from './protocol.ts';

/** A message of the history. `createdAt` is in seconds, as the sockets tell it. */
export type StoredMessage = SessionMessage & {
  role: 'user' | 'assistant';
  content: string;
  createdAt: number;
  authorId?: string;
  authorName?: string;
  /** Of an answer: the message it answers. */
  promptId?: string;
};

type TurnStatus = 'queued' | 'running' | 'ended';

/** A prompt, from when it was taken to long after it was answered, without what it says. */
export type TurnInfo = Channel & {
  turnId: string;
  promptId: string;
  status: TurnStatus;
  model?: string;
  traceparent?: string;
  authorId: string;
  authorName?: string;
  /** Milliseconds since 1970. */
  askedAt: number;
  startedAt?: number;
  endedAt?: number;
  /** How it ended: as its `message.finalize` says, or `withdrawn` if it never began. */
  reason?: 'end_turn' | 'error' | 'canceled' | 'withdrawn';
  error?: string;
};

/** The same with the prompt's text and files, which may be large. */
export type StoredTurn = TurnInfo & { content: string; attachments: FileAttachment[] };

/** What becomes of a turn. A field that is not there stays as it was. */
export type TurnChanges = Partial<
  Pick<StoredTurn, 'status' | 'startedAt' | 'endedAt' | 'reason' | 'error'>
>;

export type StoredQuestion = {
  questionId: string;
  /** What its runner calls it: two turns may each have a question of that name. */
  askedAs: string;
  turnId: string;
  status: 'open' | 'answered' | 'expired' | 'withdrawn';
  /** The question as it was told. */
  event: object;
  /** Milliseconds since 1970. */
  expiresAt: number;
  answer?: string | boolean;
};

export type Participant = {
  id: string;
  name?: string;
  role: 'viewer' | 'collaborator' | 'owner';
  /** Milliseconds since 1970. */
  firstSeenAt: number;
  lastSeenAt: number;
};

type LatestMessages = {
  /** Default: all channels. */
  channel?: Channel;
  /** Only those before this message. */
  before?: string;
  /** How many at most. Default: all. */
  limit?: number;
  /** What they may come to, as JSON in UTF-8: the first that does not fit ends the list. */
  maxBytes?: number;
};

/**
 * What one session keeps. Synchronous, as SQLite is on Node and in a Durable Object: what a method
 * was told is kept when it returns, so that it can be told to others then. An implementation
 * - MUST make `transaction` all or nothing: if `run` throws, nothing it did is kept, and the error
 *   is thrown on. A transaction within another is part of it: if only the inner one throws, only
 *   what that did is undone;
 * - MUST keep what was written when the process is killed right after;
 * - MUST give back what was given, of any JSON there is and any string (also with NUL characters
 *   and half surrogate pairs), and not what giver or taker do to it later. What `JSON.stringify`
 *   cannot write, it MUST refuse by throwing, changing nothing;
 * - MUST list messages and turns in the order they were added, questions and participants in the
 *   order they were first saved;
 * - MUST refuse a message, turn or prompt whose id is there already, with false, changing nothing;
 * - MUST keep sessions apart: the same ids in two of them are two things.
 *
 * `test/session-storage-conformance.ts` checks all of it.
 */
export interface SessionStorage {
  transaction<T>(run: () => T): T;

  /** False if its id is there. */
  addMessage(message: StoredMessage): boolean;
  /** The latest, the oldest of them first. What is left out MUST NOT be loaded. */
  messages(options?: LatestMessages): StoredMessage[];
  /** Those with messages, in the order of their first. */
  channels(): Channel[];

  /** False if its turn id or its prompt id is there. */
  addTurn(turn: StoredTurn): boolean;
  turn(turnId: string): StoredTurn | undefined;
  /** MUST NOT load the prompt's text and files; neither may the other two that give a `TurnInfo`. */
  turnInfo(turnId: string): TurnInfo | undefined;
  turnOfPrompt(promptId: string): TurnInfo | undefined;
  /** Of a turn that is not there: nothing. */
  updateTurn(turnId: string, changes: TurnChanges): void;
  /** Those that have not ended: what runs, then what waits, in the order it was asked. */
  openTurns(): TurnInfo[];

  /**
   * One or more events of a turn as JSON, comma-separated, up to and with `lastSeq`, which is
   * higher each time: else it throws. Of a turn that is not there: nothing.
   */
  appendEvents(turnId: string, lastSeq: number, events: string): void;
  /**
   * Entries as they were appended, the first that hold something after `after`: as many as fit into
   * `maxBytes`, but always one. Default: all.
   */
  events(turnId: string, after: number, maxBytes?: number): string[];
  /**
   * Forgets the events of turns that have ended, except for the so many with the latest `endedAt`,
   * and of those except for the latest that fit into `maxBytes`.
   */
  trimEvents(keep: number, maxBytes?: number): void;

  saveQuestion(question: StoredQuestion): void;
  question(questionId: string): StoredQuestion | undefined;
  openQuestions(): StoredQuestion[];
  /** All of a turn, whatever became of them. */
  questionsOf(turnId: string): StoredQuestion[];

  saveParticipant(participant: Participant): void;
  participant(id: string): Participant | undefined;
  participants(): Participant[];

  get(key: string): string | undefined;
  set(key: string, value: string): void;

  /** What messages, prompts and questions come to, as JSON in UTF-8. MUST NOT load them. */
  bytes(): number;
}

/** Where all sessions are kept. */
export interface SessionStore {
  /** Makes nothing: a session is there once something is kept in it. */
  open(sessionId: string): SessionStorage;
  /**
   * The sessions there are, those that something happened in last first: `updatedAt` is when it
   * began, or a message or a turn was added or a turn changed. In milliseconds since 1970.
   */
  list(limit?: number): { sessionId: string; updatedAt: number }[];
  /** Those with a turn that has not ended: after a restart they are to be looked after. */
  unfinished(): string[];
  /** About how many bytes all sessions take. */
  storedBytes(): number;
  /** All of it. A storage that was opened for it goes on, with nothing in it. */
  delete(sessionId: string): void;
  /** Lets go of whatever is held. Whatever is called after that throws. */
  close(): void;
}
