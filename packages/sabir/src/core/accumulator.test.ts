import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CLIENTS, runClient } from '../../test/real-clients.ts';
import { createMessageAccumulator, type MessageAccumulator } from './accumulator.ts';
import type { Chunk } from './chunks.ts';
import { createDowngrade } from './downgrade.ts';
import { foldChunks } from './fold.ts';
import { verifyChunks } from './verify.ts';

const types = (chunks: Chunk[]) => chunks.map(({ type }) => type);

/** Everything that can be called, with few ids so that calls meet each other. */
const id = fc.constantFrom('a', 'b', 'c', 'm-call-1', 'm-call-2');
const name = fc.constantFrom('search', 'write');
const flags = fc.constantFrom({}, { providerExecuted: true }, { dynamic: true });
const cyclic: Record<string, unknown> = {};
cyclic.self = cyclic;
const value = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(undefined, 1n, cyclic, new Date(0), Number.NaN, () => 1),
);
const outcome = fc.constantFrom(
  undefined,
  { status: 'finished' } as const,
  { status: 'stopped', reason: 'r' } as const,
  { status: 'failed', code: 'run-failed' } as const,
  { status: 'paused' } as const,
  { status: 'lost' } as const,
);
type Call = (a: MessageAccumulator) => void;
const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.string().map(
      (delta): Call =>
        (a) =>
          a.delta('text', delta),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.string().map(
      (delta): Call =>
        (a) =>
          a.delta('reasoning', delta),
    ),
  },
  fc.constant<Call>((a) => a.start()),
  fc.constant<Call>((a) => a.closeBlock()),
  fc.constant<Call>((a) => a.startStep()),
  fc.constant<Call>((a) => a.finishStep()),
  fc.constant<Call>((a) => a.closeParts()),
  fc.tuple(id, name, flags).map(
    ([i, n, f]): Call =>
      (a) =>
        a.toolInputStart(i, n, f),
  ),
  fc.tuple(id, fc.string()).map(
    ([i, d]): Call =>
      (a) =>
        a.toolInputDelta(i, d),
  ),
  fc.tuple(fc.option(id, { nil: undefined }), name, value, flags).map(
    ([i, n, v, f]): Call =>
      (a) =>
        void a.toolInput(i, n, v, f),
  ),
  fc.tuple(id, value, fc.boolean()).map(
    ([i, v, p]): Call =>
      (a) =>
        p ? a.toolProgress(i, v) : a.toolOutput(i, v),
  ),
  fc.tuple(id, fc.string()).map(
    ([i, text]): Call =>
      (a) =>
        a.toolError(i, text),
  ),
  fc.tuple(id, id).map(
    ([i, approval]): Call =>
      (a) =>
        a.toolApprovalRequest(i, approval),
  ),
  id.map(
    (i): Call =>
      (a) =>
        a.toolDenied(i),
  ),
  fc.tuple(value, fc.option(id, { nil: undefined }), fc.boolean()).map(
    ([v, i, transient]): Call =>
      (a) =>
        a.data('thing', v, i ? { id: i } : { transient }),
  ),
  fc.constant<Call>((a) => a.part({ type: 'source-url', sourceId: 's', url: 'https://a.test' })),
  fc.constant<Call>((a) => a.part({ type: 'file', url: 'data:,x', mediaType: 'text/plain' })),
  fc.record({ note: value }).map(
    (messageMetadata): Call =>
      (a) =>
        a.part({ type: 'message-metadata', messageMetadata }),
  ),
);
const calls = fc.tuple(
  fc.array(call, { maxLength: 40 }),
  outcome,
  fc.array(call, { maxLength: 5 }),
);

function play([before, how, after]: [Call[], Parameters<MessageAccumulator['end']>[0], Call[]]) {
  const accumulator = createMessageAccumulator('m');
  for (const run of before) run(accumulator);
  accumulator.end(how);
  for (const run of after) run(accumulator);
  accumulator.end(how);
  return accumulator.take();
}

