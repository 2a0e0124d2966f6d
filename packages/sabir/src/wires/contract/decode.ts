import { shapeOf, targetOf } from '../../core/chunk-shapes.ts';
import type { Chunk } from '../../core/chunks.ts';
import { TURN_LOST } from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import type { StreamEvent } from './events.ts';

export type DecodeContractOptions = {
  /** Names the message where the server does not. */
  generateMessageId?: () => string;
};

export type ContractDecoder = {
  (event: StreamEvent): Chunk[];
  /** Nothing more will come: closes what is open. Gives nothing where the run has ended. */
  end(): Chunk[];
};

type Data = Record<string, unknown>;
type Kind = 'text' | 'reasoning';
type Call = { dynamic: boolean; step: number; phase: number; approvalId?: unknown };

// The phases of a call, in order: up to CALLED it lacks its answer, behind ASKED it has ended.
const STREAMS = 0;
const CALLED = 1;
const ASKED = 2;
const REFUSED = 3;
const ANSWERED = 4;

/** Chunks that are parts by themselves and have no event of their own. */
const WHOLE = /^(file|source-document|reasoning-file|custom|steering-message)$/;
/** What every AI SDK knows; anything else is "other". */
const REASON = /^(stop|length|content-filter|tool-calls|error)$/;

/** What goes into a chunk as it is, if it is of this kind; where none is said, any will do. */
const PASSED: Record<string, string> = {
  providerMetadata: 'object',
  toolMetadata: 'object',
  citations: 'list',
  providerExecuted: 'boolean',
  preliminary: 'boolean',
  isAutomatic: 'boolean',
  inputEncoding: 'string',
  reason: 'string',
  signature: 'string',
  approvalDescriptor: '',
  inputSchemaInput: '',
};

const kindOf = (value: unknown) =>
  Array.isArray(value) ? 'list' : value === null ? 'null' : typeof value;
const isString = (value: unknown): value is string => typeof value === 'string';
const isObject = (value: unknown): value is Data => kindOf(value) === 'object';
const NEWEST = targetOf(7);

/** The chunk without what no client takes in its place; nothing where it cannot do without. */
function fit(chunk: Data): Data[] {
  const fields = shapeOf(chunk.type as string)?.fields;
  for (const [key, { is, required }] of fields ?? []) {
    const value = chunk[key];
    if (value === undefined ? !required : is(value, NEWEST)) continue;
    if (required) return [];
    const { [key]: _, ...rest } = chunk;
    chunk = rest;
  }
  return [chunk];
}

/** Without the key a client would not take the call. */
const inputOf = ({ input = {} }: Data) => ({ input });

/**
 * Events of the contract → chunks, for one run: without loss from our own encoder, and as well as
 * can be from any other server.
 *
 * Owns what is open: texts and reasoning, tool calls, the step. Whatever comes in whatever order,
 * nothing throws and no client dies of what comes out: what fits nowhere is left out.
 */
