import { EventSchema } from '@ag-ui/core/schemas';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createHttpAgent,
  problemIn,
  saidBy,
  saidIn,
  watchWarnings,
} from '../../../test/ag-ui-client.ts';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import { CHUNK_FIXTURES } from '../../../test/contract-fixtures.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import { type AgUiEvent, encodeAgUi, toAgUiSse } from './index.ts';

const RUN = { threadId: 'c1', runId: 'r1', generateMessageId: () => 'm' };
const START = { type: 'RUN_STARTED', threadId: 'c1', runId: 'r1', protocolVersion: '1.0' };

function encodeAll(chunks: Chunk[]): AgUiEvent[] {
  const encode = encodeAgUi(RUN);
  return [...chunks.flatMap(encode), ...encode.end()];
}

/** What the chunks become, between the beginning and the end of a run. */
function encodeSome(...chunks: Chunk[]): AgUiEvent[] {
  const encode = encodeAgUi(RUN);
  encode({ type: 'start', messageId: 'm' });
  return chunks.flatMap(encode);
}

/** An unmodified `HttpAgent` that is answered with these chunks. */
async function receive(chunks: Chunk[]) {
  const body = encodeAll(chunks)
    .map((event) => toAgUiSse(event))
    .join('');
  const client = createHttpAgent({
    url: 'http://test.invalid',
    fetch: async () => new Response(body),
  });
  const { newMessages } = await client.agent.runAgent();
  return { ...client, newMessages };
}

describe('chunks as AG-UI events', () => {
  it('pass AG-UI’s schemas and verifyEvents for every recorded turn, whole and cut in a dozen places', async () => {
    const finish = watchWarnings();
    for (const { name, chunks } of CHUNK_FIXTURES) {
      // Every event once: what a cut adds is checked with it.
      for (const event of encodeAll(chunks))
        expect(EventSchema.safeParse(event).error).toBeUndefined();
      const every = Math.max(1, Math.floor(chunks.length / 12));
      for (let length = 0; length <= chunks.length; length += every) {
        expect(
          await problemIn(encodeAll(chunks.slice(0, length))),
          `${name} ${length}`,
        ).toBeUndefined();
      }
      expect(await problemIn(encodeAll(chunks)), name).toBeUndefined();
    }
    finish();
  });

  it('pass them for any chunks that a client accepts, cut and forked anywhere', async () => {
    const finish = watchWarnings();
    await fc.assert(
      fc.asyncProperty(chunkSequences(7), fc.nat(), async (chunks, pick) => {
        const cut = chunks.slice(0, pick % (chunks.length + 1));
        const encode = encodeAgUi(RUN);
        const before = cut.flatMap(encode);
        const fork = encode.fork();
        expect(await problemIn([...before, ...encode.fork().end()])).toBeUndefined();
        const rest = chunks.slice(cut.length);
        const after = [...rest.flatMap(encode), ...encode.end()];
        expect([...rest.flatMap(fork), ...fork.end()]).toEqual(after);
        expect(await problemIn([...before, ...after])).toBeUndefined();
      }),
      { numRuns: 100 },
    );
    finish();
  });

  it('pass them when the run is interrupted anywhere, and so does the run that continues it', async () => {
    await fc.assert(
      fc.asyncProperty(chunkSequences(7, 'whole'), fc.nat(), async (chunks, pick) => {
        const cut = chunks.slice(0, pick % chunks.length);
        const encode = encodeAgUi(RUN);
        const before = cut.flatMap(encode);
        if (before.some(({ type }) => type === 'RUN_ERROR')) return;
        const interrupts = [{ id: 'q', reason: 'question' }];
        expect(
          await problemIn([...before, ...encode.fork().pause({ type: 'interrupt', interrupts })]),
        ).toBeUndefined();
        const rest = [...encode.reopen(), ...chunks.slice(cut.length).flatMap(encode)];
        const start = cut.length > 0 ? [START as AgUiEvent] : [];
        expect(await problemIn([...start, ...rest])).toBeUndefined();
      }),
      { numRuns: 50 },
    );
  });

  it('leave out a result that the client has given, and keep the ids of the messages after it', () => {
    const encode = encodeAgUi({ ...RUN, knownResults: new Map([['c', '{"n":1}']]) });
    const call = { toolCallId: 'c', toolName: 'count' };
    const chunks: Chunk[] = [
      { type: 'start', messageId: 'm' },
      { type: 'tool-input-available', ...call, input: {} },
      { type: 'tool-output-available', toolCallId: 'c', output: { n: 1 } },
      { type: 'text-start', id: 't' },
    ];
    const events = chunks.flatMap(encode);
    expect(events.map(({ type }) => type)).not.toContain('TOOL_CALL_RESULT');
    expect(events.at(-1)).toMatchObject({ type: 'TEXT_MESSAGE_START', messageId: 'm:3' });
  });

  it('never throw, whatever is encoded', () => {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    const anything = fc.oneof(fc.anything({ withBigInt: true }), fc.constant(cyclic));
    const chunk = fc.record(
      {
        type: fc.constantFrom(
          'text-delta',
          'tool-input-delta',
          'tool-input-available',
          'tool-output-available',
          'start',
          'finish',
          'data-x',
        ),
        ...{ id: fc.anything(), toolCallId: fc.anything(), delta: fc.anything() },
        ...{ inputTextDelta: fc.string(), messageMetadata: fc.anything() },
        ...{ input: anything, output: anything },
      },
      { requiredKeys: ['type'] },
    );
    fc.assert(fc.property(fc.array(chunk), (chunks) => void encodeAll(chunks as Chunk[])));
  });

  it('give HttpAgent the text and the tools that an AI SDK client has, for every recorded turn', async () => {
    const finish = watchWarnings();
    for (const { name, chunks } of CHUNK_FIXTURES) {
      const { newMessages } = await receive(chunks);
      expect(saidBy(newMessages), name).toEqual(saidIn(await foldChunks(chunks)));
    }
    finish();
  });
});

