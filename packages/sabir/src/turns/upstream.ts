import type { Trigger } from '../core/chat-request.ts';
import type { Chunk } from '../core/chunks.ts';
import type { UIMessage } from '../core/message.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { Role } from '../core/roles.ts';
import type { Channel, Translator } from '../core/translator.ts';
import type { Answer, Steer } from './log.ts';

/** Who asks. `id` is what tells two people apart; the rest is the application's. */
export type User = {
  id: string;
  /** When what proved who this is runs out, in milliseconds since 1970. */
  expiresAt?: number;
  [claim: string]: unknown;
};

/** Whom a connection to a session is for, and what the gateway lets them do in it. */
export type SessionIdentity = { sessionId: string; user: User; role: Role };

/** A file part of the user's message: a `data:` URL, or an address the agent can reach. */
export type Attachment = { url: string; mediaType: string; filename?: string };

export type Prompt = {
  sessionId: string;
  chatId: string;
  /** Tells this chat from every other one of the gateway: two people's chats may have the same id. */
  chatKey: string;
  turnId: string;
  /** The id of the message to write, unless the source names one. */
  messageId: string;
  /** The id of the user's message, in a session. */
  promptId?: string;
  user: User;
  /** The text of the latest user message. */
  text: string;
  attachments: Attachment[];
  /** As the client sent them: an upstream that keeps its own history ignores them. */
  messages: UIMessage[];
  /** What the application added to the request's body. */
  body: Record<string, unknown>;
  /** Whether a message is answered for the first time, or anew. @default 'submit-message' */
  trigger?: Trigger;
  /**
   * The message that this prompt regenerates or edits. In a session it is known, and it and those behind it are no part
   * of `messages` any more. Behind a gateway without sessions it is what the client named; a stock client that
   * regenerates its last answer names none.
   */
  replaces?: string;
  /** The user's message as the client sent it, where that is known. */
  userMessage?: UIMessage;
  channel?: Channel;
  /** What a person is shown of the source's own errors. */
  errorText?: (error: unknown) => string;
  /** W3C Trace Context of the turn's span, if telemetry is on: the agent's spans go on from it. */
  traceparent?: string;
  /**
   * Nothing new is asked: the turn that `waiting` told of goes on. It tells again what it has said,
   * its open question included, and waits for the answer.
   */
  isRestored?: true;
};

/** Where a turn's events go. Nothing thrown comes back from it. */
export interface TurnSink {
  event(event: unknown): void;
  /** Nothing more will come. Called at most once; not needed after a terminal event. */
  close(outcome: TurnOutcome): void;
}

/** One prompt on its way through the agent. */
export interface UpstreamTurn {
  /** Makes chunks of this turn's events, and of no other turn's. */
  readonly translator: Translator<unknown>;
  /** The prompt waits behind others: silence means nothing yet. */
  readonly isQueued: boolean;
  /**
   * Settles when the agent is known to have taken the prompt, or the turn has ended. Only for an upstream that can refuse a
   * prompt after `prompt` has returned; without it the prompt counts as taken at once.
   */
  readonly accepted?: Promise<void>;
  /** How much of the turn has come, in the upstream's own count; `attach` goes on behind it. Needed where the session can. */
  readonly position?: number;
  /** Everything up to this position is in the log. */
  written?(position: number): void;
  /** How many prompts have to end before this one, and itself; undefined where that is not known. */
  readonly queuePosition?: number;
  /** Called when `queuePosition` or `isQueued` changes; set by the process that runs the turn. */
  onQueue?: () => void;
  /**
   * Without a reason, somebody asked for it. With one, which is a `SabirError`, nobody did: the turn
   * was lost, and what it waited for may go on some other time.
   */
  stop(reason?: unknown): void;
  /**
   * Another process numbers the turn, keeps its clocks and ends it: the log here is a copy. Also a turn that was stopped
   * ends with the other's chunks; any other turn is ended at once by the process that runs it.
   */
  readonly isReplica?: boolean;
  /**
   * Of a replica: called when the other process cannot be reached, again and again while that lasts. The turn goes on there,
   * and here when it can be reached. Set by the process that runs the turn.
   */
  onUnreachable?: () => void;
  answer(answer: Answer): void;
  /**
   * A message for the running turn. Its events say what came of it: a `steering-message` where the agent has taken it, a
   * `data-steering` where it has not. Without it no message is taken.
   */
  steer?(message: Steer): void | Promise<void>;
  /** Nobody answered in time: the source says so in an event. */
  expire?(questionId: string): void;
  /** The turn has ended for us: the source need not send its events any more. */
  release(): void;
}