describe('createMessageAccumulator', () => {
  it('emits nothing invalid, whatever is called in whatever order', () => {
    fc.assert(
      fc.property(calls, (sequence) => {
        const chunks = play(sequence);
        expect(verifyChunks(chunks, { aiSdk: 6 })).toEqual([]);
        expect(verifyChunks(chunks, { aiSdk: 7 })).toEqual([]);
        // A client without approvals cannot be told why a paused call stays open.
        if (sequence[1]?.status === 'paused') return;
        expect(verifyChunks(chunks.flatMap(createDowngrade('portable')))).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  it('is accepted over SSE by every real client, whatever is called in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(calls, async (sequence) => {
        const chunks = play(sequence);
        for (const { name, major } of CLIENTS) {
          const sent = chunks.flatMap(createDowngrade(major));
          const { status, error, message } = await runClient(name, sent);
          const failure = sent.find((chunk) => chunk.type === 'error');
          expect(error?.message, name).toBe(failure?.errorText);
          expect(status, name).toBe(failure ? 'error' : 'ready');
          expect(message?.id, name).toBe('m');
        }
      }),
      { numRuns: 150 },
    );
  });

  it('starts with the message id before anything else and ends exactly once', () => {
    const accumulator = createMessageAccumulator('m');
    accumulator.delta('text', 'hi');
    accumulator.end({ status: 'finished' });
    accumulator.end({ status: 'failed' });
    accumulator.delta('text', 'late');
    expect(accumulator.take()).toEqual([
      { type: 'start', messageId: 'm' },
      { type: 'text-start', id: 'text-1' },
      { type: 'text-delta', id: 'text-1', delta: 'hi' },
      { type: 'text-end', id: 'text-1' },
      { type: 'finish', finishReason: 'stop', messageMetadata: { outcome: 'finished' } },
    ]);
    expect(accumulator.isEnded).toBe(true);
  });

  it('gives every block an id of its own and lets text and reasoning take turns', () => {
    const accumulator = createMessageAccumulator('m');
    accumulator.delta('reasoning', 'hm');
    accumulator.delta('text', 'a');
    accumulator.closeBlock();
    accumulator.delta('text', 'b');
    expect(accumulator.take()).toEqual([
      { type: 'start', messageId: 'm' },
      { type: 'reasoning-start', id: 'reasoning-1' },
      { type: 'reasoning-delta', id: 'reasoning-1', delta: 'hm' },
      { type: 'reasoning-end', id: 'reasoning-1' },
      { type: 'text-start', id: 'text-2' },
      { type: 'text-delta', id: 'text-2', delta: 'a' },
      { type: 'text-end', id: 'text-2' },
      { type: 'text-start', id: 'text-3' },
      { type: 'text-delta', id: 'text-3', delta: 'b' },
    ]);
  });

  it('closes text, then tools, then the step, in that order', () => {
    const accumulator = createMessageAccumulator('m');
    accumulator.startStep();
    accumulator.toolInput('t', 'search', {});
    accumulator.delta('text', 'so');
    accumulator.end({ status: 'finished' });
    expect(types(accumulator.take()).slice(-5)).toEqual([
      'text-delta',
      'text-end',
      'tool-output-error',
      'finish-step',
      'finish',
    ]);
  });

  it('mints call ids that are unique between messages, and takes no id twice', () => {
    const accumulator = createMessageAccumulator('m');
    const first = accumulator.toolInput(undefined, 'search', {});
    const second = accumulator.toolInput(undefined, 'search', {});
    expect([first, second]).toEqual(['m-call-1', 'm-call-2']);
    accumulator.toolOutput(first, 1);
    accumulator.take();
    accumulator.toolInput(first, 'search', {});
    accumulator.toolOutput(first, 2);
    expect(accumulator.take()).toEqual([]);
  });

  it('takes a call id that another accumulator of the same message minted, once, under a prefix of its own', () => {
    const accumulator = createMessageAccumulator('m', 'own-');
    accumulator.toolInput('m-call-1', 'search', {});
    accumulator.toolOutput('m-call-1', 1);
    expect(types(accumulator.take())).toEqual([
      'start',
      'tool-input-available',
      'tool-output-available',
    ]);
    accumulator.toolInput('m-call-1', 'search', {});
    expect(accumulator.take()).toEqual([]);
    expect(accumulator.toolInput(undefined, 'search', {})).toBe('own-1');
  });

  it('remembers that an id of the source was answered', () => {
    const accumulator = createMessageAccumulator('m');
    accumulator.toolInput('t', 'search', {});
    accumulator.toolOutput('t', 1);
    accumulator.take();
    accumulator.toolInput('t', 'search', {});
    accumulator.toolError('t', 'late');
    expect(accumulator.take()).toEqual([]);
  });

  it('keeps a tool open through preliminary outputs', () => {
    const accumulator = createMessageAccumulator('m');
    accumulator.toolInput('t', 'search', {});
    accumulator.toolProgress('t', 1);
    accumulator.toolOutput('t', 2);
    const [, , preliminary, final] = accumulator.take();
    expect(preliminary).toMatchObject({ output: 1, preliminary: true });
    expect(final).not.toHaveProperty('preliminary');
  });

  it('takes no more input for a call that has given a preliminary output', () => {
    const accumulator = createMessageAccumulator('m');
    accumulator.toolInputStart('t', 'search');
    accumulator.toolProgress('t', 1);
    accumulator.take();
    accumulator.toolInputDelta('t', 'late');
    accumulator.toolInput('t', 'search', {});
    expect(accumulator.take()).toEqual([]);
  });

  it('streams tool input, and completes it in the same step', () => {
    const accumulator = createMessageAccumulator('m');
    accumulator.startStep();
    accumulator.toolInputStart('t', 'search', { providerExecuted: true });
    accumulator.toolInputDelta('t', '{"q":');
    accumulator.toolInput('t', 'search', { q: 1 });
    accumulator.toolInputDelta('t', 'late');
    accumulator.toolInputStart('u', 'search');
    accumulator.startStep();
    const chunks = accumulator.take();
    expect(types(chunks)).toEqual([
      'start',
      'start-step',
      'tool-input-start',
      'tool-input-delta',
      'tool-input-available',
      'tool-input-start',
      'tool-output-error',
      'finish-step',
      'start-step',
    ]);
    expect(chunks[4]).toMatchObject({ providerExecuted: true });
  });

  it('leaves a call that waits for approval open when the turn is paused, not otherwise', () => {
    const open = (status: 'paused' | 'finished') => {
      const accumulator = createMessageAccumulator('m');
      accumulator.toolInput('t', 'search', {});
      accumulator.toolApprovalRequest('t', 'a');
      accumulator.end({ status });
      return types(accumulator.take()).includes('tool-output-error');
    };
    expect(open('paused')).toBe(false);
    expect(open('finished')).toBe(true);
  });

  it('denies only what waits for approval', () => {
    const accumulator = createMessageAccumulator('m');
    accumulator.toolInput('t', 'search', {});
    accumulator.toolDenied('t');
    accumulator.toolApprovalRequest('t', 'a');
    accumulator.toolDenied('t');
    expect(types(accumulator.take()).slice(2)).toEqual([
      'tool-approval-request',
      'tool-output-denied',
    ]);
  });

  it.each([
    [undefined, { finishReason: 'other' }],
    [{ status: 'finished' }, { finishReason: 'stop', messageMetadata: { outcome: 'finished' } }],
    [
      { status: 'finished', finishReason: 'length', usage: { inputTokens: 1 } },
      {
        finishReason: 'length',
        messageMetadata: { outcome: 'finished', usage: { inputTokens: 1 } },
      },
    ],
    [
      { status: 'stopped', reason: 'enough' },
      { finishReason: 'other', messageMetadata: { outcome: 'stopped', reason: 'enough' } },
    ],
    [{ status: 'paused' }, { finishReason: 'other', messageMetadata: { outcome: 'paused' } }],
  ] as const)('ends %j without an error', (how, finish) => {
    const accumulator = createMessageAccumulator('m');
    accumulator.end(how);
    expect(accumulator.take()).toEqual([
      { type: 'start', messageId: 'm' },
      { type: 'finish', ...finish },
    ]);
  });

  it.each([
    [{ status: 'failed', code: 'run-failed' }, 'It broke.', 'It broke.'],
    [{ status: 'failed' }, undefined, 'The agent could not finish its answer.'],
    [{ status: 'lost' }, undefined, 'The connection to the agent was lost.'],
  ] as const)('ends %j with metadata, then an error, then finish', (how, given, text) => {
    const accumulator = createMessageAccumulator('m');
    accumulator.end(how, {}, given);
    const { status, ...rest } = how;
    expect(accumulator.take().slice(1)).toEqual([
      { type: 'message-metadata', messageMetadata: { outcome: status, ...rest } },
      { type: 'error', errorText: text },
      { type: 'finish', finishReason: 'error' },
    ]);
  });

  it('makes values safe and counts them', () => {
    const accumulator = createMessageAccumulator('m');
    accumulator.toolInput('t', 'search', { big: 1n });
    accumulator.toolOutput('t', cyclic);
    expect(accumulator.repairs).toBe(2);
    const chunks = accumulator.take();
    expect(() => JSON.stringify(chunks)).not.toThrow();
    expect(chunks.at(-1)).toMatchObject({ output: { self: '[circular]' } });
  });

  it('does not interrupt text for data and sources, but does for a file', () => {
    const accumulator = createMessageAccumulator('m');
    accumulator.delta('text', 'a');
    accumulator.data('x', 1);
    accumulator.part({ type: 'source-url', sourceId: 's', url: 'https://a.test' });
    accumulator.delta('text', 'b');
    accumulator.part({ type: 'file', url: 'data:,', mediaType: 'text/plain' });
    accumulator.delta('text', 'c');
    accumulator.end();
    const texts = foldChunks(accumulator.take()).parts.flatMap((part) =>
      part.type === 'text' ? [part.text] : [],
    );
    expect(texts).toEqual(['ab', 'c']);
  });
});
