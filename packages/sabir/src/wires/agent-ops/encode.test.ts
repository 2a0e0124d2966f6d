import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Chunk } from '../../core/chunks.ts';
import { createV2Encoder, type V2EncoderOptions } from './encode.ts';
import type { V2Event } from './events.ts';

const START: Chunk[] = [{ type: 'start', messageId: 't' }, { type: 'start-step' }];

function encode(chunks: Chunk[], options: V2EncoderOptions = { turnId: 't' }): V2Event[] {
  const encoder = createV2Encoder(options);
  return chunks.flatMap((chunk) => encoder.push(chunk));
}

/** The events behind the start of a turn, without the turn's id and without what the agent is doing. */
function said(...chunks: unknown[]): object[] {
  const events = encode([...START, ...(chunks as Chunk[])]);
  return events
    .filter(({ type }) => type !== 'agentStatus' && type !== 'message.create')
    .map(({ turnId: _, ...event }) => event);
}

const statuses = (...chunks: unknown[]) =>
  encode([...START, ...(chunks as Chunk[])]).flatMap((event) =>
    event.type === 'agentStatus'
      ? [event.detail === undefined ? event.status : `${event.status} ${event.detail}`]
      : [],
  );

const text = (id: string, delta: string): Chunk[] => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta },
  { type: 'text-end', id },
];
const TEXT = 'message.part.text-delta';
const UPDATE = 'message.part.tool-update';
const call = { callId: 'c', toolName: 'bash' };
const named: Chunk = { type: 'tool-input-start', toolCallId: 'c', toolName: 'bash' };
const called: Chunk = {
  type: 'tool-input-available',
  toolCallId: 'c',
  toolName: 'bash',
  input: { a: 1 },
};
const running = { type: UPDATE, ...call, status: 'running', args: { a: 1 } };

describe('a V2 event', () => {
  it('carries the ids of the answer and of the prompt, and the channel', () => {
    const channel = { channelType: 'slack', channelId: '7' };
    const events = encode([...START, ...text('1', 'a'), { type: 'finish' }], {
      turnId: 't',
      promptId: 'p',
      channel,
    });
    expect(events.length).toBeGreaterThan(4);
    for (const event of events) {
      expect(event).toMatchObject({ turnId: 't', promptId: 'p', ...channel });
    }
  });

  it('has no field for what the encoder was not given', () => {
    expect(encode([{ type: 'start' }])).toEqual([
      { type: 'message.create', turnId: 't' },
      { type: 'agentStatus', turnId: 't', status: 'thinking' },
    ]);
  });
});

describe('a turn that begins', () => {
  it('is created once, also where its source said no start', () => {
    const isCreate = ({ type }: V2Event) => type === 'message.create';
    expect(encode([...START, ...START]).filter(isCreate)).toHaveLength(1);
    expect(encode(text('1', 'a')).filter(isCreate)).toHaveLength(1);
  });
});

describe('steps', () => {
  it('begin with an event, but for the first', () => {
    expect(
      said(...text('1', 'a'), { type: 'finish-step' }, { type: 'start-step' }, ...text('2', 'b')),
    ).toEqual([
      { type: TEXT, delta: 'a' },
      { type: 'message.part.step' },
      { type: TEXT, delta: 'b' },
    ]);
  });

  it('are left out where the step before said nothing', () => {
    const empty = [{ type: 'finish-step' }, { type: 'start-step' }];
    expect(said(...empty, ...empty, ...text('1', 'a'))).toEqual([{ type: TEXT, delta: 'a' }]);
  });

  it('that are begun again end their calls and go on as a new step', () => {
    expect(said(named, { type: 'reset-step' }, ...text('1', 'a')).slice(1)).toEqual([
      { type: UPDATE, ...call, status: 'error', error: 'The step was begun again.' },
      { type: 'message.part.step' },
      { type: TEXT, delta: 'a' },
    ]);
  });
});

describe('texts and reasoning', () => {
  it('are deltas, without empty ones', () => {
    expect(
      said(
        { type: 'reasoning-start', id: 'r' },
        { type: 'reasoning-delta', id: 'r', delta: 'Hm' },
        { type: 'reasoning-end', id: 'r' },
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: '' },
        { type: 'text-delta', id: '1', delta: 'a' },
      ),
    ).toEqual([
      { type: 'message.part.reasoning-delta', delta: 'Hm' },
      { type: TEXT, delta: 'a' },
    ]);
  });

  it('that overlap are written one after the other', () => {
    const deltas = said(
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'a' },
      { type: 'text-start', id: '2' },
      { type: 'text-delta', id: '2', delta: 'x' },
      { type: 'text-delta', id: '1', delta: 'b' },
      { type: 'text-end', id: '1' },
      { type: 'text-delta', id: '2', delta: 'y' },
    );
    expect(deltas.map((event) => (event as { delta: string }).delta)).toEqual(['a', 'b', 'x', 'y']);
  });

  it('that were held back are written when the step or the turn ends', () => {
    const open = [
      { type: 'text-start', id: '1' },
      { type: 'text-start', id: '2' },
      { type: 'text-delta', id: '2', delta: 'x' },
    ];
    for (const end of [{ type: 'finish-step' }, { type: 'start-step' }, { type: 'finish' }]) {
      expect(said(...open, end)[0]).toEqual({ type: TEXT, delta: 'x' });
    }
  });
});

