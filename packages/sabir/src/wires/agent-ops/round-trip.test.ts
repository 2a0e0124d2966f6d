/** Chunks → V2 → chunks: the message is the same, up to the table in `test/carried-by-v2.ts`. */
import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import { carriedByV2, withJoinedTexts } from '../../../test/carried-by-v2.ts';
import { comparable } from '../../../test/comparable.ts';
import { CHUNK_FIXTURES } from '../../../test/contract-fixtures.ts';
import { readJsonl } from '../../../test/jsonl.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import type { UIMessage } from '../../core/message.ts';
import type { MessageMetadata } from '../../core/outcome.ts';
import { verifyChunks } from '../../core/verify.ts';
import { createAgentOpsTranslator } from '../../sources/agent-ops/translate.ts';
import { createV2Encoder } from './encode.ts';
import type { V2Event } from './events.ts';

const NUM_RUNS = Number(process.env.PROPERTY_RUNS ?? 500);
const OF_TURN = { promptId: 'p', channel: { channelType: 'web', channelId: 'default' } };

function encodeAll(chunks: Chunk[], turnId: string): V2Event[] {
  const encoder = createV2Encoder({ turnId, ...OF_TURN });
  return chunks.flatMap((chunk) => encoder.push(chunk));
}

/** What a reader of V2 makes of the chunks. It finds no event that it does not know. */
function through(chunks: Chunk[]): Chunk[] {
  const { id: turnId } = foldChunks(chunks);
  const translator = createAgentOpsTranslator({ turnId });
  const events = JSON.parse(JSON.stringify(encodeAll(chunks, turnId))) as V2Event[];
  const read = events.flatMap((event) => translator.push(event));
  expect(translator.stats).toEqual({ unknown: {}, malformed: {} });
  return read;
}

const RECORDINGS = new URL('../../../test/fixtures/agent-ops-recordings/', import.meta.url);

describe('a recorded runner, by way of chunks', () => {
  const runs = readdirSync(RECORDINGS).filter((name) => name.endsWith('.runner.jsonl'));

  it.each(runs)('makes the same message as the events of the runner: %s', (name) => {
    const lines = readJsonl(new URL(name, RECORDINGS)) as { msg: object }[];
    const runner = createAgentOpsTranslator({ messageId: 'm' });
    const chunks = [...lines.flatMap(({ msg }) => runner.push(msg)), ...runner.end()];
    const first = foldChunks(chunks);
    const again = through(chunks);
    expect(verifyChunks(again)).toEqual([]);
    // V2 ends a turn that was stopped with `canceled`, whatever reason the runner gave.
    const { outcome, reason } = (first.metadata ?? {}) as MessageMetadata;
    const metadata = {
      ...(first.metadata as object),
      outcome: outcome ?? 'finished',
      ...(reason && { reason: 'canceled' }),
    };
    expect(comparable(foldChunks(again))).toEqual(comparable({ ...first, metadata }));
  });
});

describe('the chunks of a fixture, by way of V2', () => {
  it.each(CHUNK_FIXTURES)('make the same message: $name', ({ chunks }) => {
    const again = through(chunks);
    expect(verifyChunks(again)).toEqual([]);
    const expected = withJoinedTexts(carriedByV2(chunks, 'events'));
    expect(comparable(foldChunks(again))).toEqual(expected);
    const isError = ({ type }: Chunk) => type === 'error';
    expect(again.find(isError)).toEqual(chunks.find(isError));
  });
});

/** Every text is a part of one delta: nothing begins while a text is open. */
function withoutOverlaps(chunks: Chunk[]): Chunk[] {
  return chunks.flatMap((chunk): Chunk[] => {
    const { type } = chunk;
    if (/^(text|reasoning)-(start|end)$/.test(type)) return [];
    if (type !== 'text-delta' && type !== 'reasoning-delta') return [chunk];
    const kind = type === 'text-delta' ? 'text' : 'reasoning';
    const { id } = chunk;
    return [{ type: `${kind}-start`, id }, chunk, { type: `${kind}-end`, id }];
  });
}

/** V2 takes back nothing: a sequence ends before the step that is begun again. */
function withoutResets(chunks: Chunk[]): Chunk[] {
  const reset = chunks.findIndex(({ type }) => type === 'reset-step');
  if (reset < 0) return chunks;
  return chunks.slice(
    0,
    chunks.slice(0, reset).findLastIndex(({ type }) => type === 'start-step'),
  );
}

/** Whether a text is over is known to readers of V2 only when something follows. */
function withoutTextStates(given: unknown): unknown {
  const message = structuredClone(given) as { parts: { type: string; state?: string }[] };
  for (const part of message.parts) if (/^(text|reasoning)$/.test(part.type)) delete part.state;
  return message;
}

type Step = { text: string; reasoning: string; others: unknown[] };

/** The texts of each step as one, and its other parts in their order. */
function toSteps(given: unknown): Step[] {
  const steps: Step[] = [];
  for (const part of (given as UIMessage).parts) {
    const step = steps.at(-1);
    if (part.type === 'step-start') steps.push({ text: '', reasoning: '', others: [] });
    else if (part.type === 'text' || part.type === 'reasoning') {
      if (step) step[part.type] += part.text;
    } else step?.others.push(part);
  }
  return steps;
}

describe('any chunks, by way of V2', () => {
  it.each([5, 6, 7] as const)('make the same message, cut anywhere: AI SDK %i', (major) => {
    fc.assert(
      fc.property(chunkSequences(major), fc.nat(), (drawn, at) => {
        const whole = withoutOverlaps(withoutResets(drawn));
        const chunks = at % 3 === 0 ? whole : whole.slice(0, 1 + (at % whole.length));
        const message = comparable(foldChunks(through(chunks)));
        const expected = carriedByV2(chunks, 'events');
        expect(withoutTextStates(withJoinedTexts(message))).toEqual(
          withoutTextStates(withJoinedTexts(expected)),
        );
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it.each([5, 6, 7] as const)(
    'lose no word and no part of texts that overlap: AI SDK %i',
    (major) => {
      fc.assert(
        fc.property(chunkSequences(major, 'whole'), (drawn) => {
          const chunks = withoutResets(drawn);
          if (chunks.at(-1)?.type !== 'finish') chunks.push({ type: 'finish' });
          const again = through(chunks);
          expect(verifyChunks(again)).toEqual([]);
          expect(toSteps(foldChunks(again))).toEqual(toSteps(carriedByV2(chunks, 'events')));
        }),
        { numRuns: NUM_RUNS },
      );
    },
  );

  it('are encoded alike by every encoder', () => {
    fc.assert(
      fc.property(chunkSequences(7), (chunks) => {
        expect(encodeAll(chunks, 'm')).toEqual(encodeAll(chunks, 'm'));
      }),
      { numRuns: 50 },
    );
  });

  it('stay a turn that can be read when steps are begun again', () => {
    fc.assert(
      fc.property(chunkSequences(7, 'whole'), (chunks) => {
        expect(verifyChunks(through(chunks))).toEqual([]);
      }),
      { numRuns: NUM_RUNS },
    );
  });
});
