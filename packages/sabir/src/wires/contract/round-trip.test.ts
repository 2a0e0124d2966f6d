import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import {
  SEQUENCES,
  end as sequenceEnd,
  start as sequenceStart,
} from '../../../test/chunk-sequences.ts';
import { CHUNK_FIXTURES, encodeAll } from '../../../test/contract-fixtures.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import type { UIMessage } from '../../core/message.ts';
import { createSseDecoder } from '../../core/sse.ts';
import { verifyChunks } from '../../core/verify.ts';
import { decodeContract } from './decode.ts';
import { encodeContract } from './encode.ts';
import { type ContractEvent, type StreamEvent, toContractSse } from './events.ts';

function decodeAll(events: StreamEvent[]): Chunk[] {
  const decode = decodeContract();
  return events.flatMap((event) => decode(event));
}

function overSse(events: ContractEvent[]): StreamEvent[] {
  const read: StreamEvent[] = [];
  const decoder = createSseDecoder({
    frame: ({ event, data }) => read.push({ type: event ?? '', data: JSON.parse(data) }),
  });
  for (const [index, event] of events.entries()) decoder.push(toContractSse(event, `t:${index}`));
  decoder.end();
  return read;
}

/** The message by way of the contract; one that is continued is known on both sides. */
function through(chunks: Chunk[], message?: UIMessage): UIMessage {
  return foldChunks(decodeAll(encodeAll(chunks)), message);
}

// A block that begins is told with what follows it: where nothing does, nobody has heard of it.
const withoutLastStart = (chunks: Chunk[]) => {
  const isTold = ({ type }: Chunk) => type !== 'text-start' && type !== 'reasoning-start';
  return chunks.slice(0, chunks.findLastIndex(isTold) + 1);
};

describe('chunks by way of the contract', () => {
  it.each([5, 6, 7] as const)('give the same message, for any sequence of %i', (major) => {
    fc.assert(
      fc.property(chunkSequences(major), (drawn) => {
        const chunks = withoutLastStart(drawn);
        expect(through(chunks)).toEqual(foldChunks(chunks));
      }),
      { numRuns: 300 },
    );
  });

  it.each([5, 6, 7] as const)('stay what a client of %i accepts', (major) => {
    fc.assert(
      fc.property(chunkSequences(major, 'whole'), (chunks) => {
        expect(verifyChunks(chunks, { aiSdk: major })).toEqual([]);
        expect(verifyChunks(decodeAll(encodeAll(chunks)), { aiSdk: major })).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  it('give the same message over the wire', () => {
    fc.assert(
      fc.property(chunkSequences(7), (drawn) => {
        const chunks = withoutLastStart(drawn);
        const read = overSse(encodeAll(chunks));
        expect(foldChunks(decodeAll(read))).toEqual(foldChunks(chunks));
      }),
      { numRuns: 200 },
    );
  });

  it('give the same message when a second encoder takes over anywhere', () => {
    fc.assert(
      fc.property(chunkSequences(7), fc.nat(), (drawn, at) => {
        const chunks = withoutLastStart(drawn);
        const cut = at % (chunks.length + 1);
        const seen = encodeAll(chunks.slice(0, cut));
        const encode = encodeContract();
        encodeAll(chunks.slice(0, cut), encode);
        const rest = encodeAll(chunks.slice(cut), encode);
        expect([...seen, ...rest]).toEqual(encodeAll(chunks));
        expect(foldChunks(decodeAll([...seen, ...rest]))).toEqual(foldChunks(chunks));
      }),
      { numRuns: 200 },
    );
  });

  it.each(CHUNK_FIXTURES)('give the same message, cut or whole: fixture $name', ({ chunks }) => {
    for (let length = 1; length <= chunks.length; length++) {
      const cut = withoutLastStart(chunks.slice(0, length));
      expect(through(cut), `cut after ${length}`).toEqual(foldChunks(cut));
      const encode = encodeContract();
      encodeAll(chunks.slice(0, length), encode);
      const seen = encodeAll(chunks.slice(0, length));
      const all = [...seen, ...encodeAll(chunks.slice(length), encode)];
      expect(foldChunks(decodeAll(all)), `resumed after ${length}`).toEqual(foldChunks(chunks));
    }
    const read = overSse(encodeAll(chunks));
    expect(foldChunks(decodeAll(read))).toEqual(foldChunks(chunks));
    expect(verifyChunks(decodeAll(read), { aiSdk: 7 })).toEqual([]);
    // What every client can take is still that.
    const isPortable = verifyChunks(chunks).length === 0;
    if (isPortable) expect(verifyChunks(decodeAll(read))).toEqual([]);
  });

  const sound = SEQUENCES.map(([name, , chunks]) => {
    const isWhole = chunks.at(-1)?.type === 'finish';
    return { name, chunks: [...sequenceStart, ...chunks, ...(isWhole ? [] : sequenceEnd)] };
  }).filter(({ chunks }) => verifyChunks(chunks, { aiSdk: 7 }).length === 0);

  it('are tried with what was written by hand', () => {
    expect(sound.length).toBeGreaterThan(15);
  });

  it.each(sound)('give the same message: $name', ({ chunks }) => {
    expect(through(chunks)).toEqual(foldChunks(chunks));
  });
});

describe('a message that goes on', () => {
  const asked: Chunk[] = [
    ...sequenceStart,
    { type: 'tool-input-available', toolCallId: 'c', toolName: 'search', input: { q: 1 } },
    { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
    ...sequenceEnd,
  ];
  const message = foldChunks(asked);

  it.each<[string, Chunk[]]>([
    ['its call is answered', [{ type: 'tool-output-available', toolCallId: 'c', output: 1 }]],
    ['its call is denied', [{ type: 'tool-output-denied', toolCallId: 'c' }]],
    [
      'its approval is answered first',
      [
        { type: 'tool-approval-response', approvalId: 'a', approved: true },
        { type: 'tool-output-error', toolCallId: 'c', errorText: 'no' },
      ],
    ],
    [
      'its call is asked about once more',
      [
        { type: 'tool-approval-request', approvalId: 'b', toolCallId: 'c' },
        { type: 'tool-approval-response', approvalId: 'b', approved: false },
        { type: 'tool-output-denied', toolCallId: 'c' },
      ],
    ],
  ])('keeps the calls it had: %s', (_name, answer) => {
    const chunks: Chunk[] = [{ type: 'start', messageId: 'm' }, ...answer, { type: 'finish' }];
    expect(verifyChunks(chunks, { aiSdk: 7, message })).toEqual([]);
    expect(through(chunks, message)).toEqual(foldChunks(chunks, message));
  });
});
