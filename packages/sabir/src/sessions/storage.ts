import type { Trigger } from '../core/chat-request.ts';
import type { UIMessage } from '../core/message.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { Role } from '../core/roles.ts';
import type { Channel } from '../core/translator.ts';
import type { TurnLog } from '../turns/log.ts';
import type { Attachment } from '../turns/upstream.ts';

/** A message of the history. */
export type StoredMessage = UIMessage &
  Channel & {
    role: 'user' | 'assistant';
    /** Milliseconds since 1970. */
    createdAt: number;
    authorId?: string;
    authorName?: string;
    /** The prompt that it asks or answers. */
    promptId?: string;
  };

/** A prompt, from when the session accepted it to long after it was answered, without its text and files. */
export type PromptInfo = Channel & {
  promptId: string;
  /** The id of the user's message. @default the `promptId` */
  userMessageId?: string;
  /** @default 'submit-message' */
  trigger?: Trigger;
  /** The message that this prompt regenerates or edits. It and those behind it are replaced. */
  replaces?: string;
  /** Who wrote the user's message, where another person has asked to regenerate its answer. */
  writtenBy?: { id: string; name?: string };
  turnId: string;
  /** The id of the answer's message. */
  messageId: string;
  status: 'queued' | 'running' | 'ended';
  /** The chat that it was asked in, where the gateway of this process asked: that gateway calls `onFinish`. */
  chatId?: string;
  traceparent?: string;
  authorId: string;
  authorName?: string;
  /** Milliseconds since 1970. */
  askedAt: number;
  startedAt?: number;
  endedAt?: number;
  /** How its turn ended, or `withdrawn` if none began. */
  outcome?: TurnOutcome['status'] | 'withdrawn';
  /** Why it failed. */
  error?: string;
  /** The runner that it was sent to. */
  runnerId?: string;
};

export type StoredPrompt = PromptInfo & {
  text: string;
  attachments: Attachment[];
  /** What the application added to the request. */
  body: Record<string, unknown>;
};

/** A field that is not there stays as it was. */
export type PromptChanges = Partial<
  Pick<PromptInfo, 'status' | 'startedAt' | 'endedAt' | 'outcome' | 'error' | 'runnerId'>
>;

/** Each of them names one prompt of a session. */
export type PromptKey = 'promptId' | 'turnId' | 'messageId';

export type Participant = {
  id: string;
  name?: string;
  role: Role;
  /** Milliseconds since 1970. */
  firstSeenAt: number;
  lastSeenAt: number;
};

type LatestMessages = {
  /** @default all channels */
  channel?: Channel;
  /** Only those before this message. */
  before?: string;
  /** Only this message and those behind it. */
  from?: string;
  /** How many at most. @default all */
  limit?: number;
  /** What they may come to, as JSON in UTF-8: the first that does not fit ends the list. */
  maxBytes?: number;
};

/**
 * What one session keeps beside its turns, which are in a `TurnLog`. Synchronous, as SQLite is on Node and in a Durable
 * Object: when a method returns, what it was given is kept. An implementation
 * - MUST make `transaction` all or nothing: if `run` throws, nothing it did is kept, and the error
 *   is thrown on. A transaction within another is part of it: if only the inner one throws, only
 *   what that did is undone;
 * - MUST keep what was written when the process is killed right after;
 * - MUST give back what was given, of any JSON there is and any string (also with NUL characters
 *   and half surrogate pairs), and not what giver or taker do to it later. What `JSON.stringify`
 *   cannot write, it MUST refuse by throwing, changing nothing;
 * - MUST list messages and prompts in the order they were added, participants in the order they were
 *   first saved;
 * - MUST refuse a message whose id is there already, and a prompt of which any id is, with false,
 *   changing nothing;
 * - MUST leave replaced messages out of `messages` and `message`, and let their ids be used again;
 * - MUST find a replaced message with `wasReplaced`, also while its id is used again, until it is restored;
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
  /** MUST be one of `messages`. */
  message(id: string): StoredMessage | undefined;
  /**
   * Takes this message and those of its channel behind it out of the conversation. They stay in storage, marked with the
   * prompt that replaces them.
   */
  replaceMessages(from: string, promptId: string): void;
  /** What this prompt has replaced, the oldest first. */
  replacedMessages(promptId: string): StoredMessage[];
  /** Whether a message with this id stood in this channel and was replaced. MUST NOT load messages. */
  wasReplaced(id: string, channel: Channel): boolean;
  /** Puts what this prompt has replaced back to where it was, except for a message whose id is used again. Of several with one id: the first. */
  restoreMessages(promptId: string): void;
  /** Those with messages, replaced ones included, in the order of their first. */
  channels(): Channel[];

  /** False if one of its ids is there. */
  addPrompt(prompt: StoredPrompt): boolean;
  prompt(promptId: string): StoredPrompt | undefined;
  /** MUST NOT load the prompt's text and files; neither may `openPrompts`. */
  promptInfo(key: PromptKey, id: string): PromptInfo | undefined;
  /** Of a prompt that is not there: nothing. */
  updatePrompt(promptId: string, changes: PromptChanges): void;
  /** Those that have not ended: what runs, then what waits, in the order it was asked. */
  openPrompts(): PromptInfo[];

  saveParticipant(participant: Participant): void;
  participant(id: string): Participant | undefined;
  participants(): Participant[];

  /** What messages and prompts come to, as JSON in UTF-8. MUST NOT load them. */
  bytes(): number;
}

/** Where all sessions are kept. */
export interface SessionStore {
  /**
   * Where the turns of these sessions are kept. On the same database as the sessions where there is one, so that a turn's
   * end and its message are committed together.
   */
  readonly log: TurnLog;
  /** Makes nothing: a session is there once something is kept in it. */
  open(sessionId: string): SessionStorage;
  /**
   * The sessions there are, those that something happened in last first: `updatedAt` is when it
   * began, or a message or a prompt was added or a prompt changed. In milliseconds since 1970.
   */
  list(limit?: number): { sessionId: string; updatedAt: number }[];
  /** Those with a prompt that has not ended: after a restart they are to be looked after. */
  unfinished(): string[];
  /** About how many bytes all sessions take. */
  storedBytes(): number;
  /** All of it. A storage that was opened for it goes on, with nothing in it. */
  delete(sessionId: string): void;
  /** Closes the store and its log. Whatever is called after that throws. */
  close(): void;
}
