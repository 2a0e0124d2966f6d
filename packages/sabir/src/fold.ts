/**
 * Chunks → `UIMessage`: the only reducer there is.
 *
 * Gives what AI SDK 7's own client makes of the same chunks, with two differences. What would
 * kill a client (a delta without its start, an unknown tool call) is ignored, so that nothing
 * here throws. And a field that has no value is absent, where the client leaves `undefined`.
 *
 * Owns which texts are open; parts are the draft's, tool calls the tool fold's. A delta costs the
 * same however long the message is.
 */
import { type Chunk, type DataChunk, isDataChunk, type ProviderMetadata } from './chunks.ts';
import { ToolFold } from './fold-tools.ts';
import type { UIMessage } from './message.ts';
import { define, MessageDraft, type Part } from './message-draft.ts';

export type Fold = {
  push(chunk: Chunk): void;
  /**
   * The message so far; the same object until a push changes it, and never changed itself. The
   * one exception is the `input` of a tool part whose input still streams: it is live, later
   * pushes write into it.
   */
  readonly message: UIMessage;
};

/** What AI SDK 7 says on chunks beyond what this library says itself. */
type Extra = {
  approvalDescriptor?: unknown;
  inputSchemaInput?: unknown;
  reason?: string;
  isAutomatic?: boolean;
  signature?: string;
};

type TextChunk = {
  id: string;
  delta?: string;
  citations?: unknown;
  providerMetadata?: ProviderMetadata;
};

/** Chunks that are a part by themselves, and the fields that go into it. */
const WHOLE = new Map([
  ['source-url', ['sourceId', 'url', 'title', 'providerMetadata']],
  ['source-document', ['sourceId', 'mediaType', 'title', 'filename', 'providerMetadata']],
  ['file', ['mediaType', 'url', 'providerMetadata']],
  ['reasoning-file', ['mediaType', 'url', 'providerMetadata']],
  ['custom', ['kind', 'providerMetadata']],
  ['steering-message', ['id', 'parts']],
]);

const isMergeable = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

function merge(base: object, overrides: object): object {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(overrides)) {
    if (key === '__proto__' || key === 'constructor' || key === 'prototype') continue;
    if (value === undefined) continue;
    const old = Object.hasOwn(merged, key) ? merged[key] : undefined;
    merged[key] = isMergeable(old) && isMergeable(value) ? merge(old, value) : value;
  }
  return merged;
}

const dataKey = (type: string, id: unknown) => `${type}\0${id}`;

/**
 * A fold that is fed chunk by chunk. An assistant's `message` given to it is continued; one of
 * another role is not, as in the clients. Neither is written into.
 */
