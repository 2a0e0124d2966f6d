/**
 * What an Agent Ops session says, in both of its dialects, declared structurally.
 *
 * V2 is how a runner speaks to its session, and how a session speaks that forwards it. Deployed
 * sessions tell their clients the same turns as snapshots. `message`, `chunk` and
 * `message.updated` are the snapshot dialect, `message.create`, `message.part.*`,
 * `message.finalize`, `complete` and `aborted` are V2; the rest is common to both.
 *
 * Our own session server speaks V2 and says more: which prompt a turn answers, the place of every
 * event in its turn, and parts that deployed servers do not have. What only it says is `Linked`.
 */
import type { UIMessage, UITools } from '../../core/message.ts';
import type { MessageMetadata, Usage } from '../../core/outcome.ts';
import type { DomainEventType } from './domain-events.ts';

export type AgentStatus = 'idle' | 'thinking' | 'streaming' | 'tool_calling' | 'error';

/** Where a turn takes place; a session without channels says nothing. */
export type Place = { channelType?: string; channelId?: string };

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

/** What an answer refers to: a page, or a document. */
export type SourceState =
  | { sourceId: string; url: string; title?: string }
  | { sourceId: string; mediaType: string; title: string; filename?: string };

export type FileState = { url: string; mediaType: string };

/** With the same name and id it replaces what was there. */
export type DataState = { name: string; id?: string; data: unknown };

/** A question as it is kept in its message; `expiresAt` is as it was told. */
type QuestionState = {
  questionId: string;
  text: string;
  options?: string[];
  expiresAt?: number | string;
  status: AgentOpsQuestion['status'];
  answer?: string | boolean;
  /** The tool call that waits for the answer. */
  callId?: string;
  /** Who may answer: an `AnswerBy`, where the server says so. */
  answerBy?: unknown;
};

/** Only our own server has more than text, calls, error and finish. */
export type MessagePart =
  /** Of our server, `streaming: false` says that what follows is a part of its own. */
  | { type: 'text'; text: string; streaming?: boolean }
  | { type: 'reasoning'; text: string; streaming?: boolean }
  | ({ type: 'tool-call' } & ToolCallState)
  | { type: 'step' }
  | ({ type: 'source' } & SourceState)
  | ({ type: 'file' } & FileState)
  | ({ type: 'data' } & DataState)
  | ({ type: 'question' } & QuestionState)
  | { type: 'usage'; usage: Usage }
  | { type: 'finish'; reason: TurnEnd }
  | { type: 'error'; message: string; code?: string };

export type SessionMessage = Place & {
  id: string;
  role?: 'user' | 'assistant' | 'system' | 'tool';
  content?: string;
  /** An object, not a list, where the message is not a turn. */
  parts?: MessagePart[] | Record<string, unknown>;
  createdAt?: number;
  /** Of an answer of our own server: the message it answers. */
  promptId?: string;
};

/** What our own server adds to the events of a turn: the prompt, and the event's place in the turn. */
type Linked = { promptId?: string; seq?: number };
/** Null stands for the turn that is open. */
type OfTurn = { turnId: string | null } & Linked;
/** The prompt's id, which is not the turn's. */
type OfPrompt = { messageId?: string };

type V2Event =
  | ({ type: 'message.create'; turnId: string; opencodeSessionId?: string } & Place & Linked)
  | ({ type: 'message.part.text-delta'; delta: string } & OfTurn)
  | ({ type: 'message.part.tool-update' } & OfTurn & ToolCallState)
  | ({ type: 'message.part.reasoning-delta'; delta: string } & OfTurn)
  /** A call's arguments as the model writes them: JSON, piece by piece. */
  | ({
      type: 'message.part.tool-input-delta';
      callId: string;
      toolName?: string;
      delta: string;
    } & OfTurn)
  /** What follows belongs to the next step. */
  | ({ type: 'message.part.step' } & OfTurn)
  | ({ type: 'message.part.source' } & SourceState & OfTurn)
  | ({ type: 'message.part.file' } & FileState & OfTurn)
  | ({ type: 'message.part.data'; transient?: boolean } & DataState & OfTurn)
  | ({
      type: 'message.finalize';
      reason: TurnEnd;
      finalText?: string;
      error?: string;
      /** What kind of error, for programs. */
      code?: string;
    } & OfTurn)
  | ({ type: 'complete' } & OfPrompt)
  | ({ type: 'aborted'; turnId?: string } & OfPrompt)
  | ({ type: 'usage-report'; entries: Array<Usage & { model?: string }> } & OfTurn);