describe('a tool call', () => {
  it('is pending when it is named, then running with its arguments, then completed with its result', () => {
    expect(
      said(named, called, { type: 'tool-output-available', toolCallId: 'c', output: [1] }),
    ).toEqual([
      { type: UPDATE, ...call, status: 'pending' },
      running,
      { type: UPDATE, ...call, status: 'completed', result: [1] },
    ]);
  });

  it('streams its arguments until it is called', () => {
    const delta = (inputTextDelta: string) => ({
      type: 'tool-input-delta',
      toolCallId: 'c',
      inputTextDelta,
    });
    const type = 'message.part.tool-input-delta';
    const [, ...events] = said(delta('{'), named, delta('{'), delta(''), delta('"a":1}'), called);
    expect(events).toEqual([
      { type, ...call, delta: '{' },
      { type, ...call, delta: '"a":1}' },
      running,
    ]);
    expect(said(named, called, delta('x'))).toHaveLength(2);
  });

  it('without arguments runs with none', () => {
    expect(said({ ...called, input: null })).toEqual([{ ...running, args: {} }]);
  });

  it('shows a preliminary output as a call that runs, and ends with it if nothing follows', () => {
    const output = { type: 'tool-output-available', toolCallId: 'c', output: 1, preliminary: true };
    expect(said(called, output, { type: 'finish' }).slice(1, 3)).toEqual([
      { type: UPDATE, ...call, status: 'running', result: 1 },
      { type: UPDATE, ...call, status: 'completed', result: 1 },
    ]);
  });

  it('fails with the text of its error, or with one that says as much', () => {
    const fail = (errorText: string) =>
      said(called, { type: 'tool-output-error', toolCallId: 'c', errorText })[1];
    expect(fail('No.')).toEqual({ type: UPDATE, ...call, status: 'error', error: 'No.' });
    expect(fail('')).toMatchObject({ error: 'The tool failed.' });
  });

  it('fails with its arguments where they were refused', () => {
    const { input } = called as { input: unknown };
    expect(
      said(named, { ...called, type: 'tool-input-error', input, errorText: 'Bad.' })[1],
    ).toEqual({ type: UPDATE, ...call, status: 'error', args: { a: 1 }, error: 'Bad.' });
  });

  it('that was denied fails with the reason that was given', () => {
    const request = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' };
    const denied = { type: 'tool-output-denied', toolCallId: 'c' };
    const answer = { type: 'tool-approval-response', approvalId: 'a', approved: false };
    const error = (...chunks: unknown[]) => said(called, request, ...chunks, denied)[1];
    expect(error({ ...answer, reason: 'Too late.' })).toMatchObject({ error: 'Too late.' });
    expect(error(answer)).toMatchObject({ status: 'error', error: 'It was not approved.' });
  });

  it('that is open when the turn ends fails', () => {
    expect(said(called, { type: 'finish' })[1]).toEqual({
      type: UPDATE,
      ...call,
      status: 'error',
      error: 'The tool gave no result.',
    });
  });

  it('says nothing more when it is over, and nothing if it is unknown', () => {
    const output = { type: 'tool-output-available', toolCallId: 'c', output: 1 };
    expect(said(called, output, output, called, named)).toHaveLength(2);
    expect(said(output, { ...output, preliminary: true })).toEqual([]);
  });
});

