/**
 * What a run of the OpenAI Agents SDK says, declared structurally: the SDK is not a dependency, and
 * its versions differ only in fields that are optional here.
 */

import type { Decision } from '../../core/decision.ts';
import type { Loose } from '../../core/loose.ts';
import type { UIMessage, UITools } from '../../core/message.ts';
import type { MessageMetadata } from '../../core/outcome.ts';

export type NamedAgent = { readonly name: string };

/** A part of the model's answer, or what a tool gave: only what is common to all of them. */
type RawItem = { readonly type?: string | undefined };

export type RunItem = {
  readonly type: string;
  readonly rawItem?: RawItem | undefined;
  readonly agent?: NamedAgent;
};

export type RunItemEventName =
  | 'message_output_created'
  | 'handoff_requested'
  | 'handoff_occurred'
  | 'tool_called'
  | 'tool_output'
  | 'tool_search_called'
  | 'tool_search_output_created'
  | 'reasoning_item_created'
  | 'compaction_item_created'
  | 'tool_approval_requested';

/** What the SDK's runs stream. */
export type RunStreamEvent =
  | { readonly type: 'raw_model_stream_event'; readonly data: { readonly type: string } }
  | {
      readonly type: 'run_item_stream_event';
      readonly name: RunItemEventName;
      readonly item: RunItem;
    }
  | { readonly type: 'agent_updated_stream_event'; readonly agent: NamedAgent };

/** What nobody streams, though a viewer has to know it: that a run waits, and what it was told. */
export type ApprovalEvent =
  | { readonly type: 'run_interrupted'; readonly interruptions: readonly RunItem[] }
  | ({ readonly type: 'approval_answered'; readonly approvalId: string } & Decision)
  /** Nobody decided in time. */
  | { readonly type: 'approval_expired'; readonly approvalId: string };

/** A call that somebody has to allow. */
export type ApprovalRequest = {
  /** The id of the approval, and of the question that asks for it. */
  approvalId: string;
  toolCallId: string;
  toolName: string;
  /** Of a tool that has one: two namespaces may have a tool of the same name. */
  namespace?: string;
  input: unknown;
  /** Who wants to make the call. */
  agent?: string;
};

/** What a question shows, and who may answer it. */
export type QuestionTerms = {
  /** Default: `Allow <tool>?` */
  text?: string;
  /** Default: whoever may send messages in the session. */
  answerBy?: { role?: 'collaborator' | 'owner'; userId?: string };
  /** In milliseconds since 1970. */
  expiresAt?: number;
};

export type OpenAIAgentsDataTypes = {
  /** Which agent speaks from here on, and who handed over to it. */
  agent: { name: string; from?: string };
  question: {
    questionId: string;
    text: string;
    options: string[];
    toolCallId: string;
    status: 'open' | 'answered' | 'expired' | 'withdrawn';
    answer?: unknown;
    answerBy?: QuestionTerms['answerBy'];
    expiresAt?: number;
  };
};

/** A message from an Agents SDK run; name your tools to have their parts typed. */
export type OpenAIAgentsUIMessage<Tools extends UITools = UITools> = UIMessage<
  MessageMetadata,
  OpenAIAgentsDataTypes,
  Tools
>;

export type OpenAIAgentsOptions = {
  /** The id of the message to write. */
  messageId?: string;
  /** The name of the agent that begins, which events tell late. `toChunks` finds it in the run. */
  agent?: string;
  /** Thoughts become reasoning parts. Default true. */
  sendReasoning?: boolean;
  /**
   * A call that waits is also an approval request on its tool part, which a stock client answers;
   * one before AI SDK 6 dies of it. Default false: it is a question. The gateway sends each client
   * what it can take.
   */
  approvals?: boolean;
  /** The message that this run goes on with, as after an approval: its tool calls are known. */
  message?: UIMessage;
  /** What a question says and who may answer it. */
  question?: (request: ApprovalRequest) => QuestionTerms;
  /**
   * Whether what a tool gave is an error. The SDK says no word of it: it hands the model a text.
   * Default: the texts it writes by itself.
   */
  isToolError?: (output: unknown, call: { toolName: string }) => boolean;
  /** What a person is shown of an error. Default: its own message, without stack and paths. */
  errorText?: (error: unknown) => string;
};

/** What a call ends with that is told again, with its answer, when the run goes on. */
export const WAITS = 'It waits until the run goes on.';

export function isLoose(value: unknown): value is Loose {
  return typeof value === 'object' && value !== null;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** An agent, or its name. */
export function nameOf(agent: unknown): string | undefined {
  return isLoose(agent) ? textOf(agent.name) : textOf(agent);
}