/** The chat that somebody has come back to, or wants to answer in. */
export type WaitingChat = Pick<Prompt, 'chatId' | 'chatKey' | 'user'>;

/** A turn that goes on when somebody comes. */
export type WaitingTurn = {
  messageId: string;
  /**
   * Who asked: it goes on as theirs, whoever has come. Without it, it is the visitor's, unless they
   * may only watch: then nothing goes on.
   */
  userId?: string;
};

/** What the log has of a turn: its chunks, and the position that they were appended with. */
export type Written = { readonly chunks: readonly Chunk[]; readonly mark: number };

/** A live connection to one session, shared by all turns of one identity in it. */
export interface UpstreamSession {
  readonly isClosed: boolean;
  /**
   * Something that was stopped has not begun yet: without the connection nobody would stop it when
   * it does. A session that nobody uses is kept open for it, though not for ever.
   */
  readonly isBusy?: boolean;
  prompt(prompt: Prompt, sink: TurnSink): UpstreamTurn;
  /**
   * Goes on with a turn that another process has prompted, behind what is written; a prompt that never arrived is sent.
   * Without it a turn is lost with the process that began it. The prompt is as it was, but for `messages`, which are
   * not kept.
   */
  attach?(prompt: Prompt, sink: TurnSink, written: Written): UpstreamTurn;
  /**
   * The messages so far, without the answer that is being written, as this user may see them; of one
   * channel, where there are several.
   */
  history?(user: User, channel?: Channel): Promise<UIMessage[]>;
  /** The channels seen so far. */
  channels?(): Channel[];
  /**
   * The message of a turn of this chat that waits for an answer though no gateway runs it: one whose
   * process ended. Asked only where the upstream says `canWait`.
   */
  waiting?(where: WaitingChat): Promise<WaitingTurn | undefined>;
  close(): void;
}

/**
 * An agent behind the gateway. An implementation
 * - MUST reject `open` with a reason when the agent cannot be reached, and give up when `signal`
 *   aborts;
 * - MUST send each prompt exactly once, except for one that was lost by a stop of its own making;
 * - MUST NOT throw from `prompt`: what goes wrong is told to the sink as an outcome;
 * - MUST queue by itself if the agent takes one prompt at a time, and say so with `isQueued`;
 * - MUST tell the sink of every open turn when the connection drops, or, of a replica, call `onUnreachable`;
 * - MUST, on `stop`, stop that turn and no other: a prompt that is still queued is withdrawn, or
 *   stopped as soon as it begins, also when its turn is released before that: the session says so
 *   with `isBusy`;
 * - MUST, if it can `attach`, tell what follows the mark and nothing before it, with a translator that knows the chunks
 *   that are written, and take answers and a stop that it has had already without harm;
 * - MUST give a session to nobody but the identity it was opened for;
 * - MUST NOT call a sink after its `release`, nor from inside `prompt`;
 * - MUST NOT hold anything after `close`: no socket, no timer, no listener.
 *
 * `test/upstream-conformance.ts` checks all of it.
 */
export interface Upstream {
  /** Its sessions have `waiting`. Without it none is opened just to ask. */
  readonly canWait?: boolean;
  /** Its turns tell their place in a queue (`queuePosition`), which viewers are shown. */
  readonly hasQueue?: boolean;
  open(where: SessionIdentity & { signal: AbortSignal }): Promise<UpstreamSession>;
}
