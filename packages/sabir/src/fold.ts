/**
 * Chunks → `UIMessage`: the only reducer there is.
 *
 * Gives what AI SDK 7's own client makes of the same chunks, with two differences. What would
 * kill a client (a delta without its start, an unknown tool call) is ignored, so that nothing
 * here throws. And a field that has no value is absent, where the client leaves `undefined`.
 *
 * Owns the parts and which texts are open; tool calls are the tool fold's. Every message given
 * out stays as it was: a part is copied the first time it changes after somebody looked, and
 * parts that did not change are the same objects from one look to the next. A delta costs the
 * same however long the message is.
 */
import type { Chunk, DataChunk, ProviderMetadata } from './chunks.ts';
import { createToolFold, type ToolFold } from './fold-tools.ts';
import type { UIMessage } from './message.ts';
import { copy, type Part } from './message-part.ts';

export type Fold = {
  push(chunk: Chunk): void;
  /**
   * The message so far; the same object until a push changes it, and never changed itself. The
   * one exception is the `input` of a tool part whose input still streams: it is live, later
   * pushes write into it.
   */
  readonly message: UIMessage;
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

// Neither an array nor a date.
const isMergeable = (value: unknown): value is object =>
  Object.prototype.toString.call(value) === '[object Object]';

function merge(base: object, overrides: object): object {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(overrides)) {
    if (value === undefined || /^(__proto__|constructor|prototype)$/.test(key)) continue;
    merged[key] =
      isMergeable(merged[key]) && isMergeable(value) ? merge(merged[key], value) : value;
  }
  return merged;
}

/** By what data of the same type and id is found again. What has no id never is. */
const dataKey = ({ type, id }: Part | DataChunk) => (id == null ? {} : `${type}\0${id}`);

/**
 * A fold that is fed chunk by chunk. An assistant's `message` given to it is continued; one of
 * another role is not, as in the clients. Neither is written into.
 */
export function createFold(message?: UIMessage): Fold {
  let shown: UIMessage =
    message?.role === 'assistant' ? message : { id: '', role: 'assistant', parts: [] };
  // What the next message will be; of `head` everything but its parts.
  const head = { ...shown };
  const parts = [...shown.parts] as Part[];
  let isChanged = false;

  let tools: ToolFold;
  let texts: Map<string, number>;
  let reasonings: Map<string, number>;
  let data: Map<unknown, number>;
  let hasFailed = false;

  /** Puts a part behind the others or in the place of one; gives its place. */
  function put(part: Part, at = parts.length): number {
    parts[at] = part;
    isChanged = true;
    return at;
  }

  /** The part of a place, if there is one, to be written into. */
  function own(at = -1): Part | undefined {
    // A part that anybody has seen is in the message shown last, in the same place.
    if (parts[at] && parts[at] === shown.parts[at]) put({ ...parts[at] }, at);
    return parts[at];
  }

  /** Knows again what the parts tell, and nothing else. */
  function begin(): void {
    tools = createToolFold(parts, put, own);
    texts = new Map();
    reasonings = new Map();
    // From the back, so that of two with the same id the first is found.
    data = new Map(parts.map((part, at) => [dataKey(part), at] as const).reverse());
  }
  begin();

  function startText(open: Map<string, number>, chunk: TextChunk, kind: Part): void {
    const part = { ...kind, text: '', state: 'streaming' };
    open.set(chunk.id, put(copy(part, chunk, ['providerMetadata'])));
  }

  function writeText(open: Map<string, number>, chunk: TextChunk, isEnd?: boolean): void {
    const part = own(open.get(chunk.id));
    if (!part) return;
    if (chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata;
    if (isEnd) {
      part.state = 'done';
      copy(part, chunk, ['citations']);
      open.delete(chunk.id);
    } else if (typeof chunk.delta === 'string') part.text += chunk.delta;
  }

  function addMetadata(added: unknown): void {
    if (added == null) return;
    const { metadata } = head;
    if (metadata == null) head.metadata = added;
    else if (typeof metadata === 'object') head.metadata = merge(metadata, Object(added));
  }

  function addData(chunk: DataChunk): void {
    if (chunk.transient) return;
    const key = dataKey(chunk);
    const part = own(data.get(key));
    if (part) part.data = chunk.data;
    else data.set(key, put({ ...chunk }));
  }

  return {
    push(chunk) {
      const { type } = chunk;
      // Clients look at nothing behind an `error`.
      if (hasFailed || typeof type !== 'string') return;
      if (type === 'text-delta') writeText(texts, chunk);
      else if (type === 'reasoning-delta') writeText(reasonings, chunk);
      else if (type.startsWith('tool-') || type === 'start-step') tools.push(chunk);
      else if (type === 'text-start') startText(texts, chunk, { type: 'text' });
      else if (type === 'text-end') writeText(texts, chunk, true);
      else if (type === 'reasoning-start') {
        startText(reasonings, chunk, { type: 'reasoning', id: chunk.id });
      } else if (type === 'reasoning-end') writeText(reasonings, chunk, true);
      else if (type === 'start' || type === 'finish' || type === 'message-metadata') {
        if (type === 'start') head.id = chunk.messageId ?? head.id;
        addMetadata(chunk.messageMetadata);
      } else if (type === 'reset-step') {
        parts.length = parts.findLastIndex((part) => part.type === 'step-start') + 1;
        begin();
      } else if (type === 'error') hasFailed = true;
      else if (WHOLE.has(type)) put(copy({ type }, chunk, WHOLE.get(type)));
      else if (type.startsWith('data-')) addData(chunk as DataChunk);
    },
    get message() {
      tools.readInputs();
      if (
        isChanged ||
        parts.length < shown.parts.length ||
        head.id !== shown.id ||
        head.metadata !== shown.metadata
      ) {
        shown = { ...head, parts: parts.slice() as UIMessage['parts'] };
        isChanged = false;
      }
      return shown;
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
