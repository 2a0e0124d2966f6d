import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  call,
  called,
  encode,
  eventsOf,
  named,
  START,
  TEXT,
  text,
  UPDATE,
} from '../../../test/v2-events.ts';
import type { Chunk } from '../../core/chunks.ts';
import type { V2Event } from './events.ts';

const statuses = (...chunks: unknown[]) =>
  encode([...START, ...(chunks as Chunk[])]).flatMap((event) =>
    event.type === 'agentStatus'
      ? [event.detail === undefined ? event.status : `${event.status} ${event.detail}`]
      : [],
  );

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
  it('is created once, also without a `start` chunk', () => {
    const isCreate = ({ type }: V2Event) => type === 'message.create';
    expect(encode([...START, ...START]).filter(isCreate)).toHaveLength(1);
    expect(encode(text('1', 'a')).filter(isCreate)).toHaveLength(1);
  });
});

describe('steps', () => {
  it('begin with an event, but for the first', () => {
    expect(
      eventsOf(
        ...text('1', 'a'),
        { type: 'finish-step' },
        { type: 'start-step' },
        ...text('2', 'b'),
      ),
    ).toEqual([
      { type: TEXT, delta: 'a' },
      { type: 'message.part.step' },
      { type: TEXT, delta: 'b' },
    ]);
  });

  it('are left out where the step before is empty', () => {
    const empty = [{ type: 'finish-step' }, { type: 'start-step' }];
    expect(eventsOf(...empty, ...empty, ...text('1', 'a'))).toEqual([{ type: TEXT, delta: 'a' }]);
  });

  it('that are begun again leave the calls of earlier steps open', () => {
    const events = eventsOf(called, { type: 'start-step' }, { type: 'reset-step' });
    expect(events.map((event) => (event as V2Event).type)).toEqual([UPDATE, 'message.part.step']);
  });

  it('that are begun again end their calls and go on as a new step', () => {
    expect(eventsOf(named, { type: 'reset-step' }, ...text('1', 'a')).slice(1)).toEqual([
      { type: UPDATE, ...call, status: 'error', error: 'The step was begun again.' },
      { type: 'message.part.step' },
      { type: TEXT, delta: 'a' },
    ]);
  });
});

describe('texts and reasoning', () => {
  it('are deltas, without empty ones', () => {
    expect(
      eventsOf(
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
    const deltas = eventsOf(
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
      expect(eventsOf(...open, end)[0]).toEqual({ type: TEXT, delta: 'x' });
    }
  });
});

describe('other parts', () => {
  it('are sources, files and data', () => {
    expect(
      eventsOf(
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

  it('without a V2 event are data under the name of their type', () => {
    const parts = [{ type: 'text', text: 'Wait.' }];
    expect(
      eventsOf({ type: 'custom', kind: 'a.b' }, { type: 'steering-message', id: 's', parts }),
    ).toEqual([
      { type: 'message.part.data', name: 'custom', data: { kind: 'a.b' } },
      { type: 'message.part.data', name: 'steering-message', id: 's', data: { parts } },
    ]);
  });

  it('are left out where readers of V2 refuse them', () => {
    expect(
      eventsOf(
        { type: 'data-queue', id: 'queue', data: { position: 1 } },
        { type: 'data-a b', data: 1 },
        { type: 'source-url', sourceId: '', url: 'https://x.test' },
      ),
    ).toEqual([]);
  });
});

describe('what the agent is doing', () => {
  it('follows from the chunks, and is sent only when it changes', () => {
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

  it('is what its own status chunks name', () => {
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

  it('is sent at the end: usage once, and fields without a V2 event as data', () => {
    const usage = { inputTokens: 3, outputTokens: 4 };
    expect(
      eventsOf(
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

  it('has the finish reason of an answer that was cut short', () => {
    const [data] = eventsOf({ type: 'finish', finishReason: 'length' });
    expect(data).toMatchObject({ name: 'message-metadata', data: { finishReason: 'length' } });
  });
});

describe('the end of a turn', () => {
  const end = (...chunks: unknown[]) => eventsOf(...chunks).at(-2);
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
    ['without metadata', [{ type: 'finish' }], { reason: 'end_turn' }],
    ['without metadata, with an error chunk', [error], { reason: 'error', error: 'It broke.' }],
    [
      'without metadata, with the finish reason error',
      [{ type: 'finish', finishReason: 'error' }],
      { reason: 'error' },
    ],
  ])('is one event: %s', (_name, chunks, expected) => {
    expect(end(...chunks)).toEqual({ type: 'message.finalize', ...expected });
  });

  it('is followed by `complete`, and by nothing else', () => {
    const events = eventsOf(error, { type: 'finish' }, ...text('1', 'late'));
    expect(events.map((event) => (event as V2Event).type)).toEqual([
      'message.finalize',
      'complete',
    ]);
  });
});

describe('what is no chunk or no JSON', () => {
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
    expect(eventsOf(...odd)).toEqual([]);
  });

  it.each<[string, object]>([
    ['metadata', { type: 'message-metadata', messageMetadata: { cost: 1n, usage: { a: 1n } } }],
    ['data', { type: 'data-chart', data: 1n }],
    ['a question', { type: 'data-question', id: 'q', data: { text: 'Sure?', answerBy: 1n } }],
    ['arguments', { ...called, input: 1n }],
  ])('is made fit for JSON within a chunk: %s', (_name, chunk) => {
    const events = eventsOf(called, chunk, { type: 'finish' });
    expect(events.length).toBeGreaterThan(4);
    expect(JSON.parse(JSON.stringify(events))).toEqual(events);
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
