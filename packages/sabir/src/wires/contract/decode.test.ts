import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Chunk } from '../../core/chunks.ts';
import { TURN_LOST } from '../../core/errors.ts';
import { foldChunks } from '../../core/fold.ts';
import { verifyChunks } from '../../core/verify.ts';
import { decodeContract } from './decode.ts';
import type { StreamEvent } from './events.ts';

type Data = Record<string, unknown>;

const at = (type: string, data: Data = {}): StreamEvent => ({
  type,
  data: { messageId: 'm', ...data },
});
const start = at('message.start', { role: 'assistant' });
const delta = (text: string, more?: Data) => at('message.delta', { delta: text, ...more });
const done: StreamEvent = { type: 'done', data: { finishReason: 'stop' } };
const call = at('tool.call', {
  toolCallId: 'c',
  toolName: 'search',
  input: { q: 1 },
  state: 'input-available',
});
const output = at('tool.result', { toolCallId: 'c', toolName: 'search', output: 1 });

function decodeAll(events: unknown[], options = { generateMessageId: () => 'minted' }): Chunk[] {
  const decode = decodeContract(options);
  return events.flatMap((event) => decode(event as StreamEvent));
}

/** What comes of the last event, after a start and the others. */
function lastOf(...events: StreamEvent[]): Chunk[] {
  const decode = decodeContract();
  return [start, ...events].map((event) => decode(event)).at(-1) ?? [];
}

/** The parts of a run that has ended, which any client must be able to read. */
function partsOf(...events: StreamEvent[]): unknown[] {
  const chunks = decodeAll([...events, done]);
  expect(verifyChunks(chunks)).toEqual([]);
  return foldChunks(chunks).parts;
}

const text = (said: string) => ({ type: 'text', text: said, state: 'done' });
const tool = { type: 'tool-search', toolCallId: 'c', input: { q: 1 } };
const answered = { ...tool, state: 'output-available', output: 1 };

describe('the message', () => {
  it('begins with its start', () => {
    expect(decodeAll([at('message.start', { metadata: { a: 1 } })])).toEqual([
      { type: 'start', messageId: 'm', messageMetadata: { a: 1 } },
    ]);
  });

  it.each([delta('a'), call, at('step', { state: 'start' })])(
    'begins with any event that belongs to it',
    (event) => {
      expect(decodeAll([event])[0]).toEqual({ type: 'start', messageId: 'm' });
    },
  );

  it('is given an id where nobody names it', () => {
    const unnamed = { type: 'message.delta', data: { delta: 'a' } };
    expect(decodeAll([unnamed])[0]).toEqual({ type: 'start', messageId: 'minted' });
    expect(decodeContract()(unnamed)[0]).toMatchObject({ messageId: expect.any(String) });
  });

  it('is not begun twice', () => {
    expect(lastOf(start)).toEqual([]);
    expect(lastOf(at('message.start', { metadata: { a: 1 } }))).toEqual([
      { type: 'message-metadata', messageMetadata: { a: 1 } },
    ]);
  });

  it('is joined by a second one', () => {
    const second = at('message.start', { messageId: 'm2' });
    const more = delta('b', { messageId: 'm2' });
    expect(partsOf(start, delta('a'), second, more)).toEqual([text('a'), text('b')]);
    expect(partsOf(start, delta('a', { partId: 'p' }), second, more)).toHaveLength(2);
  });

  it('hears nothing of meta, of what is unknown, of what cannot be read', () => {
    for (const type of ['meta', 'unknown', 'text.unknown', 'tool.unknown', 'constructor', '']) {
      expect(lastOf(at(type, { delta: 'a', toolCallId: 'c' }))).toEqual([]);
    }
    for (const junk of [null, undefined, 1, 'done', [], {}, { type: 1 }, { type: 'step' }]) {
      expect(decodeAll([junk])).toEqual([]);
    }
    for (const data of [null, undefined, 1, 'text', [], {}]) {
      for (const type of ['message.delta', 'tool.call', 'source', 'step', 'data', 'part']) {
        expect(decodeAll([{ type, data }])).toEqual([]);
      }
    }
  });
});

