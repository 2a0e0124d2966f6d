import { createAccumulatorCore } from '../../core/accumulator-core.ts';
import { shapeOf } from '../../core/chunk-shapes.ts';
import type { Chunk, ReasoningDeltaChunk, TextDeltaChunk } from '../../core/chunks.ts';
import { createDowngrade } from '../../core/downgrade.ts';
import { toShownText } from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import { toJsonSafe } from '../../core/json.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import { countSkipped, type Translator, type TranslatorStats } from '../../core/translator.ts';
import { createCalls } from './calls.ts';

export type ChunkTranslatorOptions = {
  /** The id of the message, where the source's `start` names none. */
  messageId?: string;
  /** The message has that id, whatever the source calls it. @default false */
  isMessageIdFixed?: boolean;
  /** What a person is shown of the source's own errors. */
  errorText?: (error: unknown) => string;
};

type Block = 'text' | 'reasoning';
type Delta = TextDeltaChunk | ReasoningDeltaChunk;
/** Whether a text streams, or was ended with its step and may go on in another part. */
type TextState = { step: number; isCut: boolean };

const UNREADABLE = '[unreadable]';
/** What begins a part of its own, so that words behind it are a new part too. Other data and sources do not. */
const BEGINS_PART =
  /^(text-|reasoning-|tool-input-|file$|start-step$|data-question$|steering-message$)/;

/**
 * Chunks, as somebody's generator gives them → chunks, in an order that no client dies of.
 *
 * Owns what is open: texts and reasoning by the source's own ids, tool calls, the step. What can be
 * mended is mended and passed on, the rest is left out; both are counted. Without a fault, what
 * comes out is what went in.
 */
