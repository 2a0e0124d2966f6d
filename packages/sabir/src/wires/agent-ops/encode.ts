import { shapeOf, targetOf } from '../../core/chunk-shapes.ts';
import type { Chunk } from '../../core/chunks.ts';
import { TURN_LOST } from '../../core/errors.ts';
import { toJsonSafe } from '../../core/json.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import { mergeMetadata } from '../../core/merge-metadata.ts';
import type { Usage } from '../../core/outcome.ts';
import type { Channel } from '../../core/translator.ts';
import type { DataState, EventOf, SourceState } from '../../sources/agent-ops/events.ts';
import { outcomeOf } from '../../turns/outcome-of.ts';
import type { Emit, V2Event } from './events.ts';
import { createHeldTexts } from './held-texts.ts';
import { toDataState, toFileState, toMetadataState, toSourceState } from './parts.ts';
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
  let isStepEmpty = true;
  let shown: { status: Status; detail: string | undefined } | undefined;
  let metadata: unknown;

  const emit: Emit = (type, fields) => {
    if (type.startsWith('message.part.') || type === 'question') isStepEmpty = false;
    out.push({ type, ...ofTurn, ...fields } as unknown as V2Event);
  };
  const questions = createQuestionEvents(emit);
  const texts = createHeldTexts(emit, (kind) =>
    showStatus(kind === 'text' ? 'streaming' : 'thinking'),
  );
  const calls = createToolUpdates({
    emit,
    onCall: (toolName) => showStatus('tool_calling', toolName),
    isUnanswered: questions.isUnanswered,
  });

  function showStatus(status: Status, detail?: string): void {
    if (status === shown?.status && detail === shown.detail) return;
    shown = { status, detail };
    emit('agentStatus', { status, ...(detail !== undefined && { detail }) });
  }

  function begin(): void {
    if (isBegun) return;
    isBegun = true;
    emit('message.create', {});
    showStatus('thinking');
  }

  function startStep(): void {
    texts.endAll();
    calls.startStep();
    nextStep();
  }

  /** The first step begins with the message. */
  function nextStep(): void {
    if (isStepEmpty) return;
    emit('message.part.step', {});
    isStepEmpty = true;
  }

  function resetStep(): void {
    texts.endAll();
    calls.resetStep();
    nextStep();
  }

  function emitData(data: DataState | undefined, isTransient = false): void {
    if (data) emit('message.part.data', { ...data, ...(isTransient && { transient: true }) });
  }

  function emitSource(source: SourceState | undefined): void {
    if (source) emit('message.part.source', source);
  }

  function emitStatus({ data }: Loose): void {
    if (!isObject(data) || typeof data.status !== 'string') return;
    const { status, detail } = data;
    showStatus(status as Status, typeof detail === 'string' ? detail : undefined);
  }

  function readMetadata({ messageMetadata, finishReason }: Loose): void {
    metadata = mergeMetadata(metadata, messageMetadata && toJsonSafe(messageMetadata));
    if (CUT_SHORT.includes(finishReason as string)) {
      metadata = mergeMetadata(metadata, { finishReason });
    }
  }

  /** In the order in which V2 has it: what was open, what it cost, metadata, the end. */
  function end(chunk: Chunk): void {
    texts.endAll();
    calls.endAll();
    const { usage } = isObject(metadata) ? metadata : ({} as Loose);
    if (isObject(usage)) emit('usage-report', { entries: [usage as Usage] });
    emitData(toMetadataState(metadata));
    emit('message.finalize', endOf(chunk, metadata));
    emit('complete', {});
    isEnded = true;
  }

  function read(chunk: Loose & { type: string }): void {
    begin();
    const { type } = chunk;
    const [kind = '', verb = ''] = type.split('-');
    if (type === 'file' || type === 'reasoning-file') {
      emit('message.part.file', toFileState(chunk));
    } else if (kind === 'text' || kind === 'reasoning') {
      const delta = verb === 'delta' ? (chunk.delta as string) : '';
      texts.push(kind, verb, chunk.id as string, delta);
    } else if (kind === 'tool') calls.push(type, chunk);
    else if (type === 'data-question') questions.push(chunk as Chunk);
    else if (type === 'data-agent-status') emitStatus(chunk);
    else if (kind === 'data') emitData(toDataState(chunk), chunk.transient === true);
    else if (kind === 'source') emitSource(toSourceState(chunk));
    else if (type === 'start-step') startStep();
    else if (type === 'finish-step') texts.endAll();
    else if (type === 'reset-step') resetStep();
    else if (type === 'custom' || type === 'steering-message') emitData(toDataState(chunk));
    else if (type === 'error') end(chunk as Chunk);
    else if (type === 'start' || type === 'message-metadata') readMetadata(chunk);
    else if (type === 'finish') {
      readMetadata(chunk);
      end(chunk as Chunk);
    }
  }

  return {
    push(chunk) {
      out = [];
      try {
        if (!isEnded && isChunk(chunk)) read(chunk);
      } catch {
        // A getter or a proxy in the chunk threw: the rest of the turn is still good.
      }
      return out;
    },
  };
}

/** How V2 says the end that an `error` or `finish` chunk and the turn's metadata say. */
function endOf(chunk: Chunk, metadata: unknown): End {
  const outcome = outcomeOf([{ type: 'message-metadata', messageMetadata: metadata ?? {} }, chunk]);
  if (outcome.status === 'stopped') return { reason: 'canceled' };
  const error = chunk.type === 'error' ? chunk.errorText : '';
  const hasFailed =
    chunk.type === 'error' ||
    outcome.status === 'failed' ||
    outcome.status === 'lost' ||
    (outcome.status === 'finished' && outcome.finishReason === 'error');
  if (!hasFailed) return { reason: 'end_turn' };
  const { code } = outcome.status === 'lost' ? TURN_LOST : (outcome as { code?: string });
  return { reason: 'error', ...(error && { error }), ...(code && { code }) };
}

/** Whether it has what its type needs. In process a value may be `undefined`, which JSON has not. */
function isChunk(value: unknown): value is Loose & { type: string } {
  if (!isObject(value) || typeof value.type !== 'string') return false;
  const shape = shapeOf(value.type);
  if (!shape) return false;
  return shape.required.every((name) => shape.fields.get(name)?.is(value[name] ?? null, NEWEST));
}
