import type { Chunk, TextDeltaChunk } from '../../core/chunks.ts';
import * as errors from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import { copy, mergeMetadata } from '../../core/merge-metadata.ts';
import type { ContractEvent, ContractEventType, ContractMeta } from './events.ts';

export type EncodeContractOptions = {
  /** What is known of the run. */
  meta?: ContractMeta;
  /** When the message began, as an ISO date. */
  createdAt?: string;
  /** Names the message where its `start` does not. */
  generateMessageId?: () => string;
};

export type ContractEncoder = {
  (chunk: Chunk): ContractEvent[];
  /** The source is gone for good: says so, unless the run has ended. */
  end(): ContractEvent[];
  /** Another one in the same state: from here on each goes its own way. */
  fork(): ContractEncoder;
};

type EncoderState = {
  toolNames: Map<string, string>;
  /** The calls that were asked for, by the ids of the questions. */
  approvals: Map<unknown, string>;
  isBegun: boolean;
  isEnded: boolean;
  messageId: string | undefined;
  metadata: Loose;
  /** The start of a block that was not told: its first delta tells as much. */
  unsaid: Loose | undefined;
  /** The call that was answered last in this step: a source is likely to come from it. */
  answeredId: string | undefined;
};

const BEGINNING: EncoderState = {
  toolNames: new Map(),
  approvals: new Map(),
  isBegun: false,
  isEnded: false,
  messageId: undefined,
  metadata: {},
  unsaid: undefined,
  answeredId: undefined,
};

type ToolChunk = Loose & { type: string; toolCallId: string };

/** What goes by a call's id. */
const TOOL = /^tool-(input|output|approval-request)/;

/** What only an event says, never a chunk. */
const OF_EVENTS = ['delta', 'state', 'messageId', 'continued', 'restart', 'inputError'];

/** What the contract calls an error of which nobody said more. */
const SERVER_ERROR = 'server_error';

const RETRYABLE = new Map<string, boolean>();
for (const kind of Object.values(errors)) {
  if (typeof kind === 'object') RETRYABLE.set(kind.code, kind.retryable);
}

const deltaOf = ({ type }: Loose) => (type === 'text-start' ? 'text-delta' : 'reasoning-delta');

const hasOnly = (value: Loose, keys: string[]) =>
  Object.keys(value).every((key) => value[key] === undefined || keys.includes(key));

/** A status that comes back as it was; `aborted` is what an `abort` is called. */
function isStatus({ type, data, transient, id }: Loose): boolean {
  if (type !== 'data-agent-status' || transient !== true || id !== undefined) return false;
  if (!isObject(data) || !hasOnly(data, ['status', 'detail'])) return false;
  const { status, detail } = data;
  if (typeof status !== 'string' || status === 'aborted') return false;
  return detail === undefined || typeof detail === 'string';
}

/** A question that comes back as it was: with its own id, and without a field that we take or drop. */
function isQuestion({ type, data, transient, id }: Loose): boolean {
  if (type !== 'data-question' || transient !== undefined || typeof id !== 'string') return false;
  if (!isObject(data) || data.questionId !== id || Object.hasOwn(data, 'messageId')) return false;
  return !Object.values(data).includes(null);
}

/**
 * Chunks → events of the contract, for one run. All that the chunks say is said; a client that
 * knows only the contract's first version gets whatever that has words for.
 *
 * Owns what events repeat and chunks do not: the message's id, the names of tools, the metadata.
 * Deterministic given its ids: another encoder that was fed the same chunks goes on where the first
 * one stopped. Never throws; gives nothing after the end.
 */
export function encodeContract(options: EncodeContractOptions = {}): ContractEncoder {
  return createEncoder(options, BEGINNING);
}

