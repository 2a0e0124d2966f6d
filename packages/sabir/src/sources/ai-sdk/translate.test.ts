import { describe, expect, it } from 'vitest';
import { available, call, streamed } from '../../../test/chunk-sequences.ts';
import { describeTranslator } from '../../../test/translator-conformance.ts';
import type { Chunk } from '../../core/chunks.ts';
import { RUN_FAILED } from '../../core/errors.ts';
import { foldChunks } from '../../core/fold.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import { verifyChunks } from '../../core/verify.ts';
import { type ChunkTranslatorOptions, createChunkTranslator } from './translate.ts';

const FIXTURES = new URL('../../../test/fixtures/chunks/', import.meta.url);

describeTranslator('chunks', FIXTURES, createChunkTranslator);

function translate(events: unknown[], outcome?: TurnOutcome, options?: ChunkTranslatorOptions) {
  const translator = createChunkTranslator({ messageId: 'm', ...options });
  const pushed = events.flatMap((event) => translator.push(event));
  const { stats } = translator;
  return { pushed, chunks: [...pushed, ...translator.end(outcome)], stats, translator };
}

const START: Chunk = { type: 'start', messageId: 'm' };
const text = (id: string, said?: string): Chunk[] => [
  { type: 'text-start', id },
  ...(said === undefined ? [] : [{ type: 'text-delta', id, delta: said } as Chunk]),
];

describe('words without an id', () => {
  const says = (delta: string) => ({ type: 'text-delta', delta });
  const thinks = (delta: string) => ({ type: 'reasoning-delta', delta });

  /** The parts that the chunks make, in short. */
  function partsOf(...events: unknown[]): unknown[] {
    const { chunks, stats } = translate(events, { status: 'finished' });
    expect(verifyChunks(chunks)).toEqual([]);
    expect(stats).toEqual({ unknown: {}, malformed: {} });
    const { parts } = foldChunks(chunks);
    return parts.map((part) => ('text' in part ? `${part.type}: ${part.text}` : part.type));
  }

  it('are one part, until another one begins', () => {
    expect(partsOf(says('One '), says('two.'))).toEqual(['text: One two.']);
    expect(partsOf(thinks('Hm. '), says('Yes'), says('.'), thinks('But'))).toEqual([
      'reasoning: Hm. ',
      'text: Yes.',
      'reasoning: But',
    ]);
    const tool = [available, { type: 'tool-output-available', toolCallId: 'c', output: 1 }];
    expect(partsOf(says('a'), ...tool, says('b'))).toEqual(['text: a', 'tool-search', 'text: b']);
  });

  it('go on behind data, and begin anew in another step', () => {
    const data = { type: 'data-weather', data: 1 };
    expect(partsOf(says('a'), data, says('b'))).toEqual(['text: ab', 'data-weather']);
    const steps = [{ type: 'start-step' }, says('a'), { type: 'finish-step' }];
    expect(partsOf(...steps, ...steps)).toEqual(['step-start', 'text: a', 'step-start', 'text: a']);
  });

  it('stand beside words with one', () => {
    const named = [...text('t', 'named'), { type: 'text-end', id: 't' }];
    expect(partsOf(says('a'), ...named, says('b'))).toEqual(['text: a', 'text: named', 'text: b']);
  });
});

describe('the message', () => {
  it('has the id of the source, else the given one', () => {
    const own: Chunk = { type: 'start', messageId: 'own', messageMetadata: { a: 1 } };
    expect(translate([own]).pushed).toEqual([own]);
    const nameless = { type: 'start', messageId: undefined, messageMetadata: { a: 1 } };
    const { pushed, stats } = translate([nameless]);
    expect(pushed).toEqual([{ ...START, messageMetadata: { a: 1 } }]);
    expect(stats.malformed).toEqual({});
    expect(translate(text('1')).pushed[0]).toEqual(START);
  });

  it('has an id where nobody names one', () => {
    const [start] = createChunkTranslator().push({ type: 'start' });
    expect(start).toEqual({ type: 'start', messageId: expect.stringMatching(/.{8}/) });
  });

  it('is begun once', () => {
    const { pushed, stats } = translate([START, { type: 'start', messageId: 'other' }]);
    expect(pushed).toEqual([START]);
    expect(stats.malformed).toEqual({ start: 1 });
  });

  it('takes only metadata that can be merged', () => {
    const events = [
      { type: 'start', messageMetadata: 'x' },
      { type: 'message-metadata', messageMetadata: [1] },
      { type: 'message-metadata', messageMetadata: { a: 1 } },
      { type: 'finish', messageMetadata: 3 },
    ];
    const { pushed, stats } = translate(events);
    expect(pushed).toEqual([START, events[2], { type: 'finish' }]);
    expect(stats.malformed).toEqual({ start: 1, 'message-metadata': 1, finish: 1 });
  });
});

