import { describe, expect, it } from 'vitest';
import { CHUNK_FIXTURES, encodeAll } from '../../../test/contract-fixtures.ts';
import type { Chunk } from '../../core/chunks.ts';
import { RUN_FAILED, TURN_LOST, TURN_TOO_LARGE } from '../../core/errors.ts';
import { encodeContract } from './encode.ts';
import { type ContractEvent, toContractSse } from './events.ts';

const messageId = 'm';
const start: Chunk = { type: 'start', messageId };
const providerMetadata = { test: { said: 1 } };

/** What is said of the last chunk after a start and the others. */
function lastOf(chunks: Chunk[]): ContractEvent[] {
  const encode = encodeContract();
  encode(start);
  return chunks.map((chunk) => encode(chunk)).at(-1) ?? [];
}

const call: Chunk = {
  type: 'tool-input-available',
  toolCallId: 'c',
  toolName: 'search',
  input: { q: 1 },
};
const seed = { toolCallId: 'c', toolName: 'search', messageId };
const streaming = { ...seed, state: 'input-streaming' };
const began: Chunk = { type: 'tool-input-start', toolCallId: 'c', toolName: 'search' };
const text: Chunk = { type: 'text-start', id: 't' };
const loose = (chunk: object) => chunk as Chunk;

const ROWS: [name: string, chunks: Chunk[], events: object[]][] = [
  ['a text that begins', [text], []],
  [
    'a text that begins with more than that',
    [{ ...text, providerMetadata }],
    [{ type: 'text.start', data: { messageId, partId: 't', providerMetadata } }],
  ],
  [
    'a delta',
    [text, { type: 'text-delta', id: 't', delta: 'a' }],
    [{ type: 'message.delta', data: { messageId, delta: 'a', partId: 't' } }],
  ],
  [
    'a delta that says more',
    [text, { type: 'text-delta', id: 't', delta: 'a', providerMetadata }],
    [{ type: 'message.delta', data: { messageId, delta: 'a', partId: 't', providerMetadata } }],
  ],
  [
    'the end of a text',
    [
      text,
      { type: 'text-delta', id: 't', delta: 'a' },
      loose({ type: 'text-end', id: 't', citations: [], providerMetadata }),
    ],
    [{ type: 'text.end', data: { messageId, partId: 't', citations: [], providerMetadata } }],
  ],
  [
    'the end of a text that never said anything',
    [text, { type: 'text-end', id: 't' }],
    [
      { type: 'text.start', data: { messageId, partId: 't' } },
      { type: 'text.end', data: { messageId, partId: 't' } },
    ],
  ],
  [
    'another part before the first delta',
    [text, call],
    [
      { type: 'text.start', data: { messageId, partId: 't' } },
      { type: 'tool.call', data: { ...seed, input: { q: 1 }, state: 'input-available' } },
    ],
  ],
  [
    'a text before the first delta of another with the same id',
    [{ type: 'reasoning-start', id: 't' }, text],
    [{ type: 'reasoning.start', data: { messageId, partId: 't' } }],
  ],
  [
    'a delta of another text than the one that begins',
    [text, { type: 'text-delta', id: 'other', delta: 'a' }],
    [
      { type: 'text.start', data: { messageId, partId: 't' } },
      { type: 'message.delta', data: { messageId, delta: 'a', partId: 'other' } },
    ],
  ],
  [
    'reasoning',
    [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
    ],
    [{ type: 'reasoning.delta', data: { messageId, delta: 'hm', partId: 'r' } }],
  ],
  [
    'the end of reasoning',
    [
      { type: 'reasoning-start', id: 'r', providerMetadata },
      { type: 'reasoning-end', id: 'r' },
    ],
    [{ type: 'reasoning.end', data: { messageId, partId: 'r' } }],
  ],
  [
    'an input that begins',
    [loose({ ...began, dynamic: true, title: 'T', inputEncoding: 'text' })],
    [
      {
        type: 'tool.delta',
        data: { ...streaming, delta: '', dynamic: true, title: 'T', inputEncoding: 'text' },
      },
    ],
  ],
  [
    'an input that begins again',
    [began, began],
    [{ type: 'tool.delta', data: { ...streaming, delta: '', restart: true } }],
  ],
  [
    'an input that streams',
    [began, { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{' }],
    [{ type: 'tool.delta', data: { ...streaming, delta: '{' } }],
  ],
  [
    'a call',
    [{ ...call, providerExecuted: true, providerMetadata } as Chunk],
    [
      {
        type: 'tool.call',
        data: {
          ...seed,
          input: { q: 1 },
          state: 'input-available',
          providerExecuted: true,
          callProviderMetadata: providerMetadata,
        },
      },
    ],
  ],
  [
    'a refused input',
    [{ type: 'tool-input-error', toolCallId: 'c', toolName: 'search', input: 1, errorText: 'no' }],
    [
      {
        type: 'tool.result',
        data: { ...seed, input: 1, errorText: 'no', state: 'output-error', inputError: true },
      },
    ],
  ],
  [
    'what the provider says of an output',
    [
      call,
      { type: 'tool-output-available', toolCallId: 'c', output: 1, providerMetadata } as Chunk,
    ],
    [
      {
        type: 'tool.result',
        data: {
          ...seed,
          output: 1,
          state: 'output-available',
          resultProviderMetadata: providerMetadata,
        },
      },
    ],
  ],
  [
    'an output',
    [call, { type: 'tool-output-available', toolCallId: 'c', output: null, preliminary: true }],
    [
      {
        type: 'tool.result',
        data: { ...seed, output: null, state: 'output-available', preliminary: true },
      },
    ],
  ],
  [
    'a failed tool',
    [call, { type: 'tool-output-error', toolCallId: 'c', errorText: 'no' }],
    [{ type: 'tool.result', data: { ...seed, errorText: 'no', state: 'output-error' } }],
  ],
  [
    'a denied tool',
    [call, { type: 'tool-output-denied', toolCallId: 'c' }],
    [{ type: 'tool.result', data: { ...seed, state: 'output-denied' } }],
  ],
  [
    'the answer to a call of the message that goes on',
    [{ type: 'tool-output-available', toolCallId: 'old', output: 1 }],
    [
      {
        type: 'tool.result',
        data: {
          toolCallId: 'old',
          output: 1,
          state: 'output-available',
          messageId,
          continued: true,
        },
      },
    ],
  ],
  [
    'an approval that is asked for',
    [
      call,
      loose({ type: 'tool-approval-request', toolCallId: 'c', approvalId: 'a', signature: 's' }),
    ],
    [
      {
        type: 'tool.approval',
        data: {
          toolCallId: 'c',
          state: 'approval-requested',
          messageId,
          approval: { id: 'a', signature: 's' },
        },
      },
    ],
  ],
  [
    'an approval',
    [
      call,
      { type: 'tool-approval-request', toolCallId: 'c', approvalId: 'a' },
      { type: 'tool-approval-response', approvalId: 'a', approved: false, reason: 'no' },
    ],
    [
      {
        type: 'tool.approval',
        data: {
          toolCallId: 'c',
          state: 'approval-responded',
          messageId,
          approval: { id: 'a', approved: false, reason: 'no' },
        },
      },
    ],
  ],
  [
    'a source',
    [{ type: 'source-url', sourceId: 's', url: 'https://a.example', title: 'A' }],
    [{ type: 'source', data: { sourceId: 's', url: 'https://a.example', title: 'A', messageId } }],
  ],
  [
    'a source behind an answer',
    [
      call,
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
      { type: 'source-url', sourceId: 's', url: 'https://a.example', providerMetadata },
    ],
    [
      {
        type: 'source',
        data: {
          sourceId: 's',
          url: 'https://a.example',
          toolCallId: 'c',
          messageId,
          providerMetadata,
        },
      },
    ],
  ],
  [
    'a source in the step after an answer',
    [
      call,
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
      { type: 'start-step' },
      { type: 'source-url', sourceId: 's', url: 'https://a.example' },
    ],
    [{ type: 'source', data: { sourceId: 's', url: 'https://a.example', messageId } }],
  ],
  [
    'a step that begins',
    [{ type: 'start-step' }],
    [{ type: 'step', data: { messageId, state: 'start' } }],
  ],
  [
    'a step that ends',
    [{ type: 'finish-step' }],
    [{ type: 'step', data: { messageId, state: 'finish' } }],
  ],
  [
    'a step that is taken back',
    [{ type: 'reset-step' }],
    [{ type: 'step', data: { messageId, state: 'reset' } }],
  ],
  [
    'a question',
    [{ type: 'data-question', id: 'q', data: { questionId: 'q', text: 'Well?', status: 'open' } }],
    [{ type: 'question', data: { messageId, questionId: 'q', text: 'Well?', status: 'open' } }],
  ],
  [
    'a question that is not known by its own id',
    [{ type: 'data-question', data: { questionId: 'q' } }],
    [{ type: 'data', data: { messageId, name: 'question', data: { questionId: 'q' } } }],
  ],
  [
    'a question with a field that the event needs for itself',
    [{ type: 'data-question', id: 'q', data: { questionId: 'q', messageId: 'x' } }],
    [
      {
        type: 'data',
        data: { messageId, name: 'question', id: 'q', data: { questionId: 'q', messageId: 'x' } },
      },
    ],
  ],
  [
    'a status',
    [
      {
        type: 'data-agent-status',
        data: { status: 'thinking', detail: 'hard' },
        transient: true,
      },
    ],
    [{ type: 'status', data: { state: 'thinking', message: 'hard' } }],
  ],
  ...[
    { data: { status: 'thinking' } },
    { data: { status: 'aborted' }, transient: true },
    { data: { status: 'thinking', more: 1 }, transient: true },
    { id: 's', data: { status: 'thinking' }, transient: true },
    { data: 'thinking', transient: true },
  ].map(
    (said) =>
      [
        `what is not quite a status: ${JSON.stringify(said)}`,
        [{ type: 'data-agent-status', ...said }],
        [{ type: 'data', data: { messageId, name: 'agent-status', ...said } }],
      ] satisfies [string, Chunk[], object[]],
  ),
  [
    'data',
    [{ type: 'data-progress', id: 'p', data: null, transient: false }],
    [
      {
        type: 'data',
        data: { messageId, name: 'progress', id: 'p', data: null, transient: false },
      },
    ],
  ],
  [
    'an abort',
    [loose({ type: 'abort', reason: 'enough' })],
    [{ type: 'status', data: { state: 'aborted', message: 'enough' } }],
  ],
  [
    'metadata',
    [{ type: 'message-metadata', messageMetadata: { a: 1 } }],
    [{ type: 'metadata', data: { messageId, metadata: { a: 1 } } }],
  ],
  [
    'a second start with metadata',
    [{ type: 'start', messageId: 'other', messageMetadata: { a: 1 } }],
    [{ type: 'metadata', data: { messageId, metadata: { a: 1 } } }],
  ],
  ['a second start without', [{ type: 'start', messageId: 'other' }], []],
  [
    'any other chunk',
    [{ type: 'file', url: 'https://a.example/f', mediaType: 'image/png' }],
    [
      {
        type: 'part',
        data: {
          messageId,
          part: { type: 'file', url: 'https://a.example/f', mediaType: 'image/png' },
        },
      },
    ],
  ],
];

describe('what is said of a chunk', () => {
  it.each(ROWS)('%s', (_name, chunks, events) => {
    expect(lastOf(chunks)).toEqual(events);
  });
});

describe('the order of events', () => {
  it('[CT-NOTE-3] begins with meta and the message, whatever comes first', () => {
    const meta = { runId: 'r', model: 'gpt-5.1' };
    const createdAt = '2026-01-11T18:22:01.000Z';
    const encode = encodeContract({ meta, createdAt, generateMessageId: () => 'minted' });
    expect(encode(call).map(({ type }) => type)).toEqual(['meta', 'message.start', 'tool.call']);
    expect(encode({ type: 'start', messageId: 'late' })).toEqual([]);

    const other = encodeContract({ meta, createdAt });
    expect(other({ type: 'start', messageId: 'm', messageMetadata: { a: 1 } })).toEqual([
      { type: 'meta', data: meta },
      {
        type: 'message.start',
        data: { messageId: 'm', role: 'assistant', createdAt, metadata: { a: 1 } },
      },
    ]);
    expect(encodeContract()(start)[0]).toEqual({ type: 'meta', data: {} });
  });

  it('ends with the message and done, and nothing follows', () => {
    const encode = encodeContract({ meta: { runId: 'r' } });
    encode(start);
    encode({ type: 'message-metadata', messageMetadata: { usage: { inputTokens: 1 } } });
    const messageMetadata = { outcome: 'finished', usage: { outputTokens: 2 } };
    // Clients put only the outermost fields together: what is said is said whole.
    const usage = { inputTokens: 1, outputTokens: 2 };
    expect(encode({ type: 'finish', finishReason: 'length', messageMetadata })).toEqual([
      { type: 'message.end', data: { messageId, metadata: { outcome: 'finished', usage } } },
      { type: 'done', data: { runId: 'r', finishReason: 'length', usage } },
    ]);
    expect(encode(call)).toEqual([]);
    expect(encode({ type: 'finish' })).toEqual([]);
    expect(encode.end()).toEqual([]);
  });

  it('says stop where no reason is told', () => {
    expect(lastOf([{ type: 'finish' }])).toEqual([
      { type: 'message.end', data: { messageId } },
      { type: 'done', data: { finishReason: 'stop' } },
    ]);
  });

  it.each([
    ['nothing was told', {}, 'server_error', true],
    ['the code is not ours', { code: 'quota' }, 'quota', true],
    ['trying again helps', { outcome: 'failed', code: RUN_FAILED.code }, RUN_FAILED.code, true],
    ['trying again does not', { code: TURN_TOO_LARGE.code }, TURN_TOO_LARGE.code, false],
    ['the producer vanished', { outcome: 'lost' }, TURN_LOST.code, true],
  ])('ends with an error and no done: %s', (_name, messageMetadata, code, retryable) => {
    const encode = encodeContract();
    encode(start);
    encode({ type: 'message-metadata', messageMetadata });
    expect(encode({ type: 'error', errorText: 'bad' })).toEqual([
      { type: 'error', data: { message: 'bad', code, retryable, terminal: true } },
    ]);
    expect(encode({ type: 'finish', finishReason: 'error' })).toEqual([]);
    expect(encode.end()).toEqual([]);
  });

  it('tells of a source that just stops', () => {
    const { userMessage: message, code } = TURN_LOST;
    const error = { type: 'error', data: { message, code, retryable: true, terminal: true } };
    const encode = encodeContract();
    encode(start);
    encode(text);
    expect(encode.end()).toEqual([{ type: 'text.start', data: { messageId, partId: 't' } }, error]);
    expect(encode.end()).toEqual([]);
    expect(encode(call)).toEqual([]);
    expect(encodeContract().end()).toEqual([{ type: 'meta', data: {} }, error]);
  });

  it('gives nothing for what is no chunk', () => {
    const encode = encodeContract();
    for (const junk of [null, undefined, 1, 'start', [], {}, { type: 1 }]) {
      expect(encode(junk as unknown as Chunk)).toEqual([]);
    }
  });

  it.each(CHUNK_FIXTURES)('is kept in fixture $name', ({ chunks }) => {
    const encode = encodeContract();
    const types = [...encodeAll(chunks, encode), ...encode.end()].map(({ type }) => type);
    expect(types.slice(0, 2)).toEqual(['meta', 'message.start']);
    expect(types.filter((type) => type === 'meta' || type === 'message.start')).toHaveLength(2);
    const ends = types.filter((type) => type === 'done' || type === 'error');
    expect(ends).toEqual([types.at(-1)]);
    const hasFailed = chunks.some(({ type }) => type === 'error');
    expect(types.at(-1)).toBe(hasFailed ? 'error' : 'done');
  });
});

describe('a frame', () => {
  const event: ContractEvent = { type: 'message.end', data: { messageId: 'm\n1' } };

  it('names its event and its id', () => {
    const data = 'data: {"messageId":"m\\n1"}\n\n';
    expect(toContractSse(event)).toBe(`event: message.end\n${data}`);
    expect(toContractSse(event, 't:1')).toBe(`event: message.end\nid: t:1\n${data}`);
  });

  it.each(['a\nb', 'a\rb', 'a\0b'])('leaves out an id that no frame can carry', (id) => {
    expect(toContractSse(event, id)).toBe(toContractSse(event));
  });
});

describe('fields of a chunk that no client knows', () => {
  it('do not pass for what an event says', () => {
    const own = { messageId: 'other', state: 'x', delta: 'x', restart: true, continued: true };
    const call = { toolCallId: 'c', toolName: 'search' };
    const chunks = [
      { type: 'start', messageId: 'm' },
      { type: 'text-start', id: 't', ...own },
      { type: 'text-end', id: 't', ...own },
      { type: 'tool-input-start', ...call, ...own },
      { type: 'tool-input-available', ...call, input: {}, ...own },
      { type: 'tool-output-available', toolCallId: 'c', output: 1, ...own, inputError: true },
    ] as Chunk[];
    const encode = encodeContract();
    const [, , ...events] = chunks.flatMap((chunk) => encode(chunk));
    expect(events.map(({ data }) => data)).toMatchObject([
      { messageId: 'm', partId: 't' },
      { messageId: 'm', partId: 't' },
      { messageId: 'm', delta: '', state: 'input-streaming' },
      { messageId: 'm', state: 'input-available' },
      { messageId: 'm', state: 'output-available' },
    ]);
    const tools = events.slice(2).map(({ data }) => Object.keys(data));
    for (const name of ['restart', 'continued', 'inputError']) {
      expect(tools.flat()).not.toContain(name);
    }
  });
});
