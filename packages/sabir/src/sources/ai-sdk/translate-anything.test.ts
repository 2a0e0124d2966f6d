/** Whatever a generator gives: no client dies of what comes out, and what was right is untouched. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import { SEQUENCES } from '../../../test/chunk-sequences.ts';
import type { AiSdkMajor, Chunk } from '../../core/chunks.ts';
import { createDowngrade } from '../../core/downgrade.ts';
import { foldChunks } from '../../core/fold.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import { verifyChunks } from '../../core/verify.ts';
import { createChunkTranslator } from './translate.ts';

const NUM_RUNS = Number(process.env.CHUNK_RUNS ?? 1_000);
const START: Chunk = { type: 'start', messageId: 'm' };

function translate(events: unknown[], outcome?: TurnOutcome) {
  const translator = createChunkTranslator({ messageId: 'm' });
  const pushed = events.flatMap((event) => translator.push(event));
  const { stats } = translator;
  return { pushed, chunks: [...pushed, ...translator.end(outcome)], stats, translator };
}

/** Calls that wait for an approval may stay open, but a client of 5 is never told of approvals. */
function hasApprovals(chunks: Chunk[]): boolean {
  return chunks.some(({ type }) => type === 'tool-approval-request');
}

function expectSafe(chunks: Chunk[]): void {
  for (const client of ['portable', 5, 6, 7] as const) {
    const sent = chunks.flatMap(createDowngrade(client));
    const target = client === 'portable' ? {} : { aiSdk: client };
    const violations = verifyChunks(sent, target).filter(
      ({ code }) =>
        code !== 'tool-left-open' ||
        !hasApprovals(chunks) ||
        (client !== 5 && client !== 'portable'),
    );
    expect(violations, `for ${client}: ${JSON.stringify(sent)}`).toEqual([]);
  }
}

const ids = fc.constantFrom('1', '2', 'c');
const anyChunk: fc.Arbitrary<unknown> = fc.oneof(
  // Right in itself, in any order.
  fc.oneof(
    fc.record({
      type: fc.constantFrom('text-start', 'text-end', 'reasoning-start', 'reasoning-end'),
      id: ids,
    }),
    fc.record({ type: fc.constantFrom('text-delta', 'reasoning-delta'), id: ids, delta: ids }),
    fc.record(
      {
        type: fc.constantFrom('tool-input-start', 'tool-input-available', 'tool-input-error'),
        toolCallId: ids,
        toolName: ids,
        input: fc.jsonValue({ maxDepth: 1 }),
        errorText: ids,
        dynamic: fc.boolean(),
        providerExecuted: fc.boolean(),
      },
      { requiredKeys: ['type', 'toolCallId', 'toolName', 'input', 'errorText'] },
    ),
    fc.record({ type: fc.constant('tool-input-delta'), toolCallId: ids, inputTextDelta: ids }),
    fc.record(
      {
        type: fc.constantFrom('tool-output-available', 'tool-output-error', 'tool-output-denied'),
        toolCallId: ids,
        output: fc.jsonValue({ maxDepth: 1 }),
        errorText: ids,
        preliminary: fc.boolean(),
        dynamic: fc.boolean(),
      },
      { requiredKeys: ['type', 'toolCallId', 'output', 'errorText'] },
    ),
    fc.record({
      type: fc.constantFrom('tool-approval-request', 'tool-approval-response'),
      approvalId: ids,
      toolCallId: ids,
      approved: fc.boolean(),
    }),
    fc.record({
      type: fc.constantFrom('start-step', 'finish-step', 'reset-step', 'start-step', 'finish-step'),
    }),
    fc.record({
      type: fc.constantFrom('start', 'message-metadata'),
      messageMetadata: fc.jsonValue({ maxDepth: 1 }),
    }),
  ),
  // Whole types with anything in their fields, and types that nobody knows.
  fc.record(
    {
      type: fc.constantFrom(
        ...['text-start', 'text-delta', 'data-x', 'data-', 'file', 'source-url', 'custom'],
        ...['steering-message', 'step-start', 'toString', '__proto__', 'start', 'tool-', 'text-'],
        ...['tool-input-available', 'tool-output-available', 'message-metadata', 'reasoning-file'],
      ),
      id: fc.anything(),
      delta: fc.anything(),
      data: fc.anything(),
      input: fc.anything(),
      output: fc.anything(),
      toolCallId: ids,
      toolName: fc.anything(),
      url: fc.anything(),
      messageMetadata: fc.anything(),
      extra: fc.anything(),
      mediaType: ids,
      parts: fc.anything(),
    },
    { requiredKeys: ['type'] },
  ),
  fc.anything(),
);
const ending: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 9, arbitrary: anyChunk },
  {
    weight: 1,
    arbitrary: fc.record(
      {
        type: fc.constantFrom('finish', 'error', 'abort'),
        finishReason: fc.constantFrom('stop', 'end_turn', 'interrupted', null),
        errorText: fc.anything(),
        reason: fc.anything(),
        messageMetadata: fc.anything(),
      },
      { requiredKeys: ['type'] },
    ),
  },
);
const outcomes = fc.constantFrom<TurnOutcome | undefined>(
  undefined,
  { status: 'finished', usage: { inputTokens: 1 } },
  { status: 'stopped', reason: 'asked' },
  { status: 'failed', code: 'run-failed', message: 'no' },
  { status: 'paused' },
  { status: 'lost' },
);