describe('other parts', () => {
  it('are sources, files and data', () => {
    expect(
      said(
        { type: 'source-url', sourceId: 's', url: 'https://x.test', title: 'X' },
        { type: 'source-document', sourceId: 'd', mediaType: 'text/plain', title: 'D' },
        { type: 'file', url: 'data:,x', mediaType: 'text/plain' },
        { type: 'reasoning-file', url: 'data:,y', mediaType: 'text/plain' },
        { type: 'data-chart', id: '1', data: [1] },
        { type: 'data-toast', data: 'hi', transient: true },
      ),
    ).toEqual([
      { type: 'message.part.source', sourceId: 's', url: 'https://x.test', title: 'X' },
      { type: 'message.part.source', sourceId: 'd', mediaType: 'text/plain', title: 'D' },
      { type: 'message.part.file', url: 'data:,x', mediaType: 'text/plain' },
      { type: 'message.part.file', url: 'data:,y', mediaType: 'text/plain' },
      { type: 'message.part.data', name: 'chart', id: '1', data: [1] },
      { type: 'message.part.data', name: 'toast', data: 'hi', transient: true },
    ]);
  });

  it('that V2 has no word for are data under the name of their type', () => {
    const parts = [{ type: 'text', text: 'Wait.' }];
    expect(
      said({ type: 'custom', kind: 'a.b' }, { type: 'steering-message', id: 's', parts }),
    ).toEqual([
      { type: 'message.part.data', name: 'custom', data: { kind: 'a.b' } },
      { type: 'message.part.data', name: 'steering-message', id: 's', data: { parts } },
    ]);
  });

  it('are left out where readers of V2 refuse them', () => {
    expect(
      said(
        { type: 'data-queue', id: 'queue', data: { position: 1 } },
        { type: 'data-a b', data: 1 },
        { type: 'source-url', sourceId: '', url: 'https://x.test' },
      ),
    ).toEqual([]);
  });
});

describe('a question', () => {
  const question = (data: object) => ({
    type: 'data-question',
    id: 'q',
    data: { questionId: 'q', text: 'Deploy?', status: 'open', ...data },
  });
  const asked = { type: 'question', questionId: 'q', text: 'Deploy?' };

  it('is asked with its time in whole seconds, rounded down', () => {
    const answerBy = { role: 'owner' };
    const options = ['Yes', { id: 'n', label: 'No' }];
    expect(
      said(question({ options, expiresAt: 1_794_769_643_999, toolCallId: 'c', answerBy })),
    ).toEqual([
      { ...asked, options: ['Yes', 'No'], expiresAt: 1_794_769_643, callId: 'c', answerBy },
    ]);
  });

  it('is asked again when it changes, and only then', () => {
    expect(said(question({}), question({}), question({ text: 'Sure?' }))).toEqual([
      asked,
      { ...asked, text: 'Sure?' },
    ]);
  });

  it.each([
    ['a text', 'Yes', 'Yes'],
    ['yes or no', true, true],
    ['a number', 2, '2'],
    ['a decision with a reason', { approved: false, reason: 'No.' }, false],
  ])('that is answered with %s says the answer', (_name, answer, expected) => {
    expect(said(question({}), question({ status: 'answered', answer }))).toEqual([
      asked,
      { type: 'status', data: { questionAnswered: 'q', answer: expected } },
    ]);
  });

  it('that is answered with nothing V2 can say is answered', () => {
    const settled = { type: 'status', data: { questionAnswered: 'q' } };
    expect(said(question({ status: 'answered', answer: [1] }))).toEqual([asked, settled]);
  });

  it('that expired says so, and nothing after that', () => {
    const chunks = [question({}), question({ status: 'expired' }), question({ status: 'open' })];
    expect(said(...chunks)).toEqual([asked, { type: 'status', data: { questionExpired: 'q' } }]);
  });

  it('that was withdrawn says nothing: for its readers the end of the turn withdraws it', () => {
    expect(said(question({}), question({ status: 'withdrawn' }))).toEqual([asked]);
  });

  it('that nobody answered keeps the end of its call: readers would count that as an answer', () => {
    const noResult = (errorText: string) => ({
      type: 'tool-output-error',
      toolCallId: 'c',
      errorText,
    });
    const about = question({ toolCallId: 'c' });
    const types = (...chunks: unknown[]) =>
      said(called, about, ...chunks, { type: 'finish' }).map((event) => (event as V2Event).type);
    const end = ['message.finalize', 'complete'];
    expect(types(noResult('The tool gave no result.'))).toEqual([UPDATE, 'question', ...end]);
    expect(types()).toEqual([UPDATE, 'question', ...end]);
    expect(types(noResult('Broken.'))).toEqual([UPDATE, 'question', UPDATE, ...end]);
  });

  it('without an id is no question', () => {
    expect(said({ type: 'data-question', data: { text: 'Deploy?' } })).toEqual([]);
  });
});

describe('what the agent is doing', () => {
  it('follows from what it says, and is said when it changes', () => {
    expect(
      statuses(
        { type: 'reasoning-start', id: 'r' },
        { type: 'reasoning-delta', id: 'r', delta: 'Hm' },
        ...text('1', 'a'),
        ...text('2', 'b'),
        named,
        called,
        { type: 'tool-output-available', toolCallId: 'c', output: 1 },
        ...text('3', 'c'),
      ),
    ).toEqual(['thinking', 'streaming', 'tool_calling bash', 'streaming']);
  });

  it('is what the agent says of itself', () => {
    const status = (data: object) => ({ type: 'data-agent-status', data, transient: true });
    expect(
      statuses(
        status({ status: 'thinking' }),
        status({ status: 'thinking', detail: 'hard' }),
        status({ status: 'idle' }),
        ...text('1', 'a'),
        status({ status: 'streaming' }),
        status({ status: 5 }),
      ),
    ).toEqual(['thinking', 'thinking hard', 'idle', 'streaming']);
  });

  it('comes before the words that show it', () => {
    const [, , status, delta] = encode([...START, ...text('1', 'a')]);
    expect([status?.type, delta?.type]).toEqual(['agentStatus', TEXT]);
  });
});