export function createFold(message?: UIMessage): Fold {
  const draft = new MessageDraft(
    message?.role === 'assistant' ? message : { id: '', role: 'assistant', parts: [] },
  );
  const tools = new ToolFold(draft);
  const texts = new Map<string, number>();
  const reasonings = new Map<string, number>();
  const data = new Map<string, number>();
  let hasFailed = false;

  function indexData(): void {
    data.clear();
    draft.parts.forEach(({ type, id }, at) => {
      const key = dataKey(type, id);
      if (type.startsWith('data-') && id != null && !data.has(key)) data.set(key, at);
    });
  }
  indexData();

  function startText(open: Map<string, number>, chunk: TextChunk, part: Part): void {
    const { providerMetadata } = chunk;
    Object.assign(part, { text: '', state: 'streaming' });
    open.set(chunk.id, draft.add(define(part, { providerMetadata })));
  }

  function writeText(open: Map<string, number>, chunk: TextChunk, isEnd: boolean): void {
    const at = open.get(chunk.id);
    if (at === undefined) return;
    const part = draft.own(at);
    if (isEnd) {
      part.state = 'done';
      if (chunk.citations != null) part.citations = chunk.citations;
      open.delete(chunk.id);
    } else if (typeof chunk.delta === 'string') part.text = (part.text as string) + chunk.delta;
    if (chunk.providerMetadata != null) part.providerMetadata = chunk.providerMetadata;
  }

  function addMetadata(added: unknown): void {
    const { metadata } = draft;
    if (added == null) return;
    if (metadata == null) draft.metadata = added;
    else if (typeof metadata === 'object') draft.metadata = merge(metadata, Object(added));
    draft.isChanged = true;
  }

  function addWhole(chunk: Chunk): void {
    const fields = WHOLE.get(chunk.type);
    if (fields) {
      const part: Part = { type: chunk.type };
      for (const field of fields) define(part, { [field]: (chunk as Part)[field] });
      draft.add(part);
    } else if (typeof chunk.type === 'string' && isDataChunk(chunk)) addData(chunk);
  }

  function addData(chunk: DataChunk): void {
    if (chunk.transient) return;
    const key = dataKey(chunk.type, chunk.id);
    const at = chunk.id == null ? undefined : data.get(key);
    if (at !== undefined) draft.own(at).data = chunk.data;
    else {
      const added = draft.add({ ...chunk });
      if (chunk.id != null) data.set(key, added);
    }
  }

  function resetStep(): void {
    draft.truncate(draft.parts.findLastIndex((part) => part.type === 'step-start') + 1);
    texts.clear();
    reasonings.clear();
    tools.reset();
    indexData();
  }

  function push(chunk: Chunk & Extra): void {
    switch (chunk.type) {
      case 'text-delta':
      case 'text-end':
        writeText(texts, chunk, chunk.type === 'text-end');
        break;
      case 'reasoning-delta':
      case 'reasoning-end':
        writeText(reasonings, chunk, chunk.type === 'reasoning-end');
        break;
      case 'text-start':
        startText(texts, chunk, { type: 'text' });
        break;
      case 'reasoning-start':
        startText(reasonings, chunk, { type: 'reasoning', id: chunk.id });
        break;
      case 'tool-input-delta':
        tools.addInput(chunk.toolCallId, chunk.inputTextDelta);
        break;
      case 'tool-input-start':
        tools.startInput(chunk);
        break;
      case 'tool-input-available':
        tools.setInput(chunk);
        break;
      case 'tool-input-error':
        tools.failInput(chunk);
        break;
      case 'tool-output-available':
        tools.answer(chunk, 'output-available');
        break;
      case 'tool-output-error':
        tools.answer(chunk, 'output-error');
        break;
      case 'tool-output-denied': {
        const part = tools.own(chunk.toolCallId);
        if (part) part.state = 'output-denied';
        break;
      }
      case 'tool-approval-request': {
        const { approvalId, approvalDescriptor, reason, isAutomatic, signature } = chunk;
        const approval = {
          descriptor: approvalDescriptor ?? undefined,
          inputSchemaInput: chunk.inputSchemaInput,
          requestReason: reason ?? undefined,
          isAutomatic: isAutomatic || undefined,
          signature: signature ?? undefined,
        };
        const part = tools.own(chunk.toolCallId);
        if (!part) break;
        part.state = 'approval-requested';
        part.approval = define({ id: approvalId }, approval);
        break;
      }
      case 'tool-approval-response': {
        const { approvalId, approved, reason, providerExecuted, providerMetadata } = chunk;
        const part = tools.ownByApproval(approvalId);
        if (!part) break;
        part.state = 'approval-responded';
        const approval = { ...(part.approval as object), approved };
        part.approval = define(approval, { reason: reason ?? undefined });
        define(part, {
          providerExecuted: providerExecuted ?? undefined,
          callProviderMetadata: providerMetadata ?? undefined,
        });
        break;
      }
      case 'start':
        if (chunk.messageId != null && chunk.messageId !== draft.id) {
          draft.id = chunk.messageId;
          draft.isChanged = true;
        }
        addMetadata(chunk.messageMetadata);
        break;
      case 'finish':
      case 'message-metadata':
        addMetadata(chunk.messageMetadata);
        break;
      case 'start-step':
        tools.startStep();
        draft.add({ type: 'step-start' });
        break;
      case 'reset-step':
        resetStep();
        break;
      case 'error':
        hasFailed = true;
        break;
      default:
        addWhole(chunk);
    }
  }

  return {
    push(chunk) {
      // Clients look at nothing behind an `error`.
      if (!hasFailed) push(chunk);
    },
    get message() {
      tools.readInputs();
      return draft.show();
    },
  };
}

/**
 * The message that a turn's chunks make. Where no `start` names its id, that is empty.
 *
 * ```ts
 * const message = foldChunks(chunks);
 * const longer = foldChunks(moreChunks, message); // goes on where `message` stopped
 * ```
 */
export function foldChunks(chunks: Iterable<Chunk>, message?: UIMessage): UIMessage {
  const fold = createFold(message);
  for (const chunk of chunks) fold.push(chunk);
  return fold.message;
}