type SnapshotEvent =
  | {
      type: 'init';
      session: { id?: string; messages?: SessionMessage[] };
      /** Our own server says here which turn runs, up to where its message goes, and who waits. */
      data?: { turn?: { turnId: string; seq?: number } | null; queue?: QueuePlace[] };
    }
  | { type: 'message'; data: SessionMessage }
  | { type: 'message.updated'; data: SessionMessage }
  | ({ type: 'chunk'; content: string; messageId?: string } & Place);

/** A prompt that waits; `position` counts from 1. */
type QueuePlace = { promptId: string; position: number; [key: string]: unknown };

export type SessionStatus = {
  runnerBusy?: boolean;
  aborted?: boolean;
  /** Ours or anybody's; `queuePosition` counts from 1. */
  promptQueued?: boolean;
  queuePosition?: number;
  promptDequeued?: boolean;
  /** Of our own server: the prompt that was queued. */
  promptId?: string;
  /** Of our own server: the prompt that was taken out of the queue. */
  promptWithdrawn?: string;
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
  | ({
      type: 'agentStatus';
      status: AgentStatus;
      detail?: string;
      turnId?: string;
      promptId?: string;
    } & OfPrompt &
      Place)
  | ({
      type: 'error';
      error?: unknown;
      message?: string;
      content?: string;
      data?: { message?: string; promptId?: string };
      /** The prompt's id from a runner; from a session an id of the error itself. */
      messageId?: string;
      /** Without a `turnId`, only an answer to this question was refused: the turn goes on. */
      promptId?: string;
      /** What somebody asked for and may not have: nothing is wrong with the turn. */
      refused?: string;
      questionId?: string;
      /** The turn that failed. */
      turnId?: string;
      code?: string;
    } & Place)
  | ({
      type: 'question';
      questionId: string;
      text: string;
      options?: string[];
      /** In seconds. */
      expiresAt?: number | string;
      /** The tool call that waits for the answer, where it is said. */
      callId?: string;
      /** Who may answer: an `AnswerBy`, where the server says so. */
      answerBy?: unknown;
      turnId?: string;
    } & Linked &
      OfPrompt &
      Place)
  | ({ type: 'interactive_prompt'; prompt: InteractivePrompt } & Place)
  | {
      type: 'interactive_prompt_resolved';
      promptId: string;
      resolution?: { actionId?: string; value?: unknown };
    }
  | { type: 'interactive_prompt_expired'; promptId: string }
  | { type: 'status'; status?: string; data?: SessionStatus }
  | { type: 'queue.state'; data?: { queue?: QueuePlace[]; [key: string]: unknown } }
  | { type: 'queue.withdrawn'; data?: { promptId?: string; [key: string]: unknown } };

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
  /** The tool call that waits for the answer, where the session says which. */
  toolCallId?: string;
  /** Who may answer: an `AnswerBy`, where the session says so. */
  answerBy?: unknown;
  status: 'open' | 'answered' | 'expired' | 'withdrawn';
  answer?: string;
};

export type AgentOpsDataTypes = {
  /** Transient: it reaches `onData` and stays in no message. */
  'agent-status': { status: AgentStatus | (string & {}); detail?: string };
  question: AgentOpsQuestion;
  /** How many prompts are before this one, and itself; 0 when it waits no more. */
  queue: { position: number; status: 'waiting' | 'begun' | 'withdrawn' };
};

/** A message from an Agent Ops session; name your tools to have their parts typed. */
export type AgentOpsUIMessage<Tools extends UITools = UITools> = UIMessage<
  MessageMetadata,
  AgentOpsDataTypes,
  Tools
>;