describe('texts', () => {
  it('of a server that names them are what it says', () => {
    const a = (said: string) => delta(said, { partId: 'a' });
    const b = (said: string) => at('reasoning.delta', { delta: said, partId: 'b' });
    expect(partsOf(a('1'), b('2'), a('3'), call, output, b('4'))).toEqual([
      text('13'),
      { type: 'reasoning', id: 'b', text: '24', state: 'done' },
      answered,
    ]);
  });

  it('of a server that does not name them end where another part begins', () => {
    expect(partsOf(delta('1'), delta('2'), call, output, delta('3'))).toEqual([
      text('12'),
      answered,
      text('3'),
    ]);
    for (const event of [
      at('source', { sourceId: 's', url: 'u' }),
      at('step', { state: 'start' }),
      at('data', { name: 'a', data: 1 }),
      at('question', { questionId: 'q' }),
      at('part', { part: { type: 'file', url: 'u', mediaType: 'image/png' } }),
    ]) {
      const [first, , second] = partsOf(delta('1'), event, delta('2'));
      expect([first, second]).toEqual([text('1'), text('2')]);
    }
    const thought = at('reasoning.delta', { delta: 'hm' });
    expect(partsOf(delta('1'), thought, thought, delta('2'), thought)).toMatchObject([
      text('1'),
      { type: 'reasoning', text: 'hmhm' },
      text('2'),
      { type: 'reasoning', text: 'hm' },
    ]);
  });

  it('go on where nothing but an answer or a status came between', () => {
    const status = { type: 'status', data: { state: 'streaming' } };
    expect(partsOf(call, delta('1'), output, status, delta('2'))).toEqual([answered, text('12')]);
  });

  it('begin and end on their own', () => {
    expect(lastOf(at('text.start', { partId: 'p' }))).toEqual([{ type: 'text-start', id: 'p' }]);
    expect(lastOf(at('text.start', { partId: 'p' }), at('text.start', { partId: 'p' }))).toEqual(
      [],
    );
    expect(lastOf(delta('a', { partId: 'p' }), at('text.end', { partId: 'p' }))).toEqual([
      { type: 'text-end', id: 'p' },
    ]);
    expect(lastOf(at('text.end', { partId: 'p' }))).toEqual([]);
    expect(lastOf(at('reasoning.delta', { delta: 'a' }), at('reasoning.end'))).toMatchObject([
      { type: 'reasoning-end' },
    ]);
  });

  it('are ended by the end of the message', () => {
    expect(lastOf(delta('a', { partId: 'p' }), at('message.end'))).toEqual([
      { type: 'text-end', id: 'p' },
    ]);
  });
});

