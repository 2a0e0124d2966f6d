import { shapeOf, targetOf } from '../../core/chunk-shapes.ts';
import type { Chunk } from '../../core/chunks.ts';
import { TURN_LOST } from '../../core/errors.ts';
import { toJsonSafe } from '../../core/json.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import { mergeMetadata } from '../../core/merge-metadata.ts';
import type { Usage } from '../../core/outcome.ts';
import type { Channel } from '../../core/translator.ts';
import type { DataState, EventOf, SourceState } from '../../sources/agent-ops/events.ts';
import { isData, isSource } from '../../sources/agent-ops/part-shapes.ts';
import { outcomeOf } from '../../turns/outcome-of.ts';
import type { Say, V2Event } from './events.ts';
import { createHeldTexts } from './held-texts.ts';
import { createQuestionEvents } from './question-events.ts';
import { createToolUpdates } from './tool-updates.ts';

export type V2EncoderOptions = {
  /** The id of the answer's message. */
  turnId: string;
  /** The id of the message that is answered. */
  promptId?: string;
  channel?: Channel;
};

export type V2Encoder = {
  /** The events for one chunk. What is no chunk, and what follows the end, gives none. */
  push(chunk: Chunk): V2Event[];
};

type Status = EventOf<'agentStatus'>['status'];
type End = Pick<EventOf<'message.finalize'>, 'reason' | 'error' | 'code'>;

/** Metadata that V2 has events for. */
const TOLD_METADATA = ['outcome', 'reason', 'code', 'usage'];
/** The data that carries all other metadata. */
const METADATA_NAME = 'message-metadata';
/** Ends that a reader of the answer should know of. V2 has no word for them. */
const CUT_SHORT = ['length', 'content-filter', 'interrupted'];
/** The newest client parses everything that an older one parses. */
const NEWEST = targetOf(7);

/**
 * Chunks → V2 events, for one turn: the inverse of `sources/agent-ops/translate.ts`. A synchronous
 * push machine without clock or random ids, so that the same chunks always give the same events.
 *
 * Owns what V2 says that chunks do not: what the agent is doing, whether the step has anything in it,
 * and how the turn ended, in one event.
 */