describe('texts', () => {
  it('may be open side by side, and keep their ids', () => {
    const events = [START, ...text('a', '1'), ...text('b', '2'), ...text('a', '3').slice(1)];
    expect(translate(events).chunks).toEqual([
      ...events,
      { type: 'text-end', id: 'a' },
      { type: 'text-end', id: 'b' },
      { type: 'finish', finishReason: 'other' },
    ]);
  });

  it('end with their step, and go on in a part of their own', () => {
    const step: Chunk[] = [{ type: 'finish-step' }, { type: 'start-step' }];
    const [, delta] = text('a', 'x') as [Chunk, Chunk];
    const end: Chunk = { type: 'text-end', id: 'a' };
    const { pushed, stats } = translate([START, ...text('a', 'x'), ...step, delta, end, end]);
    expect(pushed).toEqual([START, ...text('a', 'x'), end, ...step, ...text('a', 'x'), end]);
    expect(stats.malformed).toEqual({ 'text-end': 1 });
  });

  it('that begin twice end once more', () => {
    const { pushed, stats } = translate([START, ...text('a'), ...text('a')]);
    expect(pushed).toEqual([START, ...text('a'), { type: 'text-end', id: 'a' }, ...text('a')]);
    expect(stats.malformed).toEqual({ 'text-start': 1 });
  });

  it('begin with their first delta where nobody began them, and stay ended', () => {
    const { pushed, stats } = translate([
      START,
      { type: 'text-delta', id: 'a', delta: 'x' },
      { type: 'text-end', id: 'a' },
      { type: 'text-delta', id: 'a', delta: 'late' },
    ]);
    expect(pushed).toEqual([
      START,
      { type: 'text-start', id: 'a' },
      { type: 'text-delta', id: 'a', delta: 'x' },
      { type: 'text-end', id: 'a' },
    ]);
    expect(stats.malformed).toEqual({ 'text-delta': 1 });
  });
});

describe('what a source gave', () => {
  it('may be written into afterwards', () => {
    const translator = createChunkTranslator();
    const delta = { type: 'text-delta', id: 'a', delta: 'one' };
    const state = { step: 1 };
    const data = { type: 'data-state', data: state };
    const taken = [delta, data, delta].flatMap((chunk) => {
      const chunks = translator.push(chunk);
      delta.delta = 'two';
      state.step = 2;
      return chunks;
    });
    expect(taken.slice(2)).toEqual([
      { type: 'text-delta', id: 'a', delta: 'one' },
      { type: 'data-state', data: { step: 2 } },
      { type: 'text-delta', id: 'a', delta: 'two' },
    ]);
    state.step = 3;
    expect(taken[3]).toEqual({ type: 'data-state', data: { step: 2 } });
  });
});

describe('tool calls', () => {
  const output: Chunk = { type: 'tool-output-available', toolCallId: 'c', output: 1 };

  it('that nobody knows get no output', () => {
    const { pushed, stats } = translate([START, output, ...streamed.slice(1)]);
    expect(pushed).toEqual([START]);
    expect(stats.malformed).toEqual({ 'tool-output-available': 1, 'tool-input-delta': 1 });
  });

  it('get one output', () => {
    expect(translate([START, available, output, output]).pushed).toEqual([
      START,
      available,
      output,
    ]);
  });

  it('keep the name and the flag they began with', () => {
    const dynamic = { toolCallId: 'd', toolName: 'x', dynamic: true };
    const { pushed, stats } = translate([
      START,
      { type: 'tool-input-start', ...call },
      { ...available, toolName: 'other' },
      { type: 'tool-input-start', ...dynamic },
      { type: 'tool-input-available', toolCallId: 'd', toolName: 'x', input: 1 },
      { type: 'tool-output-available', toolCallId: 'd', output: 1 },
    ]);
    expect(pushed.slice(2)).toEqual([
      available,
      { type: 'tool-input-start', ...dynamic },
      { type: 'tool-input-available', ...dynamic, input: 1 },
      { type: 'tool-output-available', toolCallId: 'd', output: 1, dynamic: true },
    ]);
    expect(stats.malformed).toEqual({ 'tool-input-available': 2 });
  });

  it('that return nothing return null', () => {
    const nothing = { type: 'tool-output-available', toolCallId: 'c', output: undefined };
    const { pushed, stats } = translate([START, available, nothing]);
    expect(pushed.at(-1)).toEqual({ ...nothing, output: null });
    expect(stats.malformed).toEqual({});
  });

  it('wait for no approval that has its answer: a client would send that for ever', () => {
    const question = (status: string): Chunk => ({
      type: 'data-question',
      id: 'a',
      data: { questionId: 'a', status },
    });
    const request: Chunk = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' };
    const finish: Chunk = { type: 'finish' };
    for (const status of ['answered', 'expired', 'withdrawn']) {
      const asked = [START, available, question('open'), request, question(status)];
      expect(translate([...asked, finish]).pushed.slice(asked.length)).toEqual([
        expect.objectContaining({ type: 'tool-output-error', toolCallId: 'c' }),
        finish,
      ]);
      expect(translate([...asked, finish]).stats.malformed).toEqual({});
    }
  });

  it('wait for an approval when the turn pauses, or when the source itself finishes', () => {
    const asked: Chunk[] = [
      START,
      { ...available, providerExecuted: true } as Chunk,
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
    ];
    const closed = { type: 'tool-output-error', toolCallId: 'c', providerExecuted: true };
    const closing = { ...closed, errorText: 'The tool gave no result.' };
    expect(translate(asked, { status: 'paused' }).chunks).not.toContainEqual(closing);
    expect(translate([...asked, { type: 'finish' }]).chunks).not.toContainEqual(closing);
    expect(translate(asked, { status: 'stopped' }).chunks).toContainEqual(closing);
  });
});