function createEncoder(options: EncodeContractOptions, from: EncoderState): ContractEncoder {
  const { meta = {}, createdAt } = options;
  const toolNames = new Map(from.toolNames);
  const approvals = new Map(from.approvals);
  let { isBegun, isEnded, messageId, metadata, unsaid, answeredId } = from;
  let events: ContractEvent[] = [];

  function say(type: ContractEventType, fields: Loose): void {
    if (!isBegun) {
      isBegun = true;
      say('meta', meta);
    }
    events.push({ type, data: copy({}, fields) } as ContractEvent);
  }

  function start(id?: unknown, added?: unknown): void {
    messageId = typeof id === 'string' ? id : (options.generateMessageId ?? createId)();
    say('message.start', { messageId, role: 'assistant', createdAt, metadata: added });
  }

  function block(type: string, { type: _, id: partId, messageId: __, ...more }: Loose): void {
    say(type as ContractEventType, { messageId, partId, ...more });
  }

  function sayUnsaid(): void {
    if (unsaid) block(unsaid.type === 'text-start' ? 'text.start' : 'reasoning.start', unsaid);
    unsaid = undefined;
  }

  /** Clients put only the outermost fields together: gives those that are new, whole. */
  function note(added: unknown): unknown {
    if (!isObject(added)) return undefined;
    metadata = mergeMetadata(metadata, added) as Loose;
    const names = Object.keys(added).filter((name) => Object.hasOwn(metadata, name));
    return Object.fromEntries(names.map((name) => [name, metadata[name]]));
  }

  function tool({ type, toolCallId, ...more }: ToolChunk): void {
    const isKnown = toolNames.has(toolCallId);
    if (typeof more.toolName === 'string') toolNames.set(toolCallId, more.toolName);
    const call = { toolCallId, toolName: toolNames.get(toolCallId) };
    // Nobody made the call in this run: it must be one of the message that goes on.
    const continued = isKnown ? undefined : true;
    const { input, inputTextDelta, output, errorText, providerMetadata, ...others } = more;
    // The names that fields have in a part: clients copy what they are told.
    const isAnswer = /output|error/.test(type);
    const metadata = {
      [isAnswer ? 'resultProviderMetadata' : 'callProviderMetadata']: providerMetadata,
    };
    const rest = { ...others, ...metadata };
    // A chunk that has such a field of its own says nothing with it that the event would.
    for (const name of OF_EVENTS) delete (rest as Loose)[name];
    if (type === 'tool-input-start') {
      const restart = isKnown ? true : undefined;
      const state = 'input-streaming';
      say('tool.delta', { ...call, delta: '', state, messageId, ...rest, restart });
    } else if (type === 'tool-input-delta') {
      const state = 'input-streaming';
      say('tool.delta', { ...call, delta: inputTextDelta, state, messageId });
    } else if (type === 'tool-input-available') {
      say('tool.call', { ...call, input, state: 'input-available', messageId, ...rest });
    } else if (type === 'tool-input-error') {
      const state = 'output-error';
      say('tool.result', {
        ...call,
        input,
        errorText,
        state,
        messageId,
        ...rest,
        inputError: true,
      });
    } else if (type === 'tool-output-denied') {
      say('tool.result', { ...call, state: 'output-denied', messageId, continued });
    } else if (type === 'tool-approval-request') {
      const { approvalId: id, reason: requestReason, approvalDescriptor: descriptor } = others;
      if (isKnown) approvals.set(id, toolCallId);
      const { inputSchemaInput, isAutomatic, signature } = others;
      const about = { id, requestReason, descriptor, inputSchemaInput, isAutomatic, signature };
      const approval = copy({}, about);
      say('tool.approval', {
        toolCallId,
        state: 'approval-requested',
        messageId,
        approval,
        continued,
      });
    } else {
      answeredId = toolCallId;
      const state = type === 'tool-output-error' ? 'output-error' : 'output-available';
      say('tool.result', { ...call, output, errorText, state, messageId, ...rest, continued });
    }
  }

  function data(chunk: Loose & { type: string }): void {
    const { type, id, data, transient } = chunk;
    if (isStatus(chunk)) {
      const { status: state, detail: message } = data as Loose;
      say('status', { state, message });
    } else if (isQuestion(chunk)) say('question', { messageId, ...(data as Loose) });
    else say('data', { messageId, name: type.slice('data-'.length), id, data, transient });
  }

  function fail(message: unknown, code: string): void {
    sayUnsaid();
    const retryable = RETRYABLE.get(code) ?? true;
    say('error', {
      message: typeof message === 'string' ? message : errors.TURN_LOST.userMessage,
      code,
      retryable,
      terminal: true,
    });
    isEnded = true;
  }

  function finish({ finishReason = 'stop', messageMetadata }: Loose): void {
    say('message.end', { messageId, metadata: note(messageMetadata) });
    const usage = isObject(metadata.usage) ? metadata.usage : undefined;
    say('done', { runId: meta.runId, finishReason, usage });
    isEnded = true;
  }

  function write(chunk: Loose & { type: string }): void {
    const { type, ...more } = chunk;
    let added: unknown;
    switch (type) {
      case 'start':
      case 'message-metadata':
        // A start that is not the first brings nothing else.
        added = note(more.messageMetadata);
        if (added) say('metadata', { messageId, metadata: added });
        break;
      case 'text-start':
      case 'reasoning-start':
        unsaid = chunk;
        // No delta could tell what was said with the start.
        if (more.providerMetadata != null) sayUnsaid();
        break;
      case 'text-delta':
        block('message.delta', chunk);
        break;
      case 'text-end':
        block('text.end', chunk);
        break;
      case 'reasoning-delta':
        block('reasoning.delta', chunk);
        break;
      case 'reasoning-end':
        block('reasoning.end', chunk);
        break;
      case 'tool-approval-response': {
        const { approvalId: id, approved, reason, providerExecuted, providerMetadata } = more;
        const toolCallId = approvals.get(id);
        const continued = toolCallId === undefined ? true : undefined;
        const approval = copy({}, { id, approved, reason });
        const rest = { providerExecuted, callProviderMetadata: providerMetadata, continued };
        say('tool.approval', {
          toolCallId,
          state: 'approval-responded',
          messageId,
          approval,
          ...rest,
        });
        break;
      }
      case 'source-url': {
        const { sourceId, url, title, ...rest } = more;
        say('source', { sourceId, url, title, toolCallId: answeredId, messageId, ...rest });
        break;
      }
      case 'start-step':
      case 'reset-step':
        answeredId = undefined;
        say('step', { messageId, state: type === 'start-step' ? 'start' : 'reset' });
        break;
      case 'finish-step':
        say('step', { messageId, state: 'finish' });
        break;
      case 'abort':
        say('status', { state: 'aborted', message: more.reason });
        break;
      case 'error': {
        const { code, outcome } = metadata;
        const fallback = outcome === 'lost' ? errors.TURN_LOST.code : SERVER_ERROR;
        fail(more.errorText, typeof code === 'string' ? code : fallback);
        break;
      }
      case 'finish':
        finish(more);
        break;
      default:
        if (type.startsWith('data-')) data(chunk);
        else if (TOOL.test(type)) tool(chunk as unknown as ToolChunk);
        else say('part', { messageId, part: chunk });
    }
  }

  function encode(given: Chunk): ContractEvent[] {
    const chunk = given as Loose & { type: string };
    const type = chunk?.type;
    if (isEnded || typeof type !== 'string') return [];
    if (unsaid !== undefined && chunk.id === unsaid.id && type === deltaOf(unsaid)) {
      unsaid = undefined;
    }
    if (type === 'text-delta' && messageId !== undefined && unsaid === undefined) {
      // Nearly every chunk is one of these.
      const { id: partId, delta, providerMetadata } = chunk as unknown as TextDeltaChunk;
      if (providerMetadata === undefined) {
        return [{ type: 'message.delta', data: { messageId, delta, partId } }];
      }
    }
    events = [];
    sayUnsaid();
    if (messageId === undefined) {
      const isStart = type === 'start';
      const added = isStart ? note(chunk.messageMetadata) : undefined;
      start(isStart ? chunk.messageId : undefined, added);
      if (isStart) return events;
    }
    write(chunk);
    return events;
  }

  return Object.assign(encode, {
    end(): ContractEvent[] {
      events = [];
      if (!isEnded) fail(errors.TURN_LOST.userMessage, errors.TURN_LOST.code);
      return events;
    },
    fork: () =>
      createEncoder(options, {
        toolNames,
        approvals,
        isBegun,
        isEnded,
        messageId,
        metadata,
        unsaid,
        answeredId,
      }),
  });
}
