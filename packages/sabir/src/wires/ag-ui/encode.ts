import type { Chunk } from '../../core/chunks.ts';
import { RUN_FAILED, TURN_LOST } from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import { mergeMetadata } from '../../core/merge-metadata.ts';
import { createState, type EncoderState, forkState, type OpenCall } from './encoder-state.ts';
import { isSameJson, metadataOf, toJson, toText, usageOf } from './event-fields.ts';
import { AG_UI_VERSION, type AgUiEvent, type AgUiOutcome } from './events.ts';

export type EncodeAgUiOptions = {
  /** The conversation, as the client names it. */
  threadId: string;
  /** The run, as the client names it. */
  runId: string;
  /** Names the message where its `start` does not. */
  generateMessageId?: () => string;
  /**
   * The client has got `RUN_STARTED` already.
   *
   * @default false
   */
  isBegun?: boolean;
  /**
   * The client is older than AG-UI 1.0, as CopilotKit 1.74 is. Such a client refuses the outcome `cancelled`: a run that was stopped
   * then ends without an outcome.
   *
   * @default false
   */
  isBefore1?: boolean;
  /** The results that the client has given, by the ids of their calls: the same result becomes no event. */
  knownResults?: ReadonlyMap<string, string>;
};

export type AgUiEncoder = {
  (chunk: Chunk): AgUiEvent[];
  /** Ends the run with an error, unless it has ended. By default: the source is gone for good. */
  end(why?: { code: string; userMessage: string }): AgUiEvent[];
  /** Ends the run because it waits for its client: for answers, or for the results of tools. Another run continues the message. */
  pause(outcome?: AgUiOutcome): AgUiEvent[];
  /** Opens again what is open, for a run that continues the message of an interrupted one. Changes nothing. */
  reopen(): AgUiEvent[];
  /** Another one in the same state: from here on each goes its own way. */
  fork(): AgUiEncoder;
};

const DENIED = 'The call was denied.';

/**
 * Chunks → AG-UI events, for one run. An answer of several steps is several messages there: the first one has the
 * answer's id, the next ones that id and a number. What AG-UI has no event for is a `CUSTOM` event with the
 * chunk's type as its name and the chunk's other fields as its value.
 *
 * Owns what is open. Deterministic given its ids: another encoder that was fed the same chunks continues where the
 * first one stopped. Never throws; returns nothing after the end. Everything is closed before the run ends.
 *
 * @example
 * const encode = encodeAgUi({ threadId, runId });
 * for await (const chunk of chunks) for (const event of encode(chunk)) send(event);
 * for (const event of encode.end()) send(event);
 */
export function encodeAgUi(options: EncodeAgUiOptions): AgUiEncoder {
  return createEncoder(options, createState(options.isBegun));
}

