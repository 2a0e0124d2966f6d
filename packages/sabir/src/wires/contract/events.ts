/**
 * The events of the stable contract: what a server says to a client that knows nothing of the AI
 * SDK. docs/PROTOCOL.md, section 4, tells what they mean; this is their only spelling in code.
 */

import type { JsonValue, ProviderMetadata } from '../../core/chunks.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { Usage } from '../../core/outcome.ts';

/** An event as it comes off the wire: of any type, with anything in it. */
export type StreamEvent = { type: string; data: unknown };

/** What is known of a run before it begins. */
export type ContractMeta = {
  requestId?: string;
  runId?: string;
  sessionId?: string;
  conversationId?: string;
  model?: string;
  endpoint?: string;
  createdAt?: string;
};

/** What the agent says it is doing, for an overlay. */
export type ContractStatus = { state: string; message?: string };

type InMessage = { messageId: string };
type WithProviderMetadata = { providerMetadata?: ProviderMetadata };
type OfCall = InMessage & { toolCallId: string };
type ToolFlags = { dynamic?: boolean; providerExecuted?: boolean };
type OfTool = ToolFlags & { toolMetadata?: Record<string, JsonValue> };
type AboutTool = OfTool & { callProviderMetadata?: ProviderMetadata };
type AboutResult = OfTool & { resultProviderMetadata?: ProviderMetadata };
type BlockStart = InMessage & WithProviderMetadata & { partId: string };
type BlockDelta = InMessage & WithProviderMetadata & { delta: string; partId?: string };
type BlockEnd = InMessage & WithProviderMetadata & { partId?: string };

type ToolDelta = OfCall &
  AboutTool & {
    delta: string;
    state: 'input-streaming';
    toolName?: string;
    title?: string;
    inputEncoding?: 'json' | 'text';
    /** The input of a call that is known begins anew: what streamed before is void. */
    restart?: boolean;
  };
type ToolCall = OfCall &
  AboutTool & { toolName: string; input?: unknown; state: 'input-available'; title?: string };
type ToolResult = OfCall &
  AboutResult & {
    toolName?: string;
    /** The call is not of this run but of the message that it goes on with. */
    continued?: boolean;
  } & (
    | { state: 'output-available'; output?: unknown; preliminary?: boolean }
    | {
        state: 'output-error';
        errorText: string;
        /** The call itself was refused: `input` is what the model had written. */
        inputError?: boolean;
        input?: unknown;
        title?: string;
      }
    | { state: 'output-denied' }
  );
type ToolApproval = InMessage & { continued?: boolean } & (
    | {
        state: 'approval-requested';
        toolCallId: string;
        /** What the part is to have: the question. */
        approval: {
          id: string;
          requestReason?: string;
          descriptor?: unknown;
          inputSchemaInput?: unknown;
          signature?: string;
          isAutomatic?: boolean;
        };
      }
    | {
        state: 'approval-responded';
        toolCallId?: string;
        /** Added to the question of the same id. */
        approval: { id: string; approved: boolean; reason?: string };
        providerExecuted?: boolean;
        callProviderMetadata?: ProviderMetadata;
      }
  );

/** What each event carries. */
export interface ContractEventMap {
  meta: ContractMeta;
  'message.start': InMessage & { role: 'assistant'; createdAt?: string; metadata?: unknown };
  'message.delta': BlockDelta;
  'message.end': InMessage & { metadata?: unknown };
  'text.start': BlockStart;
  'text.end': BlockEnd & { citations?: unknown[] };
  'reasoning.start': BlockStart;
  'reasoning.delta': BlockDelta;
  'reasoning.end': BlockEnd;
  'tool.call': ToolCall;
  'tool.delta': ToolDelta;
  'tool.result': ToolResult;
  'tool.approval': ToolApproval;
  source: InMessage &
    WithProviderMetadata & { sourceId: string; url: string; title?: string; toolCallId?: string };
  step: InMessage & { state: 'start' | 'finish' | 'reset' };
  question: InMessage & { questionId: string; [key: string]: unknown };
  data: InMessage & { name: string; data: unknown; id?: string; transient?: boolean };
  metadata: InMessage & { metadata: unknown };
  part: InMessage & { part: { type: string; [key: string]: unknown } };
  status: ContractStatus;
  error: { message: string; code?: string; retryable?: boolean; terminal?: boolean };
  done: { runId?: string; finishReason?: string; usage?: Usage };
}

export type ContractEventType = keyof ContractEventMap;

/** One event by its type: `ContractEventOf<'tool.call'>`. */
export type ContractEventOf<Type extends ContractEventType> = {
  [T in Type]: { type: T; data: ContractEventMap[T] };
}[Type];

/** Every event of the contract; `type` tells which. */
export type ContractEvent = ContractEventOf<ContractEventType>;