describe('tool calls', () => {
  const streamed = (said: string, more?: Data) =>
    at('tool.delta', { toolCallId: 'c', delta: said, state: 'input-streaming', ...more });
  const named = { toolName: 'search' };

  it('are made by a delta that names the tool', () => {
    expect(lastOf(streamed('{', named))).toEqual([
      { type: 'tool-input-start', toolCallId: 'c', toolName: 'search' },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{' },
    ]);
    expect(lastOf(streamed('', named))).toHaveLength(1);
    expect(lastOf(streamed('', named), streamed(''))).toEqual([
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '' },
    ]);
    expect(partsOf(streamed('{"q":', named), streamed('1}'), call, output)).toEqual([answered]);
  });

  it('wait where it does not', () => {
    expect(lastOf(streamed('{'))).toEqual([]);
    expect(partsOf(streamed('{"q":'), streamed('1}'), call, output)).toEqual([answered]);
  });

  it('begin anew where that is said', () => {
    expect(lastOf(call, streamed('', { ...named, restart: true }))).toEqual([
      { type: 'tool-input-start', toolCallId: 'c', toolName: 'search' },
    ]);
    expect(lastOf(call, streamed('late'))).toEqual([]);
  });

  it('are made by their results', () => {
    expect(partsOf(output)).toEqual([{ ...answered, input: {} }]);
    const nameless = at('tool.result', { toolCallId: 'c', errorText: 'no' });
    expect(partsOf(nameless)).toEqual([
      { type: 'tool-unknown', toolCallId: 'c', input: {}, state: 'output-error', errorText: 'no' },
    ]);
  });

  it('are left alone by a result for another message', () => {
    expect(lastOf(at('tool.result', { toolCallId: 'c', output: 1, continued: true }))).toEqual([
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
    ]);
  });

  it.each<[Data, object]>([
    [{ output: null }, { type: 'tool-output-available', output: null }],
    [{}, { type: 'tool-output-available', output: null }],
    [{ errorText: 'no' }, { type: 'tool-output-error', errorText: 'no' }],
    [{ errorText: 'no', state: 'output-available' }, { type: 'tool-output-available' }],
    [{ state: 'output-error' }, { type: 'tool-output-error', errorText: expect.any(String) }],
    [{ state: 'output-denied' }, { type: 'tool-output-denied' }],
    [
      { state: 'output-error', errorText: 'no', inputError: true, toolName: 'search', input: 2 },
      { type: 'tool-input-error', errorText: 'no', input: 2 },
    ],
  ])('are answered by what is there: %j', (said, chunk) => {
    expect(lastOf(call, at('tool.result', { toolCallId: 'c', ...said }))).toMatchObject([chunk]);
  });

  it('keep how they ended', () => {
    const failed = at('tool.result', { toolCallId: 'c', errorText: 'no' });
    expect(lastOf(call, output, failed)).toEqual([]);
    expect(lastOf(call, output, call)).toEqual([]);
    const refused = at('tool.result', { toolCallId: 'c', errorText: 'no', inputError: true });
    expect(lastOf(refused, failed)).toMatchObject([{ type: 'tool-output-error' }]);
  });

  it('keep what they are', () => {
    const dynamic = at('tool.call', { ...(call.data as Data), dynamic: true });
    expect(lastOf(dynamic, output)).toMatchObject([{ dynamic: true }]);
    expect(lastOf(dynamic, call)).toMatchObject([{ dynamic: true }]);
    const passed = { providerExecuted: true, title: 'T', providerMetadata: { a: { b: 1 } } };
    expect(lastOf(at('tool.call', { ...(call.data as Data), ...passed }))).toEqual([
      {
        type: 'tool-input-available',
        toolCallId: 'c',
        toolName: 'search',
        input: { q: 1 },
        ...passed,
      },
    ]);
  });

  it('ask for approval, if they are there', () => {
    const asks = at('tool.approval', { toolCallId: 'c', approval: { id: 'a' } });
    const answers = at('tool.approval', { approval: { id: 'a', approved: true } });
    expect(lastOf(asks)).toEqual([]);
    expect(lastOf(answers)).toEqual([]);
    expect(lastOf(call, asks)).toEqual([
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
    ]);
    expect(lastOf(call, asks, answers)).toEqual([
      { type: 'tool-approval-response', approvalId: 'a', approved: true },
    ]);
    expect(lastOf(call, asks, output, answers)).toEqual([]);
  });
});