describe('values', () => {
  it('are made something JSON can carry, one by one', () => {
    const cycle: Record<string, unknown> = { n: 1n };
    cycle.self = cycle;
    const chunk = {
      type: 'data-x',
      get id() {
        throw new Error('no');
      },
      data: cycle,
    };
    const { pushed, stats } = translate([START, chunk]);
    expect(pushed[1]).toEqual({
      type: 'data-x',
      id: '[unreadable]',
      data: { n: '1', self: '[circular]' },
    });
    expect(stats.malformed).toEqual({ 'data-x': 1 });
  });

  it('that a client would refuse are left out', () => {
    const { pushed, stats } = translate([
      START,
      { type: 'data-x', id: null, data: 1, transient: 'yes' },
      { type: 'text-start', id: 7 },
      { type: 'step-start' },
      'text',
      { type: 'finish', finishReason: 'end_turn' },
    ]);
    expect(pushed).toEqual([
      START,
      { type: 'data-x', data: 1 },
      { type: 'finish', finishReason: 'other' },
    ]);
    expect(stats).toEqual({
      unknown: { 'step-start': 1 },
      malformed: { 'data-x': 1, 'text-start': 1, '(no type)': 1, finish: 1 },
    });
  });

  it('are counted by no more types than are worth telling apart', () => {
    const { stats } = translate(Array.from({ length: 500 }, (_, at) => ({ type: `x${at}` })));
    expect(Object.keys(stats.unknown)).toHaveLength(101);
    expect(stats.unknown['(others)']).toBe(400);
  });
});

describe('the end', () => {
  const open: Chunk[] = [
    START,
    { type: 'start-step' },
    { type: 'reasoning-start', id: 'r' },
    ...text('a', 'x'),
    ...streamed,
  ];
  const closings: Chunk[] = [
    { type: 'text-end', id: 'a' },
    { type: 'reasoning-end', id: 'r' },
    { type: 'tool-output-error', toolCallId: 'c', errorText: 'The tool gave no result.' },
    { type: 'finish-step' },
  ];

  it('of the source closes what is open before it', () => {
    const finish: Chunk = { type: 'finish', finishReason: 'length' };
    const { pushed, chunks, stats } = translate([...open, finish, finish, ...text('b')]);
    expect(pushed).toEqual([...open, ...closings, finish]);
    expect(chunks).toEqual(pushed);
    expect(stats.malformed).toEqual({ finish: 1, 'text-start': 1 });
  });

  it('by an error is a failed turn', () => {
    const error = { type: 'error', errorText: 'no\n  at /home/me/x.ts:1:2' };
    const late = [{ type: 'finish-step' }, { type: 'finish' }];
    const { pushed, stats } = translate([...open, error, ...late]);
    expect(pushed).toEqual([
      ...open,
      ...closings,
      { type: 'message-metadata', messageMetadata: { outcome: 'failed' } },
      { type: 'error', errorText: 'no' },
      { type: 'finish', finishReason: 'error' },
    ]);
    expect(stats.malformed).toEqual({});
  });

  it('by an abort is a stopped turn', () => {
    const abort = { type: 'abort', reason: 'asked' };
    expect(translate([...open, abort]).pushed).toEqual([
      ...open,
      abort,
      ...closings,
      {
        type: 'finish',
        finishReason: 'other',
        messageMetadata: { outcome: 'stopped', reason: 'asked' },
      },
    ]);
  });

  it('from outside says what happened, and nothing after it counts', () => {
    const outcome: TurnOutcome = { status: 'failed', code: 'turn-too-large', message: 'too large' };
    const { chunks, translator } = translate(open, outcome);
    expect(chunks).toEqual([
      ...open,
      ...closings,
      {
        type: 'message-metadata',
        messageMetadata: { outcome: 'failed', code: 'turn-too-large' },
      },
      { type: 'error', errorText: 'too large' },
      { type: 'finish', finishReason: 'error' },
    ]);
    expect(translator.push(text('b')[0])).toEqual([]);
    expect(translator.stats.malformed).toEqual({});
  });

  it('shows people what the application says of an error', () => {
    const errorText = (error: unknown) => `Oh: ${error}`;
    const of = (options: ChunkTranslatorOptions) =>
      translate([{ type: 'error', errorText: 'no' }], undefined, options).chunks.at(-2);
    expect(of({ errorText })).toEqual({ type: 'error', errorText: 'Oh: no' });
    const throws = () => {
      throw new Error('no text');
    };
    expect(of({ errorText: throws })).toEqual({ type: 'error', errorText: 'no' });
    const { chunks } = translate([], { status: 'failed' });
    expect(chunks.at(-2)).toEqual({ type: 'error', errorText: RUN_FAILED.userMessage });
  });
});