describe('what each chunk becomes', () => {
  const call = { toolCallId: 'c', toolName: 'search' };
  const START_CALL = { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'search' };
  const END_CALL = { type: 'TOOL_CALL_END', toolCallId: 'c' };
  const CASES: [name: string, chunks: Chunk[], events: object[]][] = [
    [
      'two texts: two messages, the first with the answer’s id',
      [
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: 'a' },
        { type: 'text-delta', id: '1', delta: '' },
        { type: 'text-end', id: '1' },
        { type: 'text-start', id: '2', providerMetadata: { p: { x: 1 } } },
      ],
      [
        { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' },
        { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'a' },
        { type: 'TEXT_MESSAGE_END', messageId: 'm' },
        {
          type: 'TEXT_MESSAGE_START',
          messageId: 'm:2',
          role: 'assistant',
          metadata: { providerMetadata: { p: { x: 1 } } },
        },
      ],
    ],
    [
      'reasoning: a span with one message',
      [
        { type: 'reasoning-start', id: '1' },
        { type: 'reasoning-delta', id: '1', delta: 'a' },
        { type: 'reasoning-end', id: '1' },
      ],
      [
        { type: 'REASONING_START', messageId: 'm' },
        { type: 'REASONING_MESSAGE_START', messageId: 'm', role: 'reasoning' },
        { type: 'REASONING_MESSAGE_CONTENT', messageId: 'm', delta: 'a' },
        { type: 'REASONING_MESSAGE_END', messageId: 'm' },
        { type: 'REASONING_END', messageId: 'm' },
      ],
    ],
    [
      'an input that streamed: its arguments as they came',
      [
        { type: 'tool-input-start', ...call, providerExecuted: true },
        { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"q": ' },
        { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '1}' },
        { type: 'tool-input-available', ...call, input: { q: 1 } },
      ],
      [
        { ...START_CALL, parentMessageId: 'm', metadata: { providerExecuted: true } },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{"q": ' },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '1}' },
        END_CALL,
      ],
    ],
    [
      'an input that differs from what streamed: sent beside the arguments',
      [
        { type: 'tool-input-start', ...call },
        { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"q":2' },
        { type: 'tool-input-available', ...call, input: { q: 1 } },
      ],
      [
        { ...START_CALL, parentMessageId: 'm' },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{"q":2' },
        { type: 'CUSTOM', name: 'tool-input-available', value: { ...call, input: { q: 1 } } },
        END_CALL,
      ],
    ],
    [
      'parallel calls behind a text: in the text’s message, their results behind them',
      [
        { type: 'text-start', id: '1' },
        { type: 'text-end', id: '1' },
        { type: 'tool-input-available', ...call, input: {} },
        { type: 'tool-input-available', toolCallId: 'd', toolName: 'look', input: 1 },
        { type: 'tool-output-available', toolCallId: 'c', output: 1, preliminary: true },
        { type: 'tool-output-available', toolCallId: 'c', output: { r: 1 } },
        { type: 'tool-output-error', toolCallId: 'd', errorText: 'no' },
      ],
      [
        { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' },
        { type: 'TEXT_MESSAGE_END', messageId: 'm' },
        { ...START_CALL, parentMessageId: 'm' },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{}' },
        END_CALL,
        { type: 'TOOL_CALL_START', toolCallId: 'd', toolCallName: 'look', parentMessageId: 'm' },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'd', delta: '1' },
        { type: 'TOOL_CALL_END', toolCallId: 'd' },
        {
          type: 'CUSTOM',
          name: 'tool-output-available',
          value: { toolCallId: 'c', output: 1, preliminary: true },
        },
        {
          type: 'TOOL_CALL_RESULT',
          messageId: 'm:2',
          toolCallId: 'c',
          content: '{"r":1}',
          role: 'tool',
        },
        {
          type: 'TOOL_CALL_RESULT',
          messageId: 'm:3',
          toolCallId: 'd',
          content: 'no',
          role: 'tool',
          metadata: { isError: true },
        },
      ],
    ],
    [
      'a stop: everything closed, and a cancelled run',
      [
        { type: 'start-step' },
        { type: 'text-start', id: '1' },
        { type: 'abort' },
        { type: 'finish', messageMetadata: { outcome: 'stopped' } },
        { type: 'text-delta', id: '1', delta: 'late' },
      ],
      [
        { type: 'STEP_STARTED', stepName: 'step-1' },
        { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' },
        { type: 'TEXT_MESSAGE_END', messageId: 'm' },
        { type: 'STEP_FINISHED', stepName: 'step-1' },
        {
          type: 'RUN_FINISHED',
          threadId: 'c1',
          runId: 'r1',
          outcome: { type: 'cancelled' },
          metadata: { outcome: 'stopped' },
        },
      ],
    ],
    [
      'an end with usage: only whole counts',
      [
        {
          type: 'finish',
          finishReason: 'stop',
          messageMetadata: { usage: { inputTokens: 3, outputTokens: 1.5, other: 2 } },
        },
      ],
      [
        {
          type: 'RUN_FINISHED',
          threadId: 'c1',
          runId: 'r1',
          outcome: { type: 'success' },
          usage: [{ inputTokens: 3 }],
          metadata: { finishReason: 'stop' },
        },
      ],
    ],
    [
      'an error: its code from the metadata',
      [
        { type: 'message-metadata', messageMetadata: { code: 'max-turns' } },
        { type: 'error', errorText: 'Too many.' },
        { type: 'finish' },
      ],
      [
        {
          type: 'CUSTOM',
          name: 'message-metadata',
          value: { messageMetadata: { code: 'max-turns' } },
        },
        { type: 'RUN_ERROR', message: 'Too many.', code: 'max-turns' },
      ],
    ],
    [
      'a file and a data part: custom events',
      [
        { type: 'file', url: 'https://a.example/f', mediaType: 'image/png' },
        { type: 'data-weather', id: 'w', data: null },
      ],
      [
        {
          type: 'CUSTOM',
          name: 'file',
          value: { url: 'https://a.example/f', mediaType: 'image/png' },
        },
        { type: 'CUSTOM', name: 'data-weather', value: { id: 'w', data: null } },
      ],
    ],
  ];

  it('a stop, for a client before 1.0: no outcome, which that client would refuse', () => {
    const encode = encodeAgUi({ ...RUN, isBefore1: true });
    encode({ type: 'start' });
    encode({ type: 'abort' });
    expect(encode({ type: 'finish' })).toEqual([
      { type: 'RUN_FINISHED', threadId: 'c1', runId: 'r1' },
    ]);
  });

  it.each(CASES)('%s', (_, chunks, events) => {
    expect(encodeSome(...chunks)).toEqual(events);
  });
});
