/**
 * Chunks → `UIMessage`: what each chunk means for the message; the writing is `message-writer.ts`.
 *
 * Gives what AI SDK 7's own client makes of the same chunks, with two differences. What would
 * kill a client (a delta without its start, an unknown tool call) is ignored, so that nothing
 * here throws. And a field that has no value is absent, where the client leaves `undefined`.
 */
import type { Chunk, DataChunk } from './chunks.ts';
import { createToolFold } from './fold-tools.ts';
import { copy, mergeMetadata } from './merge-metadata.ts';
import type { UIMessage } from './message.ts';
import { createMessageWriter, type Part } from './message-writer.ts';

export type Fold = {
  push(chunk: Chunk): void;
  /**
   * The message so far; the same object until a push changes it, and never changed itself. The
   * one exception is the `input` of a tool part whose input still streams: it is live, later
   * pushes write into it.
   */
  readonly message: UIMessage;
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

type TextDelta = { id: string; delta: string; providerMetadata?: unknown };

/** By what data of the same type and id is found again. What has no id never is. */
const dataKey = ({ type, id }: Part | DataChunk) =>
  id === undefined || typeof id === 'object' || typeof type !== 'string' ? {} : `${type}\0${id}`;

/**
 * A fold that is fed chunk by chunk. An assistant's `message` given to it is continued; one of
 * another role is not, as in the clients. Neither is written into.
 */
export function createFold(message?: UIMessage): Fold {
  const writer = createMessageWriter('', message?.role === 'assistant' ? message : undefined);
  const { parts, put, own, change } = writer;
  let pushTool: ReturnType<typeof createToolFold>;
  let texts: Map<string, number>;
  let reasonings: Map<string, number>;
  let data: Map<unknown, number>;
  let hasFailed = false;

  /** Knows again what the parts tell, and nothing else. */
  function begin(): void {
    pushTool = createToolFold(writer);
    texts = new Map();
    reasonings = new Map();
    // From the back, so that of two with the same id the first is found.
    data = new Map(parts.map((part, at) => [dataKey(part), at] as const).reverse());
  }
  begin();

  const startText = (part: Part, chunk: object) =>
    put(copy({ ...part, text: '', state: 'streaming' }, chunk, ['providerMetadata']));

  function writeText(open: Map<string, number>, chunk: TextDelta): void {
    const part = own(open.get(chunk.id));
    if (chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata;
    if (typeof chunk.delta === 'string') part.text += chunk.delta;
  }

  function endText(open: Map<string, number>, chunk: { id: string }): void {
    copy(own(open.get(chunk.id)), chunk, ['providerMetadata', 'citations']).state = 'done';
    open.delete(chunk.id);
  }

  function addData(chunk: DataChunk): void {
    if (chunk.transient) return;
    const key = dataKey(chunk);
    const at = data.get(key);
    if (at === undefined) data.set(key, put({ ...chunk }));
    else own(at).data = chunk.data;
  }

  return {
    push(chunk) {
      const { type } = chunk;
      // Clients look at nothing behind an `error`.
      if (hasFailed || typeof type !== 'string') return;
      if (type === 'text-delta') writeText(texts, chunk);
      else if (type === 'reasoning-delta') writeText(reasonings, chunk);
      else if (type.startsWith('tool-') || type === 'start-step') pushTool(chunk);
      else if (type === 'text-start') texts.set(chunk.id, startText({ type: 'text' }, chunk));
      else if (type === 'text-end') endText(texts, chunk);
      else if (type === 'reasoning-start') {
        reasonings.set(chunk.id, startText({ type: 'reasoning', id: chunk.id }, chunk));
      } else if (type === 'reasoning-end') endText(reasonings, chunk);
      else if (type === 'start' || type === 'finish' || type === 'message-metadata') {
        if (type === 'start') change({ id: chunk.messageId ?? writer.message.id });
        if (chunk.messageMetadata != null) {
          change({ metadata: mergeMetadata(writer.message.metadata, chunk.messageMetadata) });
        }
      } else if (type === 'reset-step') {
        parts.length = parts.findLastIndex((part) => part.type === 'step-start') + 1;
        change();
        begin();
      } else if (type === 'error') hasFailed = true;
      else if (WHOLE.has(type)) put(copy({ type }, chunk, WHOLE.get(type)));
      else if (type.startsWith('data-')) addData(chunk as DataChunk);
    },
    get message() {
      return writer.message;
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
