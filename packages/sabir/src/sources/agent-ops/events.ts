/**
 * What an Agent Ops session says, in both of its dialects, declared structurally.
 *
 * V2 is how a runner speaks to its session, and how a session speaks that forwards it. Deployed
 * sessions tell their clients the same turns as snapshots. `message`, `chunk` and
 * `message.updated` are the snapshot dialect, `message.create`, `message.part.*`,
 * `message.finalize`, `complete` and `aborted` are V2; the rest is common to both.
 */
import type { UIMessage, UITools } from '../../message.ts';
import type { MessageMetadata } from '../../outcome.ts';
import type { DomainEventType } from './domain-events.ts';

/** Where a turn takes place; a session without channels says nothing. */
export type Place = { channelType?: string; channelId?: string };

export type AgentStatus = 'idle' | 'thinking' | 'streaming' | 'tool_calling' | 'error';

export type ToolCallState = {
  callId: string;
  toolName?: string;
  status: 'pending' | 'running' | 'completed' | 'error';
  /** `{}` while the call is pending, and sometimes once more when it is completed. */
  args?: unknown;
  result?: unknown;
  error?: unknown;
};

type TurnEnd = 'end_turn' | 'error' | 'canceled';

type MessagePart =
  | { type: 'text'; text: string; streaming?: boolean }
  | ({ type: 'tool-call' } & ToolCallState)
  | { type: 'finish'; reason: TurnEnd }
  | { type: 'error'; message: string };

export type SessionMessage = Place & {
  id: string;
  role?: 'user' | 'assistant' | 'system' | 'tool';
  content?: string;
  /** An object, not a list, where the message is not a turn. */
  parts?: MessagePart[] | Record<string, unknown>;
  createdAt?: number;
};

/** Null stands for the turn that is open. */
type OfTurn = { turnId: string | null };
/** The prompt's id, which is not the turn's. */
type OfPrompt = { messageId?: string };

type V2Event =
  | ({ type: 'message.create'; turnId: string; opencodeSessionId?: string } & Place)
  | ({ type: 'message.part.text-delta'; delta: string } & OfTurn)
  | ({ type: 'message.part.tool-update' } & OfTurn & ToolCallState)
  | ({ type: 'message.finalize'; reason: TurnEnd; finalText?: string; error?: string } & OfTurn)
  | ({ type: 'complete' } & OfPrompt)
  | ({ type: 'aborted' } & OfPrompt)
  | ({
      type: 'usage-report';
      entries: Array<{ inputTokens?: number; outputTokens?: number; model?: string }>;
    } & OfTurn);

type SnapshotEvent =
  | { type: 'init'; session: { id?: string; messages?: SessionMessage[] }; data?: unknown }
  | { type: 'message'; data: SessionMessage }
  | { type: 'message.updated'; data: SessionMessage }
  | ({ type: 'chunk'; content: string; messageId?: string } & Place);

export type SessionStatus = {
  runnerBusy?: boolean;
  aborted?: boolean;
  /** Ours or anybody's; `queuePosition` counts from 1. */
  promptQueued?: boolean;
  queuePosition?: number;
  promptDequeued?: boolean;
  /** How many still wait after this one. */
  remaining?: number;
  /** The session gave up on a prompt that was stuck, and will send it again. */
  watchdogRecovery?: boolean;
  /** The prompt it worked on is queued again, and answered with another turn. */
  runnerDisconnected?: boolean;
  /** The question's id. */
  questionAnswered?: string;
  answer?: unknown;
  /** The question's id. */
  questionExpired?: string;
  [key: string]: unknown;
};

/** The newer form of a question; here `expiresAt` is in milliseconds. */
export type InteractivePrompt = {
  id: string;
  /** A question of the agent, or the approval of a tool's action. */
  type?: 'question' | 'approval' | (string & {});
  title?: string;
  body?: string;
  actions?: Array<{ id: string; label?: string }>;
  expiresAt?: number | string;
  context?: Place & Record<string, unknown>;
};

type CommonEvent =
  | ({ type: 'agentStatus'; status: AgentStatus; detail?: string } & OfPrompt & Place)
  | ({
      type: 'error';
      error?: unknown;
      message?: string;
      content?: string;
      data?: { message?: string; promptId?: string };
      /** The prompt's id from a runner; from a session an id of the error itself. */
      messageId?: string;
      /** Only an answer to this question was refused: the turn goes on. */
      promptId?: string;
    } & Place)
  | ({
      type: 'question';
      questionId: string;
      text: string;
      options?: string[];
      /** In seconds. */
      expiresAt?: number | string;
    } & OfPrompt &
      Place)
  | ({ type: 'interactive_prompt'; prompt: InteractivePrompt } & Place)
  | {
      type: 'interactive_prompt_resolved';
      promptId: string;
      resolution?: { actionId?: string; value?: unknown };
    }
  | { type: 'interactive_prompt_expired'; promptId: string }
  | { type: 'status'; status?: string; data?: SessionStatus }
  | { type: 'queue.withdrawn'; data?: unknown };

type DomainEvent = { type: DomainEventType; [field: string]: unknown };

/** An event of a turn, which a translator has something to do with. */
type TurnEvent = V2Event | SnapshotEvent | CommonEvent;
export type AgentOpsEvent = TurnEvent | DomainEvent;

export type TurnEventType = TurnEvent['type'];
export type EventOf<Type extends TurnEventType> = Extract<TurnEvent, { type: Type }>;

export type AgentOpsQuestion = {
  questionId: string;
  text: string;
  options?: string[];
  /** Milliseconds since 1970, whatever the session counts in: what `Date.now()` compares with. */
  expiresAt?: number;
  status: 'open' | 'answered' | 'expired' | 'withdrawn';
  answer?: string;
};

export type AgentOpsDataTypes = {
  /** Transient: it reaches `onData` and stays in no message. */
  'agent-status': { status: AgentStatus | (string & {}); detail?: string };
  question: AgentOpsQuestion;
};

/** A message from an Agent Ops session; name your tools to have their parts typed. */
export type AgentOpsUIMessage<Tools extends UITools = UITools> = UIMessage<
  MessageMetadata,
  AgentOpsDataTypes,
  Tools
>;