describe('what else is said', () => {
  it('is told as it is', () => {
    const source = { sourceId: 's', url: 'https://a.example' };
    expect(lastOf(at('source', { ...source, title: 'A', toolCallId: 'c' }))).toEqual([
      { type: 'source-url', ...source, title: 'A' },
    ]);
    expect(lastOf(at('source', { ...source, title: 1 }))).toEqual([
      { type: 'source-url', ...source },
    ]);
    expect(lastOf(at('question', { questionId: 'q', text: 'Well?' }))).toEqual([
      { type: 'data-question', id: 'q', data: { questionId: 'q', text: 'Well?' } },
    ]);
    expect(lastOf(at('data', { name: 'a', id: '1', data: 1, transient: true }))).toEqual([
      { type: 'data-a', id: '1', data: 1, transient: true },
    ]);
    expect(lastOf(at('data', { name: 'a' }))).toEqual([{ type: 'data-a', data: null }]);
    expect(lastOf({ type: 'status', data: { state: 'aborted' } })).toEqual([{ type: 'abort' }]);
    expect(lastOf({ type: 'status', data: { state: 'thinking', message: 'hard' } })).toEqual([
      {
        type: 'data-agent-status',
        data: { status: 'thinking', detail: 'hard' },
        transient: true,
      },
    ]);
    expect(lastOf(at('metadata', { metadata: { a: 1 } }))).toEqual([
      { type: 'message-metadata', messageMetadata: { a: 1 } },
    ]);
    expect(lastOf(at('metadata', { metadata: 'a' }))).toEqual([]);
  });

  it('is a part only if it is one by itself', () => {
    const file = { type: 'file', url: 'u', mediaType: 'image/png' };
    expect(lastOf(at('part', { part: file }))).toEqual([file]);
    for (const part of [{ type: 'error', errorText: 'x' }, { type: 1 }, null, 'file']) {
      expect(lastOf(at('part', { part }))).toEqual([]);
    }
  });

  it('waits for the message if it is only heard', () => {
    const status = { type: 'status', data: { state: 'connecting' } };
    expect(decodeAll([status])).toEqual([]);
    expect(decodeAll([status, start])).toMatchObject([
      { type: 'start', messageId: 'm' },
      { type: 'data-agent-status' },
    ]);
  });
});

describe('the end', () => {
  it('closes what is open', () => {
    const open = [at('step', { state: 'start' }), call, delta('a', { partId: 'p' })];
    const chunks = decodeAll([start, ...open, done]);
    expect(chunks.slice(-4)).toMatchObject([
      { type: 'text-end', id: 'p' },
      { type: 'tool-output-error', toolCallId: 'c' },
      { type: 'finish-step' },
      { type: 'finish', finishReason: 'stop' },
    ]);
    expect(verifyChunks(chunks)).toEqual([]);
  });

  it('comes even if nothing began', () => {
    expect(decodeAll([done])).toEqual([
      { type: 'start', messageId: 'minted' },
      { type: 'finish', finishReason: 'stop' },
    ]);
  });

  it.each([
    ['length', 'length'],
    [undefined, 'stop'],
    ['end_turn', 'other'],
    ['interrupted', 'other'],
    [['stop'], 'other'],
  ])('has a reason that clients know: %j', (finishReason, expected) => {
    expect(lastOf({ type: 'done', data: { finishReason } })).toEqual([
      { type: 'finish', finishReason: expected },
    ]);
  });

  it('brings the usage and the metadata of the message', () => {
    const usage = { outputTokens: 2 };
    const message = foldChunks(
      decodeAll([
        start,
        at('message.end', { metadata: { outcome: 'finished' } }),
        { type: 'done', data: { usage } },
      ]),
    );
    expect(message.metadata).toEqual({ outcome: 'finished', usage });
  });

  it('is an error where one is terminal, and nothing follows', () => {
    const decode = decodeContract();
    decode(start);
    decode(delta('a', { partId: 'p' }));
    expect(decode({ type: 'error', data: { message: 'bad', terminal: true } })).toEqual([
      { type: 'text-end', id: 'p' },
      { type: 'error', errorText: 'bad' },
      { type: 'finish', finishReason: 'error' },
    ]);
    for (const event of [start, delta('late', { partId: 'p' }), call, done]) {
      expect(decode(event)).toEqual([]);
    }
    expect(decode.end()).toEqual([]);
  });

  const error = { type: 'error', data: { message: 'bad', code: 'x', retryable: true } };
  const ending = [
    { type: 'error', errorText: 'bad' },
    { type: 'finish', finishReason: 'error' },
  ];
  const heard = {
    type: 'data-error',
    data: { message: 'bad', code: 'x', retryable: true },
    transient: true,
  };

  it('is an error that was not said to be terminal, if done or nothing follows', () => {
    expect(lastOf(error)).toEqual([]);
    expect(lastOf(error, done)).toEqual(ending);
    const decode = decodeContract();
    decode(start);
    decode(error);
    expect(decode.end()).toEqual(ending);
  });

  it('is not an error that the run survived', () => {
    const open = delta('a', { partId: 'p' });
    expect(lastOf(open, error, open)).toEqual([heard, { type: 'text-delta', id: 'p', delta: 'a' }]);
    expect(lastOf(error, { type: 'unknown', data: {} })).toEqual([heard]);
    expect(lastOf({ type: 'error', data: { ...error.data, terminal: false } })).toEqual([heard]);
    expect(lastOf(error, call, done).at(-1)).toEqual({ type: 'finish', finishReason: 'stop' });
  });

  it('is an error even if nobody can read which', () => {
    expect(lastOf({ type: 'error', data: null }, done)[0]).toMatchObject({ type: 'error' });
  });

  it('is a lost run where nothing more comes', () => {
    const decode = decodeContract();
    const chunks = [start, delta('a'), call].flatMap((event) => decode(event));
    chunks.push(...decode.end());
    expect(chunks.slice(-2)).toEqual([
      { type: 'error', errorText: TURN_LOST.userMessage },
      { type: 'finish', finishReason: 'error' },
    ]);
    expect(verifyChunks(chunks)).toEqual([]);
    expect(decode.end()).toEqual([]);
    expect(decode(done)).toEqual([]);
  });
});