export function createV2Encoder({ turnId, promptId, channel }: V2EncoderOptions): V2Encoder {
  const ofTurn = { turnId, ...(promptId !== undefined && { promptId }), ...channel };
  let out: V2Event[] = [];
  let isBegun = false;
  let isEnded = false;
  let isInFirstStep = true;
  let isStepEmpty = true;
  let shownStatus = '';
  let metadata: unknown;

  const say: Say = (type, fields) => {
    if (type.startsWith('message.part.') || type === 'question') isStepEmpty = false;
    out.push({ type, ...ofTurn, ...fields } as unknown as V2Event);
  };
  const questions = createQuestionEvents(say);
  const texts = createHeldTexts(say, (kind) =>
    showStatus(kind === 'text' ? 'streaming' : 'thinking'),
  );
  const calls = createToolUpdates({
    say,
    onCall: (toolName) => showStatus('tool_calling', toolName),
    isUnanswered: questions.isUnanswered,
  });

  function showStatus(status: Status, detail?: string): void {
    const key = JSON.stringify([status, detail]);
    if (key === shownStatus) return;
    shownStatus = key;
    say('agentStatus', { status, ...(detail !== undefined && { detail }) });
  }

  function begin(): void {
    if (isBegun) return;
    isBegun = true;
    say('message.create', {});
    showStatus('thinking');
  }

  function startStep(): void {
    texts.endAll();
    calls.startStep();
    if (isInFirstStep) isInFirstStep = false;
    else nextStep();
  }

  function nextStep(): void {
    if (isStepEmpty) return;
    say('message.part.step', {});
    isStepEmpty = true;
  }

  function resetStep(): void {
    texts.endAll();
    calls.resetStep();
    nextStep();
  }

  function sayData(name: string, { id, data, transient }: Loose): void {
    const part: DataState = {
      name,
      ...(typeof id === 'string' && { id }),
      data: toJsonSafe(data),
    };
    if (!isData(part)) return;
    say('message.part.data', { ...part, ...(transient === true && { transient }) });
  }

  function saySource({ sourceId, url, title, mediaType, filename }: Loose): void {
    const source =
      url === undefined ? { sourceId, mediaType, title, filename } : { sourceId, url, title };
    const entries = Object.entries(source).filter(([, value]) => value !== undefined);
    const said = Object.fromEntries(entries);
    if (isSource(said)) say('message.part.source', said as unknown as SourceState);
  }

  function sayStatus({ data }: Loose): void {
    if (!isObject(data) || typeof data.status !== 'string') return;
    const { status, detail } = data;
    showStatus(status as Status, typeof detail === 'string' ? detail : undefined);
  }

  function readMetadata({ messageMetadata, finishReason }: Loose): void {
    metadata = mergeMetadata(metadata, messageMetadata);
    if (CUT_SHORT.includes(finishReason as string)) {
      metadata = mergeMetadata(metadata, { finishReason });
    }
  }

  /** In the order in which V2 has it: what was open, what it cost, metadata, the end. */
  function end(chunk: Chunk): void {
    texts.endAll();
    calls.endAll();
    const { usage, ...rest } = isObject(metadata) ? metadata : ({} as Loose);
    if (isObject(usage)) say('usage-report', { entries: [toJsonSafe(usage) as Usage] });
    const others = Object.entries(rest).filter(([key]) => !TOLD_METADATA.includes(key));
    if (others.length > 0) {
      sayData(METADATA_NAME, { id: METADATA_NAME, data: Object.fromEntries(others) });
    }
    say('message.finalize', endOf(chunk, metadata));
    say('complete', {});
    isEnded = true;
  }

  function read(type: string, chunk: Loose): void {
    begin();
    const [kind = '', verb = ''] = type.split('-');
    if (type === 'file' || type === 'reasoning-file') {
      say('message.part.file', { url: chunk.url as string, mediaType: chunk.mediaType as string });
    } else if (kind === 'text' || kind === 'reasoning') {
      const delta = verb === 'delta' ? (chunk.delta as string) : '';
      texts.push(kind, verb, chunk.id as string, delta);
    } else if (kind === 'tool') calls.push(type, chunk);
    else if (type === 'data-question') questions.push(chunk as Chunk);
    else if (type === 'data-agent-status') sayStatus(chunk);
    else if (kind === 'data') sayData(type.slice('data-'.length), chunk);
    else if (kind === 'source') saySource(chunk);
    else if (type === 'start-step') startStep();
    else if (type === 'finish-step') texts.endAll();
    else if (type === 'reset-step') resetStep();
    else if (type === 'custom' || type === 'steering-message') {
      const { type: _, id, ...data } = chunk;
      sayData(type, { id, data });
    } else if (type === 'error') end(chunk as Chunk);
    else if (type === 'start' || type === 'message-metadata') readMetadata(chunk);
    else if (type === 'finish') {
      readMetadata(chunk);
      end(chunk as Chunk);
    }
  }

  return {
    push(chunk) {
      if (isEnded || !isChunk(chunk)) return [];
      out = [];
      read(chunk.type, chunk);
      return out;
    },
  };
}

/** How V2 says the end that an `error` or `finish` chunk and the turn's metadata say. */
function endOf(chunk: Chunk, metadata: unknown): End {
  const told: Chunk[] = [{ type: 'message-metadata', messageMetadata: metadata ?? {} }, chunk];
  const outcome = outcomeOf(told);
  switch (outcome.status) {
    case 'stopped':
      return { reason: 'canceled' };
    case 'failed':
    case 'lost': {
      const code = outcome.status === 'lost' ? TURN_LOST.code : outcome.code;
      const error = chunk.type === 'error' ? chunk.errorText : undefined;
      return { reason: 'error', ...(error && { error }), ...(code && { code }) };
    }
    default: {
      const isError = chunk.type === 'finish' && chunk.finishReason === 'error';
      return { reason: isError ? 'error' : 'end_turn' };
    }
  }
}

/** Whether it has what its type needs. In process a value may be `undefined`, which JSON has not. */
function isChunk(value: unknown): value is Loose & { type: string } {
  if (!isObject(value) || typeof value.type !== 'string') return false;
  const shape = shapeOf(value.type);
  if (!shape) return false;
  return shape.required.every((name) => shape.fields.get(name)?.is(value[name] ?? null, NEWEST));
}