export function createChunkTranslator(options: ChunkTranslatorOptions = {}): Translator<Chunk> {
  const stats: TranslatorStats = { unknown: {}, malformed: {} };
  const texts = { text: new Map<string, TextState>(), reasoning: new Map<string, TextState>() };
  const calls = createCalls();
  const ended = new Set<string>();
  /** Questions nobody has answered, by the ids of their parts. */
  const questions = new Map<string, Loose>();
  const fit = createDowngrade(7);
  /** The part that deltas without an id go to. */
  let loose: { kind: Block; id: string } | undefined;
  let looseParts = 0;
  let out: Chunk[] = [];
  let isStarted = false;
  let isInStep = false;
  let step = 0;
  let isEnded = false;
  /** Nothing that still comes is the source's fault then. */
  let isEndedByUs = false;
  /** What the source itself ended the turn with. */
  let lastWord: string | undefined;

  /** An ordinary delta of an open text needs no second look. Never the source's own object: it may be written into. */
  function toPlainDelta(event: unknown): Delta | undefined {
    try {
      const { type, id: named, delta } = event as Loose;
      if ((type !== 'text-delta' && type !== 'reasoning-delta') || typeof delta !== 'string')
        return;
      const kind = type === 'text-delta' ? 'text' : 'reasoning';
      const id = named === undefined && loose?.kind === kind ? loose.id : named;
      if (typeof id !== 'string' || texts[kind].get(id)?.isCut !== false) return;
      if (Object.getPrototypeOf(event) !== Object.prototype) return;
      let fields = 0;
      for (const _ in event as object) fields++;
      return fields === (named === undefined ? 2 : 3) ? { type, id, delta } : undefined;
    } catch {
      return undefined;
    }
  }

  function start(chunk: Loose = { type: 'start' }): void {
    isStarted = true;
    const named = options.isMessageIdFixed ? undefined : chunk.messageId;
    const messageId = named || options.messageId || createId();
    write(chunk.messageId === messageId ? chunk : { ...chunk, messageId });
  }

  /** A copy: a source may go on writing into what it gave, and a log tells it again later. */
  function write(chunk: Loose): void {
    out.push(copyOf(chunk) as Chunk);
  }

  function endText(kind: Block, id: string): void {
    write({ type: `${kind}-end`, id });
  }

  /** At a step's end a client lets go of its texts, so they end first; they may go on later. */
  function cutTexts(kind: Block): void {
    for (const [id, state] of texts[kind]) {
      if (!state.isCut) endText(kind, id);
      state.isCut = true;
    }
  }

  /** A text of the step goes with it; one from before stays on the screen and must end. */
  function resetTexts(kind: Block): void {
    for (const [id, state] of texts[kind]) {
      if (!state.isCut && state.step !== step) endText(kind, id);
    }
    texts[kind].clear();
  }

  function endLoose(): void {
    if (!loose) return;
    const { kind, id } = loose;
    if (texts[kind].get(id)?.isCut === false) endText(kind, id);
    texts[kind].delete(id);
    loose = undefined;
  }

  /** A delta without an id goes on with the words before it, or begins a part. */
  function withId(chunk: Loose): Loose {
    const { type, id } = chunk;
    if (id !== undefined || (type !== 'text-delta' && type !== 'reasoning-delta')) return chunk;
    const kind = type === 'text-delta' ? 'text' : 'reasoning';
    if (loose?.kind !== kind || texts[kind].get(loose.id)?.isCut !== false) {
      endLoose();
      loose = { kind, id: `${kind}-without-id-${++looseParts}` };
    }
    return { ...chunk, id: loose.id };
  }

  /** True where the chunk is taken as it is. */
  function takeText(kind: Block, chunk: Loose): boolean {
    const open = texts[kind];
    const id = chunk.id as string;
    const state = open.get(id);
    if (chunk.type === `${kind}-start`) {
      const isOpen = state !== undefined && !state.isCut;
      // The first of two would seem to stream for ever.
      if (isOpen) endText(kind, id);
      open.set(id, { step, isCut: false });
      write(chunk);
      return !isOpen;
    }
    if (chunk.type === `${kind}-end`) {
      open.delete(id);
      ended.add(`${kind} ${id}`);
      if (state && !state.isCut) write(chunk);
      return state !== undefined;
    }
    // What was ended stays ended; what was never begun begins now.
    if (!state && ended.has(`${kind} ${id}`)) return false;
    if (!state || state.isCut) {
      open.set(id, { step, isCut: false });
      write({ type: `${kind}-start`, id });
    }
    write(chunk);
    return true;
  }

  /** Metadata is merged into what was there, which only an object can be. */
  function takeMetadata(chunk: Loose): Loose {
    const { messageMetadata, ...rest } = chunk;
    return messageMetadata == null || isObject(messageMetadata) ? chunk : rest;
  }

  function seeQuestion(chunk: Loose): void {
    const { id, data } = chunk;
    if (!isObject(data)) return;
    const key = id ?? data.questionId;
    if (typeof key !== 'string') return;
    if ((data.status ?? 'open') === 'open') questions.set(key, chunk);
    else {
      questions.delete(key);
      calls.settleApproval(key);
    }
  }

  /** True where the chunk is taken as it is. */
  function take(type: string, chunk: Loose): boolean {
    if (BEGINS_PART.test(type) && chunk.id !== loose?.id) endLoose();
    if (type.startsWith('text-')) return takeText('text', chunk);
    if (type.startsWith('reasoning-') && type !== 'reasoning-file') {
      return takeText('reasoning', chunk);
    }
    if (type.startsWith('tool-')) {
      const taken = calls.take(chunk);
      if (taken) write(taken);
      return taken === chunk || (taken !== undefined && type.startsWith('tool-output-'));
    }
    switch (type) {
      case 'data-question':
        seeQuestion(chunk);
        break;
      case 'message-metadata': {
        const taken = takeMetadata(chunk);
        if (taken === chunk) write(chunk);
        return taken === chunk;
      }
      case 'start-step':
        isInStep = true;
        step++;
        calls.startStep();
        break;
      case 'finish-step':
        cutTexts('text');
        cutTexts('reasoning');
        isInStep = false;
        calls.finishStep();
        break;
      case 'reset-step':
        resetTexts('text');
        resetTexts('reasoning');
        calls.resetStep();
        break;
      case 'finish': {
        const taken = takeMetadata(chunk);
        close((accumulator) => accumulator.closeParts(true));
        write(taken);
        return taken === chunk;
      }
      case 'error':
        end({ status: 'failed', message: chunk.errorText as string });
        return true;
      case 'abort': {
        write(chunk);
        const { reason } = chunk as { reason?: string };
        end({ status: 'stopped', ...(reason === undefined ? undefined : { reason }) });
        return true;
      }
    }
    write(chunk);
    return true;
  }

  /** Ends what is open, in the accumulator's order and with its words, then the turn. */
  function close(
    how: (accumulator: ReturnType<typeof createAccumulatorCore>['accumulator']) => void,
    isPausing = false,
  ): void {
    cutTexts('text');
    cutTexts('reasoning');
    for (const chunk of isPausing ? [] : questions.values()) {
      write({ ...chunk, data: { ...(chunk.data as object), status: 'withdrawn' } });
    }
    const { accumulator, internals } = createAccumulatorCore('');
    accumulator.start();
    if (isInStep) accumulator.startStep();
    for (const [id, call] of calls.open()) internals.openTools.set(id, call);
    accumulator.take();
    how(accumulator);
    out.push(...accumulator.take());
    isEnded = true;
  }

  function end(outcome: TurnOutcome | undefined): void {
    const said = outcome?.status === 'failed' ? outcome.message : undefined;
    const text = said === undefined ? undefined : toShownText(said, options.errorText);
    close((accumulator) => accumulator.end(outcome, {}, text), outcome?.status === 'paused');
  }

  /** What is wrong with the chunk, if something is. */
  function read(event: unknown, given: Loose, type: string): keyof TranslatorStats | undefined {
    if (shapeOf(type) === undefined) return 'unknown';
    const named = withId(given);
    const fitted = fit(named as Chunk)[0] as Loose | undefined;
    if (!fitted) return 'malformed';
    let isSound = given === event && isSame(named, fitted);
    if (!isStarted && type === 'start') {
      const taken = takeMetadata(fitted);
      start(taken);
      isSound &&= taken === fitted;
    } else {
      if (!isStarted) start();
      isSound = type !== 'start' && take(type, fitted) && isSound;
    }
    return isSound ? undefined : 'malformed';
  }

  /** What follows the source's own end is its fault, but for the closings that servers send. */
  function readLate(type: string): keyof TranslatorStats | undefined {
    const isClosing = type === 'finish' || type === 'finish-step';
    return isEndedByUs || (lastWord !== 'finish' && isClosing) ? undefined : 'malformed';
  }

  return {
    stats,
    get ended() {
      return isEnded;
    },
    push(event) {
      const plain = isStarted && !isEnded ? toPlainDelta(event) : undefined;
      if (plain) return [plain];
      out = [];
      let type = '(no type)';
      let problem: keyof TranslatorStats | undefined = isEndedByUs ? undefined : 'malformed';
      try {
        const given = toPlain(event);
        if (typeof given?.type === 'string') {
          type = given.type;
          problem = isEnded ? readLate(type) : read(event, given, type);
          if (isEnded) lastWord ??= type;
        }
      } catch {
        // A proxy or a getter of somebody else's chunk threw: the rest of the turn is still good.
      }
      if (problem) countSkipped(stats, problem, type);
      return out;
    },
    end(outcome) {
      out = [];
      if (isEnded) return out;
      isEndedByUs = true;
      if (!isStarted) start();
      end(outcome);
      return out;
    },
  };
}

/**
 * The chunk itself where JSON can carry it, else a copy in which it can; field by field, so that
 * one bad value costs no more than itself.
 */
function toPlain(event: unknown): Loose | undefined {
  if (!isObject(event)) return undefined;
  if (toJsonSafe(event) === event) return event;
  const copy: Loose = {};
  for (const key of Object.keys(event)) {
    if (key === '__proto__' || key === 'constructor') continue;
    let value: unknown = UNREADABLE;
    try {
      value = event[key];
    } catch {
      // Its getter threw.
    }
    if (value !== undefined) copy[key] = toJsonSafe(value);
  }
  return copy;
}

function copyOf(chunk: Loose): Loose {
  try {
    return structuredClone(chunk);
  } catch {
    // In it is a proxy, as reactive stores hand out: plain data to look at, but nothing to clone.
    return JSON.parse(JSON.stringify(chunk));
  }
}

/** Whether all that was said is still there; a field without a value says nothing. */
function isSame(given: Loose, fitted: Loose): boolean {
  if (given === fitted) return true;
  for (const key of Object.keys(given)) {
    if (given[key] !== undefined && given[key] !== fitted[key]) return false;
  }
  return true;
}