type Check = (value: unknown, data: Loose) => boolean;

const string: Check = (value) => typeof value === 'string';
const boolean: Check = (value) => typeof value === 'boolean';
const present: Check = (value) => value !== undefined;
const oneOf =
  (...values: string[]): Check =>
  (value) =>
    values.includes(value as string);
const may =
  (is: Check): Check =>
  (value, data) =>
    value === undefined || is(value, data);
/** Needed in one state of the event, optional in the others. */
const when =
  (state: string, is: Check): Check =>
  (value, data) =>
    (value === undefined && data.state !== state) || is(value, data);
const nested: Check = (value) => isObject(value) && Object.values(value).every(isObject);

const isApproval: Check = (value, { state }) =>
  isObject(value) &&
  string(value.id, value) &&
  (boolean(value.approved, value) || state !== 'approval-responded');

const message = { messageId: string };
const provider = { providerMetadata: may(nested) };
const block = { ...message, ...provider, partId: may(string) };
const blockStart = { ...block, partId: string };
const blockDelta = { ...block, delta: string };
const callMetadata = { callProviderMetadata: may(nested) };
const call = {
  ...message,
  toolCallId: string,
  dynamic: may(boolean),
  providerExecuted: may(boolean),
  title: may(string),
  toolMetadata: may(isObject),
};

const CHECKS: Record<ContractEventType, Record<string, Check>> = {
  meta: {
    requestId: may(string),
    runId: may(string),
    sessionId: may(string),
    conversationId: may(string),
    model: may(string),
    endpoint: may(string),
    createdAt: may(string),
  },
  'message.start': { ...message, role: oneOf('assistant'), createdAt: may(string) },
  'message.delta': blockDelta,
  'message.end': message,
  'text.start': blockStart,
  'text.end': { ...block, citations: may(Array.isArray) },
  'reasoning.start': blockStart,
  'reasoning.delta': blockDelta,
  'reasoning.end': block,
  'tool.call': { ...call, ...callMetadata, toolName: string, state: oneOf('input-available') },
  'tool.delta': {
    ...call,
    ...callMetadata,
    delta: string,
    state: oneOf('input-streaming'),
    toolName: may(string),
    inputEncoding: may(oneOf('json', 'text')),
    restart: may(boolean),
  },
  'tool.result': {
    ...call,
    resultProviderMetadata: may(nested),
    state: oneOf('output-available', 'output-error', 'output-denied'),
    toolName: may(string),
    errorText: when('output-error', string),
    preliminary: may(boolean),
    inputError: may(boolean),
    continued: may(boolean),
  },
  'tool.approval': {
    ...message,
    ...callMetadata,
    state: oneOf('approval-requested', 'approval-responded'),
    toolCallId: when('approval-requested', string),
    approval: isApproval,
    providerExecuted: may(boolean),
    continued: may(boolean),
  },
  source: {
    ...message,
    ...provider,
    sourceId: string,
    url: string,
    title: may(string),
    toolCallId: may(string),
  },
  step: { ...message, state: oneOf('start', 'finish', 'reset') },
  question: { ...message, questionId: string },
  data: { ...message, name: string, data: present, id: may(string), transient: may(boolean) },
  metadata: { ...message, metadata: present },
  part: { ...message, part: (value) => isObject(value) && string(value.type, value) },
  status: { state: string, message: may(string) },
  error: {
    message: string,
    code: may(string),
    retryable: may(boolean),
    terminal: may(boolean),
  },
  done: { runId: may(string), finishReason: may(string), usage: may(isObject) },
};
const EVENTS = new Map(
  Object.entries(CHECKS).map(([type, checks]) => [type, Object.entries(checks)]),
);

/**
 * Whether a value is an event of the contract. Fields it does not know are allowed, as every
 * reader has to allow them; an event type it does not know is not an event of the contract.
 */
export function isContractEvent(value: unknown): value is ContractEvent {
  if (!isObject(value) || !isObject(value.data)) return false;
  const { data } = value;
  const checks = EVENTS.get(value.type as string);
  return checks?.every(([key, is]) => is(data[key], data)) ?? false;
}

// A line break would let an id forge lines of its own; a NUL makes readers drop it.
const UNSAFE_ID = /[\r\n\0]/;

/**
 * One event as one frame. An id that no frame can carry is left out.
 *
 * ```ts
 * toContractSse({ type: 'message.end', data: { messageId: 'm1' } }, 't1:9');
 * // event: message.end
 * // id: t1:9
 * // data: {"messageId":"m1"}
 * ```
 */
export function toContractSse({ type, data }: ContractEvent, id?: string): string {
  const frame = `data: ${JSON.stringify(data)}\n\n`;
  if (id === undefined || UNSAFE_ID.test(id)) return `event: ${type}\n${frame}`;
  return `event: ${type}\nid: ${id}\n${frame}`;
}