function createEncoder(options: EncodeAgUiOptions, state: EncoderState): AgUiEncoder {
  const { threadId, runId } = options;
  const { texts, reasonings, calls, begunCalls, answeredCalls } = state;
  let events: AgUiEvent[] = [];

  function begin(): void {
    if (!state.isBegun) events.push(toRunStarted(options));
    state.isBegun = true;
  }

  function say(event: AgUiEvent): void {
    begin();
    events.push(event);
  }

  function nameMessage(): string {
    state.messageId ??= (options.generateMessageId ?? createId)();
    state.messages++;
    return state.messages === 1 ? state.messageId : `${state.messageId}:${state.messages}`;
  }

  function note(added: unknown): void {
    if (isObject(added)) state.metadata = mergeMetadata(state.metadata, added) as Loose;
  }

  function custom({ type, ...value }: Loose & { type: string }): void {
    say({ type: 'CUSTOM', name: type, value });
  }

  function openText(id: string, more: Loose): string {
    closeText(id, {});
    const messageId = nameMessage();
    texts.set(id, messageId);
    state.parent = messageId;
    startText(messageId, more);
    return messageId;
  }

  function startText(messageId: string, more: Loose): void {
    say({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', ...metadataOf(more) });
  }

  function closeText(id: string, more: Loose): void {
    const messageId = texts.get(id);
    if (messageId === undefined) return;
    texts.delete(id);
    say({ type: 'TEXT_MESSAGE_END', messageId, ...metadataOf(more) });
  }

  function openReasoning(id: string, more: Loose): string {
    closeReasoning(id, {});
    const messageId = nameMessage();
    reasonings.set(id, messageId);
    state.parent = undefined;
    startReasoning(messageId, more);
    return messageId;
  }

  function startReasoning(messageId: string, more: Loose): void {
    say({ type: 'REASONING_START', messageId });
    say({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', ...metadataOf(more) });
  }

  function closeReasoning(id: string, more: Loose): void {
    const messageId = reasonings.get(id);
    if (messageId === undefined) return;
    reasonings.delete(id);
    say({ type: 'REASONING_MESSAGE_END', messageId, ...metadataOf(more) });
    say({ type: 'REASONING_END', messageId });
  }

  /** Clients before 1.0 refuse a fragment without text. */
  function delta(kind: 'text' | 'reasoning', { type: _, id, delta: said, ...more }: Loose): void {
    if (typeof id !== 'string' || typeof said !== 'string') return;
    const isText = kind === 'text';
    const open = isText ? texts : reasonings;
    const messageId = open.get(id) ?? (isText ? openText(id, {}) : openReasoning(id, {}));
    const fields = { messageId, delta: said, ...metadataOf(more) };
    if (said === '' && fields.metadata === undefined) return;
    say({ type: isText ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT', ...fields });
  }

  function openCall(toolCallId: string, toolName: unknown, more: Loose): void {
    state.parent ??= nameMessage();
    const call = { toolName: toText(toolName), parentMessageId: state.parent, args: '' };
    calls.set(toolCallId, call);
    begunCalls.add(toolCallId);
    say(toCallStart(toolCallId, call, more));
  }

  function addArgs(toolCallId: string, call: OpenCall, args: string): void {
    if (args === '') return;
    // Not changed in place: a fork may hold the same call.
    calls.set(toolCallId, { ...call, args: call.args + args });
    say({ type: 'TOOL_CALL_ARGS', toolCallId, delta: args });
  }

  function closeCall(toolCallId: string): void {
    if (calls.delete(toolCallId)) say({ type: 'TOOL_CALL_END', toolCallId });
  }

  /** The whole input. Arguments can only be added to: an input that did not stream like this is a `CUSTOM` event. */
  function input(chunk: Loose & { type: string }): void {
    const { type, toolCallId, toolName, input: value, errorText, ...more } = chunk;
    const id = toText(toolCallId);
    if (!begunCalls.has(id)) openCall(id, toolName, more);
    const call = calls.get(id);
    if (!call) {
      custom(chunk);
      return;
    }
    const isRefused = type === 'tool-input-error';
    // What was refused may be the text that the model wrote, and no JSON.
    const args = isRefused && typeof value === 'string' ? value : toJson(value);
    if (args.startsWith(call.args)) addArgs(id, call, args.slice(call.args.length));
    else if (!isRefused && !isSameJson(call.args, args)) custom(chunk);
    closeCall(id);
    if (isRefused) result(chunk, errorText, { isError: true });
  }

  function result(chunk: Loose & { type: string }, content: unknown, more: Loose): void {
    const toolCallId = toText(chunk.toolCallId);
    closeCall(toolCallId);
    // A client would add another message for each.
    if (chunk.preliminary === true || answeredCalls.has(toolCallId)) {
      custom(chunk);
      return;
    }
    answeredCalls.add(toolCallId);
    state.parent = undefined;
    // Also without an event, so that the next messages have the same ids for all clients.
    const messageId = nameMessage();
    const text = typeof content === 'string' ? content : toJson(content);
    if (options.knownResults?.get(toolCallId) === text) return;
    say({
      type: 'TOOL_CALL_RESULT',
      messageId,
      toolCallId,
      content: text,
      role: 'tool',
      ...metadataOf(more),
    });
  }

  function finishStep(): void {
    if (state.isInStep) say({ type: 'STEP_FINISHED', stepName: `step-${state.steps}` });
    state.isInStep = false;
    state.parent = undefined;
  }

  function closeAll(): void {
    for (const id of [...texts.keys()]) closeText(id, {});
    for (const id of [...reasonings.keys()]) closeReasoning(id, {});
    for (const id of [...calls.keys()]) closeCall(id);
    finishStep();
  }

  function fail(message: unknown, code: unknown): void {
    closeAll();
    say({
      type: 'RUN_ERROR',
      message: typeof message === 'string' ? message : RUN_FAILED.userMessage,
      ...(typeof code === 'string' && { code }),
      ...usageOf(state.metadata),
    });
    state.isEnded = true;
  }

  function finish({ finishReason, messageMetadata }: Loose): void {
    note(messageMetadata);
    closeAll();
    const { usage: _, ...rest } = state.metadata;
    const isCancelled = state.isAborted || state.metadata.outcome === 'stopped';
    say({
      type: 'RUN_FINISHED',
      threadId,
      runId,
      ...((!isCancelled || !options.isBefore1) && {
        outcome: { type: isCancelled ? 'cancelled' : 'success' },
      }),
      ...usageOf(state.metadata),
      ...metadataOf({ finishReason, ...rest }),
    });
    state.isEnded = true;
  }

  function write(chunk: Loose & { type: string }): void {
    const { type, id, toolCallId, ...more } = chunk;
    switch (type) {
      case 'start':
        // A start that is not the first names nothing.
        if (typeof more.messageId === 'string') state.messageId ??= more.messageId;
        begin();
        if (more.messageMetadata !== undefined) custom(chunk);
        note(more.messageMetadata);
        break;
      case 'message-metadata':
        note(more.messageMetadata);
        custom(chunk);
        break;
      case 'text-start':
        openText(toText(id), more);
        break;
      case 'text-delta':
        delta('text', chunk);
        break;
      case 'text-end':
        closeText(toText(id), more);
        break;
      case 'reasoning-start':
        openReasoning(toText(id), more);
        break;
      case 'reasoning-delta':
        delta('reasoning', chunk);
        break;
      case 'reasoning-end':
        closeReasoning(toText(id), more);
        break;
      case 'tool-input-start': {
        const { toolName, ...rest } = more;
        if (begunCalls.has(toText(toolCallId))) custom(chunk);
        else openCall(toText(toolCallId), toolName, rest);
        break;
      }
      case 'tool-input-delta': {
        const call = calls.get(toText(toolCallId));
        if (call) addArgs(toText(toolCallId), call, toText(more.inputTextDelta));
        else custom(chunk);
        break;
      }
      case 'tool-input-available':
      case 'tool-input-error':
        input(chunk);
        break;
      case 'tool-output-available': {
        const { output, preliminary: _, ...rest } = more;
        result(chunk, output, rest);
        break;
      }
      case 'tool-output-error': {
        const { errorText, ...rest } = more;
        result(chunk, errorText, { ...rest, isError: true });
        break;
      }
      case 'tool-output-denied':
        result(chunk, DENIED, { isDenied: true });
        break;
      case 'start-step':
        finishStep();
        state.isInStep = true;
        state.steps++;
        say({ type: 'STEP_STARTED', stepName: `step-${state.steps}` });
        break;
      case 'finish-step':
        finishStep();
        break;
      case 'abort':
        state.isAborted = true;
        if (more.reason !== undefined) custom(chunk);
        break;
      case 'error': {
        const { code, outcome } = state.metadata;
        fail(more.errorText, code ?? (outcome === 'lost' ? TURN_LOST.code : undefined));
        break;
      }
      case 'finish':
        finish(more);
        break;
      default:
        custom(chunk);
    }
  }

  function encode(given: Chunk): AgUiEvent[] {
    const chunk = given as Loose & { type: string };
    if (state.isEnded || typeof chunk?.type !== 'string') return [];
    events = [];
    write(chunk);
    return events;
  }

  return Object.assign(encode, {
    end(why: { code: string; userMessage: string } = TURN_LOST): AgUiEvent[] {
      events = [];
      if (!state.isEnded) fail(why.userMessage, why.code);
      return events;
    },
    pause(outcome?: AgUiOutcome): AgUiEvent[] {
      events = [];
      closeAll();
      say({ type: 'RUN_FINISHED', threadId, runId, ...(outcome && { outcome }) });
      state.isEnded = true;
      return events;
    },
    reopen(): AgUiEvent[] {
      events = [];
      if (state.isInStep) say({ type: 'STEP_STARTED', stepName: `step-${state.steps}` });
      for (const messageId of texts.values()) startText(messageId, {});
      for (const messageId of reasonings.values()) startReasoning(messageId, {});
      for (const [toolCallId, call] of calls) say(toCallStart(toolCallId, call, {}));
      return events;
    },
    fork: () => createEncoder(options, forkState(state)),
  });
}

export function toRunStarted({ threadId, runId }: EncodeAgUiOptions): AgUiEvent {
  return { type: 'RUN_STARTED', threadId, runId, protocolVersion: AG_UI_VERSION };
}

function toCallStart(
  toolCallId: string,
  { toolName: toolCallName, parentMessageId }: OpenCall,
  more: Loose,
): AgUiEvent {
  return {
    type: 'TOOL_CALL_START',
    toolCallId,
    toolCallName,
    parentMessageId,
    ...metadataOf(more),
  };
}
