/**
 * What a client and its session send each other on a V2 socket, beside the events of turns (`events.ts`). docs/SESSIONS.md
 * is the same for people.
 *
 * Every event of a turn carries `turnId` (V2's word for the id of the answer's message), `promptId` (the id of the message
 * that is answered), the turn's channel, and `seq`, which grows from event to event. A client that lost its connection
 * sends `follow` with the last `seq` it has seen, and gets what came after.
 */
import type { AnswerBy, Role } from '../../core/roles.ts';
import type { Channel } from '../../core/translator.ts';
import { V2_TYPES } from '../../sources/agent-ops/event-shapes.ts';
import type { SessionStatus } from '../../sources/agent-ops/events.ts';
import type { AnswerMessage, PromptFile, PromptMessage } from './events.ts';

/** A server that says so in its `init` keeps to all of this. */
export const PROTOCOL = { name: 'sabir', version: 1 } as const;

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
      attachments?: PromptFile[];
      /** W3C Trace Context: the agent gets it with the prompt. */
      traceparent?: string;
    } & Partial<Channel>)
  /** Takes a prompt out of the queue. */
  | { type: 'withdraw'; promptId: string }
  /** Stops this turn, or the one that answers this prompt; without an id, the one that runs. */
  | { type: 'abort'; turnId?: string; promptId?: string }
  | { type: 'answer'; questionId: string; answer: string | boolean }
  /** Asks for a turn's events after this one. */
  | { type: 'follow'; turnId: string; after?: number }
  | { type: 'ping' };

/** A prompt that waits. */
export type QueuedPromptState = Channel & {
  promptId: string;
  turnId: string;
  /** How the prompt begins. */
  content: string;
  /** From 1. */
  position: number;
  authorId: string;
  authorName?: string;
};

type UserState = { id: string; name?: string };

/** A question that is open, with its place in its turn. */
type OpenQuestion = Channel & {
  type: 'question';
  turnId: string;
  promptId: string;
  seq: number;
  questionId: string;
  text: string;
  options?: string[];
  /** In seconds since 1970, as deployed servers have it. */
  expiresAt?: number;
  callId?: string;
  answerBy?: AnswerBy;
};

/** The first event on a client's socket. */
export type ClientInit = {
  type: 'init';
  session: { id: string; status: 'running'; messages: (AnswerMessage | PromptMessage)[] };
  data: {
    protocol: typeof PROTOCOL;
    /** What this socket may do. */
    role: Role;
    /** A longer message closes this socket with 1009. */
    maxMessageBytes: number;
    runnerConnected: boolean;
    runnerBusy: boolean;
    promptsQueued: number;
    connectedClients: number;
    connectedUsers: UserState[];
    /** The turn that runs; its message, as far as it is written, is the last of its channel's. */
    turn: (Channel & { turnId: string; promptId: string; seq: number }) | null;
    queue: QueuedPromptState[];
    queueReason: 'busy' | 'waking';
    questions: OpenQuestion[];
    /** The channels that there are messages in. */
    channels: Channel[];
    models?: unknown;
  };
};

/** A request that was refused. Only the client that sent it gets this. */
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

/** What a session and its turns say. An event of an agent that has one of these types reaches no client. */
export const SESSION_TYPES: ReadonlySet<string> = new Set([
  ...V2_TYPES,
  ...['init', 'message', 'message.updated', 'chunk', 'status', 'pong', 'error', 'agentStatus'],
  ...['user.joined', 'user.left', 'queue.state', 'queue.withdrawn', 'question'],
  'messages.removed',
  ...['interactive_prompt', 'interactive_prompt_resolved', 'interactive_prompt_expired'],
]);