describe('metadata', () => {
  const metadata = (messageMetadata: object) => ({ type: 'message-metadata', messageMetadata });

  it('is told at the end: usage once, and what V2 has no word for as data', () => {
    const usage = { inputTokens: 3, outputTokens: 4 };
    expect(
      said(
        metadata({ usage: { inputTokens: 1 }, cost: { eur: 1 } }),
        metadata({ usage, cost: { usd: 2 } }),
        { type: 'finish', messageMetadata: { outcome: 'finished', reason: 'x', code: 'y' } },
      ).slice(0, 2),
    ).toEqual([
      { type: 'usage-report', entries: [usage] },
      {
        type: 'message.part.data',
        name: 'message-metadata',
        id: 'message-metadata',
        data: { cost: { eur: 1, usd: 2 } },
      },
    ]);
  });

  it('tells that an answer was cut short', () => {
    const [data] = said({ type: 'finish', finishReason: 'length' });
    expect(data).toMatchObject({ name: 'message-metadata', data: { finishReason: 'length' } });
  });
});

describe('the end of a turn', () => {
  const end = (...chunks: unknown[]) => said(...chunks).at(-2);
  const finish = (messageMetadata: object) => ({ type: 'finish', messageMetadata });
  const failed = (messageMetadata: object) => ({ type: 'message-metadata', messageMetadata });
  const error = { type: 'error', errorText: 'It broke.' };

  it.each<[string, unknown[], object]>([
    ['finished', [finish({ outcome: 'finished' })], { reason: 'end_turn' }],
    ['paused', [finish({ outcome: 'paused' })], { reason: 'end_turn' }],
    ['stopped', [finish({ outcome: 'stopped', reason: 'user' })], { reason: 'canceled' }],
    [
      'failed',
      [failed({ outcome: 'failed', code: 'run-failed' }), error],
      { reason: 'error', error: 'It broke.', code: 'run-failed' },
    ],
    [
      'lost',
      [failed({ outcome: 'lost' }), error],
      { reason: 'error', error: 'It broke.', code: 'turn-lost' },
    ],
    [
      'failed without a text',
      [finish({ outcome: 'failed', code: 'x' })],
      { reason: 'error', code: 'x' },
    ],
    ['not told', [{ type: 'finish' }], { reason: 'end_turn' }],
    ['not told, behind an error', [error], { reason: 'error', error: 'It broke.' }],
    [
      'not told, with an error for its reason',
      [{ type: 'finish', finishReason: 'error' }],
      { reason: 'error' },
    ],
  ])('is one event: %s', (_name, chunks, expected) => {
    expect(end(...chunks)).toEqual({ type: 'message.finalize', ...expected });
  });

  it('is followed by `complete`, and by nothing else', () => {
    const events = said(error, { type: 'finish' }, ...text('1', 'late'));
    expect(events.map((event) => (event as V2Event).type)).toEqual([
      'message.finalize',
      'complete',
    ]);
  });
});

describe('what is no chunk', () => {
  it('gives no event', () => {
    const odd: unknown[] = [
      null,
      undefined,
      'text',
      [],
      { type: 5 },
      { type: 'new' },
      { type: 'text-delta', id: '1' },
      { type: 'tool-input-available', toolCallId: 5, toolName: 'x', input: 1 },
      { type: 'abort' },
    ];
    expect(said(...odd)).toEqual([]);
  });

  it('never makes the encoder throw', () => {
    const anything = fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true });
    const type = fc.constantFrom(
      ...[
        'start',
        'finish',
        'error',
        'text-delta',
        'tool-input-available',
        'data-question',
        'file',
      ],
      ...['tool-output-available', 'message-metadata', 'source-url', 'data-agent-status', 'custom'],
    );
    const fields = ['id', 'delta', 'data', 'toolCallId', 'toolName', 'input', 'output', 'url'];
    const odd = fc.record(
      {
        type,
        messageMetadata: anything,
        errorText: anything,
        ...Object.fromEntries(fields.map((field) => [field, anything])),
      },
      { requiredKeys: ['type'] },
    );
    const thrower = {
      get type(): string {
        throw new Error('unreadable');
      },
    };
    fc.assert(
      fc.property(fc.array(fc.oneof(odd, anything, fc.constant(thrower))), (chunks) => {
        const events = encode(chunks as Chunk[]);
        expect(() => JSON.stringify(events)).not.toThrow();
      }),
      { numRuns: 500 },
    );
  });
});