export function decodeContract(options: DecodeContractOptions = {}): ContractDecoder {
  const texts = new Set<unknown>();
  const blocks = { text: texts, reasoning: new Set<unknown>() };
  const calls = new Map<unknown, Call>();
  const approvals = new Map<unknown, Call>();
  let out: Data[] = [];
  /** What was said before the message began, and cannot be told until it does. */
  let early: Data[] | undefined = [];
  let messageId: unknown;
  /** An error that does not say whether it is the end: what follows says it. */
  let failure: Data | undefined;
  let isEnded = false;
  let isInStep = false;
  let step = 0;
  /** The block of a server that does not name its blocks. It ends where another part begins. */
  let unnamed: string | undefined;
  let minted = 0;

  function start(data: Data, messageMetadata?: unknown): void {
    if (!early) return;
    messageId = isString(data.messageId)
      ? data.messageId
      : (options.generateMessageId ?? createId)();
    const chunk: Data = { type: 'start', messageId };
    if (isObject(messageMetadata)) chunk.messageMetadata = messageMetadata;
    out.push(chunk, ...early);
    early = undefined;
  }

  function write(chunk: Data, data: Data = {}): void {
    start(data);
    out.push(chunk);
  }

  function pass(chunk: Data, said: Data, call?: Call, title?: unknown): void {
    const { callProviderMetadata, resultProviderMetadata = callProviderMetadata } = said;
    const data: Data = { providerMetadata: resultProviderMetadata, ...said };
    for (const key in PASSED) {
      const value = data[key];
      if (PASSED[key] ? kindOf(value) === PASSED[key] : value !== undefined) chunk[key] = value;
    }
    if (isString(title)) chunk.title = title;
    // A call stays what it began as: clients would take it for another.
    if (call?.dynamic) chunk.dynamic = true;
    write(chunk, data);
  }

  /** What is only heard, and is no part of the message. */
  function hint(chunk: Data): void {
    (early ?? out).push(chunk);
  }

  function warn({ message, code, retryable }: Data): void {
    hint({ type: 'data-error', data: { message, code, retryable }, transient: true });
  }

  // Metadata is merged into what was there, which only an object can be.
  function tell(messageMetadata: unknown, data: Data): void {
    if (isObject(messageMetadata)) write({ type: 'message-metadata', messageMetadata }, data);
  }

  function endBlock(kind: Kind, id: unknown, data: Data = {}): void {
    if (blocks[kind].delete(id)) pass({ type: `${kind}-end`, id }, data);
  }

  function endUnnamed(): void {
    endBlock('text', unnamed);
    endBlock('reasoning', unnamed);
  }

  function endBlocks(): void {
    for (const id of texts) endBlock('text', id);
    for (const id of blocks.reasoning) endBlock('reasoning', id);
  }

  function block(kind: Kind, verb: string | undefined, data: Data): void {
    const { delta, partId } = data;
    const isDelta = verb === 'delta';
    let id = isString(partId) ? partId : unnamed;
    if (verb === 'end') endBlock(kind, id, data);
    if (isDelta ? !isString(delta) : verb !== 'start') return;
    if (!blocks[kind].has(id)) {
      endUnnamed();
      if (!isString(partId)) id = unnamed = `unnamed-${++minted}`;
      blocks[kind].add(id);
      pass({ type: `${kind}-start`, id }, isDelta ? { messageId: data.messageId } : data);
    }
    if (isDelta) pass({ type: `${kind}-delta`, id, delta }, data);
  }

  function input(type: string, phase: number, data: Data, more?: Data): void {
    const { toolCallId, toolName } = data;
    let call = calls.get(toolCallId);
    const isHere = call?.step === step;
    // What has ended can only begin again in another step, and what has not cannot go on there.
    if (call && isHere === call.phase > ASKED) return;
    if (!call || !isHere) {
      endUnnamed();
      call = { dynamic: data.dynamic === true, step, phase };
      calls.set(toolCallId, call);
    }
    call.phase = phase;
    const name = isString(toolName) ? toolName : 'unknown';
    pass({ type, toolCallId, toolName: name, ...more }, data, call, data.title);
  }

  function inputDelta(data: Data): void {
    const { toolCallId, delta } = data;
    const isNew = !calls.has(toolCallId);
    if (isNew || data.restart === true) {
      // Without a name there is no part to show: the call brings both, and the whole input.
      if (!isString(data.toolName)) return;
      input('tool-input-start', STREAMS, data);
      if (delta === '') return;
    }
    const call = calls.get(toolCallId);
    if (call?.phase !== STREAMS || call.step !== step || !isString(delta)) return;
    write({ type: 'tool-input-delta', toolCallId, inputTextDelta: delta });
  }

  function result(data: Data): void {
    const { toolCallId, state, errorText: text, output = null } = data;
    const isError =
      state === 'output-error' || (state !== 'output-available' && text !== undefined);
    const errorText = isString(text) ? text : 'The tool gave no result.';
    if (isError && data.inputError === true) {
      input('tool-input-error', REFUSED, data, { ...inputOf(data), errorText });
      return;
    }
    if (!calls.has(toolCallId) && data.continued !== true) {
      input('tool-input-available', CALLED, data, inputOf(data));
    }
    const call = calls.get(toolCallId);
    if (call) {
      // A refused input may be confirmed by an error; any other end stays as it is.
      if (call.phase > ASKED && !(isError && call.phase === REFUSED)) return;
      call.phase = data.preliminary === true ? CALLED : ANSWERED;
    }
    if (isError) pass({ type: 'tool-output-error', toolCallId, errorText }, data, call);
    else if (state === 'output-denied') pass({ type: 'tool-output-denied', toolCallId }, data);
    else pass({ type: 'tool-output-available', toolCallId, output }, data, call);
  }

  function approval(data: Data): void {
    const { toolCallId } = data;
    const {
      id: approvalId,
      approved,
      requestReason,
      descriptor,
      ...about
    } = Object(data.approval) as Data;
    const isAnswer = typeof approved === 'boolean';
    const call = isAnswer ? approvals.get(approvalId) : calls.get(toolCallId);
    if (!isString(approvalId) || !(isAnswer || isString(toolCallId))) return;
    if (call) {
      if (call.phase > ASKED || (isAnswer && call.approvalId !== approvalId)) return;
      call.phase = isAnswer ? CALLED : ASKED;
      call.approvalId = approvalId;
      approvals.set(approvalId, call);
    } else if (data.continued !== true) return;
    if (isAnswer) {
      pass({ type: 'tool-approval-response', approvalId, approved }, { ...data, ...about });
    } else {
      const asked = { reason: requestReason, approvalDescriptor: descriptor };
      pass(
        { type: 'tool-approval-request', approvalId, toolCallId },
        { ...data, ...about, ...asked },
      );
    }
  }

  function changeStep(data: Data): void {
    const { state } = data;
    if (state !== 'start' && state !== 'finish' && state !== 'reset') return;
    endUnnamed();
    if (state === 'start') step++;
    if (state !== 'reset') isInStep = state === 'start';
    else {
      endBlocks();
      for (const [id, call] of calls) {
        if (call.step === step) {
          calls.delete(id);
          call.phase = ANSWERED;
        }
      }
    }
    write({ type: `${state}-step` }, data);
  }

  function close(): void {
    endBlocks();
    for (const [toolCallId, { phase }] of calls) {
      if (phase <= CALLED) result({ toolCallId, state: 'output-error' });
    }
    if (isInStep) write({ type: 'finish-step' });
    isEnded = true;
  }

  function fail({ message }: Data): void {
    close();
    write({ type: 'error', errorText: isString(message) ? message : TURN_LOST.userMessage });
    write({ type: 'finish', finishReason: 'error' });
  }

  function finish({ usage, finishReason = 'stop' }: Data): void {
    close();
    const isKnown = isString(finishReason) && REASON.test(finishReason);
    const chunk: Data = { type: 'finish', finishReason: isKnown ? finishReason : 'other' };
    if (isObject(usage)) chunk.messageMetadata = { usage };
    write(chunk);
  }

  /** A part that is whole when it comes. */
  function add(chunk: Data, data: Data): void {
    endUnnamed();
    write(chunk, data);
  }

  function read(type: string, data: Data): void {
    const { state, metadata, part } = data;
    const [kind, verb] = type.split('.');
    switch (type) {
      case 'message.start':
        // A run's second message joins the first: a stream of chunks is one message.
        if (!early && data.messageId !== messageId) endBlocks();
        if (early) start(data, metadata);
        else tell(metadata, data);
        break;
      case 'message.delta':
        block('text', verb, data);
        break;
      case 'message.end':
        endBlocks();
        tell(metadata, data);
        break;
      case 'metadata':
        tell(metadata, data);
        break;
      case 'tool.approval':
        approval(data);
        break;
      case 'step':
        changeStep(data);
        break;
      case 'done':
        if (failure) fail(failure);
        else finish(data);
        break;
      case 'error':
        if (data.terminal === true) fail(data);
        else if (data.terminal === false) warn(data);
        else failure = data;
        break;
      case 'status':
        if (state === 'aborted') hint({ type: 'abort' });
        else if (isString(state)) {
          const status = { status: state, detail: data.message };
          hint({ type: 'data-agent-status', data: status, transient: true });
        }
        break;
      case 'source': {
        const { sourceId, url } = data;
        if (!isString(sourceId) || !isString(url)) break;
        endUnnamed();
        pass({ type: 'source-url', sourceId, url }, data, undefined, data.title);
        break;
      }
      case 'question': {
        const { messageId: _, ...rest } = data;
        const { questionId: id } = rest;
        if (isString(id)) add({ type: 'data-question', id, data: rest }, data);
        break;
      }
      case 'data': {
        const { name, id, transient, data: value = null } = data;
        if (!isString(name)) break;
        const chunk: Data = { type: `data-${name}`, data: value };
        if (isString(id)) chunk.id = id;
        if (typeof transient === 'boolean') chunk.transient = transient;
        if (transient === true) hint(chunk);
        else add(chunk, data);
        break;
      }
      case 'part':
        if (isObject(part) && isString(part.type) && WHOLE.test(part.type)) add(part, data);
        break;
      default:
        if (kind === 'text' || kind === 'reasoning') block(kind, verb, data);
        if (kind === 'tool' && isString(data.toolCallId)) {
          if (verb === 'delta') inputDelta(data);
          if (verb === 'result') result(data);
          if (verb === 'call') input('tool-input-available', CALLED, data, inputOf(data));
        }
    }
  }

  function decode(event: StreamEvent): Chunk[] {
    const type = event?.type;
    const data = event?.data as Data;
    const isText = type === 'message.delta';
    // Nearly every event is a delta of an open block.
    if ((isText || type === 'reasoning.delta') && !failure) {
      const id = data?.partId ?? unnamed;
      const open = isText ? texts : blocks.reasoning;
      if (open.has(id) && isString(data?.delta) && data.providerMetadata === undefined) {
        const { delta } = data;
        return [{ type: isText ? 'text-delta' : 'reasoning-delta', id: id as string, delta }];
      }
    }
    out = [];
    if (isEnded || !isString(type)) return out as Chunk[];
    if (failure && type !== 'done') {
      warn(failure);
      failure = undefined;
    }
    read(type, isObject(data) ? data : {});
    return out.flatMap(fit) as Chunk[];
  }

  return Object.assign(decode, {
    end(): Chunk[] {
      out = [];
      if (!isEnded) fail(failure ?? {});
      return out.flatMap(fit) as Chunk[];
    },
  });
}
