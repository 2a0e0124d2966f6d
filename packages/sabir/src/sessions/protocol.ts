/**
 * What is said on the sockets of a session server: V2, as the RFC's tables have it, and what was
 * added so that nothing has to be guessed. docs/SESSION.md is the same for people.
 *
 * Every event of a turn carries `turnId`, `promptId` (the id of the message that is answered), the
 * turn's channel, and `seq`: its place in the turn, from 1 and without gaps. Whoever lost a
 * connection says `follow` with the last `seq` it has seen and is told what came after.
 */
import type { AnswerBy, Role } from '../core/roles.ts';
import type { Channel } from '../core/translator.ts';
import type { SessionMessage, SessionStatus, ToolCallState } from '../sources/agent-ops/index.ts';

/** A server that says so in its `init` keeps to all of this. */
export const PROTOCOL = { name: 'sabir', version: 1 } as const;

/** What a runner is told for a question whose time ran out. */
export const EXPIRED_ANSWER = '__expired__';

export type FileAttachment = { type: 'file'; mime: string; url: string; filename?: string };

/** From a client to its session. */
export type ClientMessage =
  | ({
      type: 'prompt';
      content: string;
      /** The id of the user's message. Sent again with the same one, it is not asked again. */
      promptId?: string;
      /** The id of the answer's message. */
      turnId?: string;
      model?: string;
      attachments?: FileAttachment[];
      /** W3C Trace Context: the runner is given it with the prompt. */
      traceparent?: string;
    } & Partial<Channel>)
  /** Takes a prompt out of the queue. */
  | { type: 'withdraw'; promptId: string }
  /** Stops this turn, or the one that answers this prompt; without an id, whichever runs. */
  | { type: 'abort'; turnId?: string; promptId?: string }
  | {
      type: 'answer';
      questionId: string;
      answer: string | boolean;
      /** Who answers: only a gateway that the session believes may say so. */
      by?: { userId: string; role: Role };
    }
  /** Asks for a turn's events after this one. */
  | { type: 'follow'; turnId: string; after?: number }
  | { type: 'ping' };

/** From a session to its runner. */
export type RunnerCommand =
  | {
      type: 'init';
      session: { id: string };
      data: {
        protocol: typeof PROTOCOL;
        /** The last of this runner's events that arrived: what comes after it is to be sent again. */
        lastRunnerSeq: number;
      };
    }
  | ({
      type: 'prompt';
      /** The prompt's id. */
      messageId: string;
      turnId: string;
      content: string;
      model?: string;
      attachments?: FileAttachment[];
      author?: { id: string; name?: string };
      traceparent?: string;
      /** What was said before in this channel, for runners that want it; the oldest first. */
      messages?: SessionMessage[];
    } & Channel)
  | { type: 'abort'; turnId: string; messageId: string }
  | { type: 'answer'; questionId: string; answer: string | boolean }
  | { type: 'ack'; runnerSeq: number }
  | { type: 'pong' };

/** The parts of an answer, as a runner sends them. Old clients do not know those with a star. */
export type PartEvent =
  | { type: 'message.part.text-delta'; delta: string }
  /** * */
  | { type: 'message.part.reasoning-delta'; delta: string }
  | ({ type: 'message.part.tool-update' } & ToolCallState)
  /** * A call's arguments as the model writes them: JSON, piece by piece. */
  | { type: 'message.part.tool-input-delta'; callId: string; toolName?: string; delta: string }
  /** * What follows belongs to the next step. */
  | { type: 'message.part.step' }
  /** * */
  | { type: 'message.part.source'; sourceId: string; url: string; title?: string }
  | {
      type: 'message.part.source';
      sourceId: string;
      mediaType: string;
      title: string;
      filename?: string;
    }
  /** * */
  | { type: 'message.part.file'; url: string; mediaType: string }
  /** * What a page knows how to show; with the same name and id it replaces what was there. */
  | { type: 'message.part.data'; name: string; id?: string; data: unknown; transient?: boolean };

export type Finalize = {
  type: 'message.finalize';
  reason: 'end_turn' | 'error' | 'canceled';
  finalText?: string;
  error?: string;
  /** What kind of error, for programs. */
  code?: string;
};

export type QuestionEvent = {
  type: 'question';
  questionId: string;
  text: string;
  options?: string[];
  /** In seconds since 1970, as deployed servers have it. */
  expiresAt?: number;
  /** The tool call that waits for the answer. */
  callId?: string;
  /** Who may answer. Default: every collaborator and owner. */
  answerBy?: AnswerBy;
};

/** From a runner to its session, in a turn. */
export type TurnEvent =
  | { type: 'message.create'; opencodeSessionId?: string }
  | PartEvent
  | QuestionEvent
  | { type: 'usage-report'; entries: UsageEntry[] }
  | Finalize;

export type UsageEntry = {
  inputTokens?: number;
  outputTokens?: number;
  totalTokens?: number;
  reasoningTokens?: number;
  cachedInputTokens?: number;
  model?: string;
};

/** The first thing a runner of ours says. */
export type RunnerHello = {
  type: 'runner.hello';
  /** The turn it is working on. */
  turnId: string | null;
  /** The turns it has been given, the latest last: what is not among them never reached it. */
  known: string[];
  /** It wants `messages` with each prompt. */
  needsHistory?: boolean;
};

/** An event as a client is told it. */
type Told<Event> = Event & Channel & { turnId: string; promptId: string; seq: number };

/** A prompt that waits, as everybody is told of it. */
export type QueuedPrompt = Channel & {
  promptId: string;
  turnId: string;
  content: string;
  /** From 1. */
  position: number;
  authorId: string;
  authorName?: string;
};

export type ConnectedUser = { id: string; name?: string };

/** What a client is told first. */
export type ClientInit = {
  type: 'init';
  session: { id: string; status: 'running'; messages: SessionMessage[] };
  data: {
    protocol: typeof PROTOCOL;
    /** What this socket may do. */
    role: 'viewer' | 'collaborator' | 'owner';
    /** A longer message closes this socket with 1009. */
    maxMessageBytes: number;
    runnerConnected: boolean;
    runnerBusy: boolean;
    promptsQueued: number;
    connectedClients: number;
    connectedUsers: ConnectedUser[];
    /** The turn that runs; its message, as far as it is written, is the last of its channel's. */
    turn: (Channel & { turnId: string; promptId: string; seq: number }) | null;
    queue: QueuedPrompt[];
    queueReason: 'busy' | 'waking';
    questions: Told<QuestionEvent>[];
    /** The channels that there are messages in. */
    channels: Channel[];
    models?: unknown;
  };
};

/** Something a client wanted and may not have, or cannot. Only whoever asked is told. */
export type RefusalEvent = {
  type: 'error';
  /** The type of what was refused. */
  refused: string;
  code: string;
  error: string;
  promptId?: string;
  questionId?: string;
  turnId?: string;
};

/** How the queue and the runner stand, beside what deployed servers say of them. */
export type StatusEvent = {
  type: 'status';
  data: SessionStatus & { promptId?: string; turnId?: string; queueReason?: 'busy' | 'waking' };
};
