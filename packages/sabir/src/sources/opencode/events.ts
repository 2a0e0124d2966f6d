/**
 * What an OpenCode server says on its `/event` stream, declared structurally and only as far as it
 * is read: the server is not a dependency, and says a good deal more.
 */
import type { UIMessage, UITools } from '../../core/message.ts';
import type { MessageMetadata } from '../../core/outcome.ts';
import type { DomainEventType } from './domain-events.ts';

export type OpenCodeError = { name: string; data?: { message?: string } };

type OpenCodeTokens = {
  /** Without those that came from a cache. */
  input: number;
  /** Without those it thought with. */
  output: number;
  reasoning: number;
  cache: { read: number; write: number };
  total?: number;
};

export type OpenCodeMessageInfo = {
  id: string;
  sessionID: string;
  role: 'user' | 'assistant';
  time?: { created?: number; completed?: number };
  /** Of an answer: the message it answers. */
  parentID?: string;
  error?: OpenCodeError;
  /** Why the model stopped. */
  finish?: string;
  /** `true` for an answer that only sums up the conversation, so that it takes less room. */
  summary?: unknown;
  providerID?: string;
  modelID?: string;
};

export type OpenCodeToolState =
  | { status: 'pending'; input?: unknown }
  | { status: 'running'; input?: unknown; metadata?: { sessionId?: string } }
  | {
      status: 'completed';
      input?: unknown;
      output: string;
      attachments?: { mime: string; url: string }[];
    }
  | { status: 'error'; input?: unknown; error: string };

type OfMessage = { id: string; messageID: string; sessionID: string };

export type OpenCodePart = OfMessage &
  (
    | {
        type: 'text' | 'reasoning';
        text: string;
        time?: { start: number; end?: number };
        synthetic?: boolean;
        ignored?: boolean;
      }
    | { type: 'tool'; tool: string; callID: string; state: OpenCodeToolState }
    | { type: 'file'; mime: string; url: string; filename?: string }
    | { type: 'step-start' }
    | { type: 'step-finish'; reason: string; tokens: OpenCodeTokens; cost: number }
    | { type: 'snapshot' | 'patch' | 'agent' | 'subtask' | 'compaction' | 'retry' }
  );

type OpenCodeSession = { id: string; parentID?: string; title?: string };

export type OpenCodeStatus =
  | { type: 'idle' }
  | { type: 'busy' }
  | { type: 'retry'; attempt: number; message: string };

/** A tool wants to do something that somebody has to allow. */
export type OpenCodePermission = {
  id: string;
  sessionID: string;
  /** Which kind of thing: `bash`, `edit`, `webfetch`, … */
  permission: string;
  /** What of that kind: commands, files, addresses. */
  patterns: string[];
  metadata?: Record<string, unknown>;
  tool?: { messageID: string; callID: string };
};

/** The agent's own question tool; one request may ask several things. */
export type OpenCodeQuestion = {
  id: string;
  sessionID: string;
  questions: {
    question: string;
    header?: string;
    options?: { label: string; description?: string }[];
  }[];
  tool?: { messageID: string; callID: string };
};

type Said<Type extends string, Properties> = { id?: string; type: Type; properties: Properties };
type OfSession = { sessionID: string };
type OfRequest = OfSession & { requestID: string };

type TurnEvent =
  | Said<'message.updated', { info: OpenCodeMessageInfo }>
  | Said<'message.part.updated', { part: OpenCodePart }>
  | Said<
      'message.part.delta',
      OfSession & { messageID: string; partID: string; field: string; delta: string }
    >
  | Said<'permission.asked', OpenCodePermission>
  | Said<'permission.replied', OfRequest & { reply: 'once' | 'always' | 'reject' }>
  | Said<'question.asked', OpenCodeQuestion>
  | Said<'question.replied', OfRequest & { answers: string[][] }>
  | Said<'question.rejected', OfRequest>
  | Said<'session.created', { info: OpenCodeSession }>
  | Said<'session.error', { sessionID?: string; error?: OpenCodeError }>
  | Said<'session.status', OfSession & { status: OpenCodeStatus }>
  | Said<'session.idle', OfSession>;

export type TurnEventType = TurnEvent['type'];
export type PropertiesOf<Type extends TurnEventType> = Extract<
  TurnEvent,
  { type: Type }
>['properties'];

export type OpenCodeEvent = TurnEvent | Said<DomainEventType, unknown>;

/** A question as a page is told of it, in the shape that Agent Ops sessions have for theirs. */
export type OpenCodeQuestionData = {
  questionId: string;
  text: string;
  options?: string[];
  status: 'open' | 'answered' | 'expired' | 'withdrawn';
  answer?: string;
};

export type OpenCodeDataTypes = {
  /** Transient: the model is asked again after it failed. */
  'agent-status': { status: 'thinking'; detail: string };
  question: OpenCodeQuestionData;
};

/** A message from OpenCode; name your tools to have their parts typed. */
export type OpenCodeUIMessage<Tools extends UITools = UITools> = UIMessage<
  MessageMetadata,
  OpenCodeDataTypes,
  Tools
>;