describe('whatever a server sends', () => {
  // Clients refuse a frame that names these keys; that has tests of its own.
  const value = fc
    .jsonValue({ maxDepth: 2 })
    .filter((drawn) => !/__proto__|constructor|prototype/.test(JSON.stringify(drawn)));
  const id = fc.constantFrom('a', 'b', 'c');
  /** A field that is right, missing, or anything at all. */
  const maybe = <T>(right: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
    fc.oneof({ weight: 6, arbitrary: right }, fc.constant(undefined), value);
  const optional = <T>(right: fc.Arbitrary<T>) => fc.option(right, { nil: undefined, freq: 3 });
  const states = fc.constantFrom(
    'input-streaming',
    'input-available',
    'output-available',
    'output-error',
    'start',
    'finish',
    'reset',
    'aborted',
    'thinking',
  );
  // Clients find a call that changes its name in different ways, so that a name belongs to an id.
  const call = id.map((toolCallId) => ({ toolCallId, toolName: `tool-${toolCallId}` }));
  const seedData = fc
    .tuple(
      call,
      fc.record({
        messageId: maybe(id),
        delta: maybe(fc.string()),
        state: maybe(states),
        input: maybe(value),
        output: maybe(value),
        errorText: maybe(fc.string()),
        sourceId: maybe(id),
        url: maybe(id),
        title: maybe(fc.string()),
        message: maybe(fc.string()),
        code: maybe(fc.string()),
        retryable: maybe(fc.boolean()),
        finishReason: maybe(fc.constantFrom('stop', 'error', 'end_turn')),
        usage: maybe(fc.constant({ outputTokens: 1 })),
      }),
      maybe(id),
    )
    .map(([names, fields, other]): Data => {
      // Another id would give one call two names, unless it is none at all.
      const { toolCallId } = names;
      return { ...fields, ...names, toolCallId: typeof other === 'string' ? toolCallId : other };
    });
  const SEED = [
    'meta',
    'message.start',
    'message.delta',
    'message.delta',
    'message.end',
    'tool.call',
    'tool.delta',
    'tool.result',
    'source',
    'status',
    'error',
  ];
  const ends = fc.constantFrom(...SEED, 'done', 'unknown');
  const seedEvents = fc.array(
    fc.oneof(
      { weight: 30, arbitrary: fc.record({ type: fc.constantFrom(...SEED), data: seedData }) },
      fc.record({ type: ends, data: fc.oneof(seedData, value) }),
      value,
    ),
    { maxLength: 30 },
  );

  function readAll(events: unknown[]): Chunk[] {
    const decode = decodeContract();
    const chunks = events.flatMap((event) => decode(event as StreamEvent));
    chunks.push(...decode.end());
    expect(decode.end()).toEqual([]);
    return chunks;
  }

  it('in the words of the first version is fit for every client', () => {
    fc.assert(
      fc.property(seedEvents, (events) => {
        expect(verifyChunks(readAll(events))).toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });

  const ALL = [
    ...SEED,
    'text.start',
    'text.end',
    'reasoning.start',
    'reasoning.delta',
    'reasoning.end',
    'tool.approval',
    'step',
    'step',
    'question',
    'data',
    'metadata',
    'part',
  ];
  const parts = fc.oneof(
    fc.constant({ type: 'file', url: 'u', mediaType: 'image/png' }),
    fc.constant({ type: 'text-delta', id: 'a', delta: 'x' }),
    value,
  );
  const moreData = fc.record({
    partId: maybe(id),
    providerMetadata: optional(fc.constant({ a: { b: 1 } })),
    callProviderMetadata: optional(fc.constant({ a: { b: 2 } })),
    resultProviderMetadata: optional(fc.constant({ a: { b: 3 } })),
    toolMetadata: optional(fc.constant({ a: 1 })),
    providerExecuted: optional(fc.boolean()),
    preliminary: optional(fc.boolean()),
    dynamic: maybe(fc.boolean()),
    restart: maybe(fc.boolean()),
    inputError: maybe(fc.boolean()),
    approved: maybe(fc.boolean()),
    questionId: maybe(id),
    name: maybe(id),
    id: maybe(id),
    data: maybe(value),
    transient: maybe(fc.boolean()),
    metadata: maybe(fc.constant({ a: 1 })),
    part: maybe(parts),
    terminal: maybe(fc.constant(false)),
  });
  const allEvents = fc
    .array(fc.tuple(fc.constantFrom(...ALL), seedData, moreData, fc.nat({ max: 9 })), {
      maxLength: 40,
    })
    .map((drawn) =>
      drawn.map(([type, seed, more, pick], index) => {
        const data: Data = { ...seed, ...more };
        if (type === 'tool.approval') {
          // Each request has an id of its own; an answer may be to any, and come at any time.
          const { approved } = data;
          const isAnswer = typeof approved === 'boolean';
          data.approval = { id: `approval-${isAnswer ? index - pick : index}`, approved };
        }
        return { type, data };
      }),
    );

  it('in all our words is fit for a client of 7', () => {
    fc.assert(
      fc.property(allEvents, (events) => {
        expect(verifyChunks(readAll(events), { aiSdk: 7 })).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });

  it('has no field that a client would not take, and no part without what it needs', () => {
    const part = (given: Data) => at('part', { part: given });
    const events = [
      at('source', { sourceId: 's', url: 'u', title: 7, providerMetadata: { a: 1 } }),
      delta('Hi', { partId: 't', providerMetadata: { a: null } }),
      at('text.end', { partId: 't', citations: [{ source: 7 }] }),
      part({ type: 'custom' }),
      part({ type: 'file', url: 'u' }),
      part({ type: 'source-document', sourceId: 's', mediaType: 'm', title: 'T', filename: 7 }),
    ];
    const chunks = readAll(events);
    expect(verifyChunks(chunks, { aiSdk: 7 })).toEqual([]);
    expect(foldChunks(chunks).parts).toEqual([
      { type: 'source-url', sourceId: 's', url: 'u' },
      text('Hi'),
      { type: 'source-document', sourceId: 's', mediaType: 'm', title: 'T' },
    ]);
  });
});