describe('whatever a generator gives', () => {
  it('comes out in an order that no client dies of', () => {
    fc.assert(
      fc.property(fc.array(ending, { maxLength: 25 }), outcomes, (events, outcome) => {
        const { chunks, translator } = translate(events, outcome);
        expectSafe(chunks);
        expect(translator.ended).toBe(true);
        expect(translator.push({ type: 'text-start', id: 'late' })).toEqual([]);
        expect(translator.end()).toEqual([]);
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it('comes out safe when a good stream is cut, shuffled or doubled', () => {
    fc.assert(
      fc.property(
        chunkSequences(7),
        fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 5 }),
        outcomes,
        (given, moves, outcome) => {
          const events = [...given];
          for (const [from, to] of moves) {
            const moved = events[from % events.length] as Chunk;
            if (from % 2) events.splice(from % events.length, 1);
            events.splice(to % (events.length + 1), 0, moved);
          }
          expectSafe(translate(events, outcome).chunks);
        },
      ),
      { numRuns: NUM_RUNS },
    );
  });

  it.each([5, 6, 7] as AiSdkMajor[])('passes on what is good for %i as it is', (major) => {
    fc.assert(
      fc.property(chunkSequences(major, 'whole'), (given) => {
        // An abort ends the turn, an error brings its metadata: both have tests of their own.
        const events = given.filter(({ type }) => type !== 'abort' && type !== 'error');
        const { pushed, stats } = translate(events);
        expect(pushed).toEqual(events);
        expect(foldChunks(pushed)).toEqual(foldChunks(events));
        expect(stats).toEqual({ unknown: {}, malformed: {} });
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it('is copied also where it holds a proxy, which cannot be cloned', () => {
    const store = { rows: new Proxy([1, 2], {}) };
    const given = [
      { type: 'text-start', id: 't', providerMetadata: { store } },
      { type: 'text-end', id: 't', providerMetadata: { store } },
      { type: 'tool-input-available', toolCallId: 'c', toolName: 'read', input: store },
      { type: 'tool-output-available', toolCallId: 'c', output: store },
      { type: 'finish', finishReason: 'stop', messageMetadata: { store } },
    ];
    const { pushed, stats } = translate(given);
    store.rows.push(3);
    const told = JSON.stringify(given).replaceAll('[1,2,3]', '[1,2]');
    expect(pushed).toEqual([START, ...JSON.parse(told)]);
    expect(stats).toEqual({ unknown: {}, malformed: {} });
    expectSafe(pushed);
  });

  it.each(SEQUENCES)('survives: %s', (_name, _major, given) => {
    expectSafe(translate(given).chunks);
    expectSafe(translate([START, { type: 'start-step' }, ...given]).chunks);
  });
});
