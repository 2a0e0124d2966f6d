import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../test/arbitrary-chunks.ts';
import type { Chunk } from '../core/chunks.ts';
import { compactChunks } from '../core/compact.ts';
import { foldChunks } from '../core/fold.ts';
import { compactLogged } from './compact-logged.ts';
import type { LoggedChunk } from './log.ts';

const number = (chunks: Chunk[], first = 1): LoggedChunk[] =>
  chunks.map((chunk, i) => ({ seq: first + i, chunk }));
const chunksOf = (entries: LoggedChunk[]) => entries.map(({ chunk }) => chunk);
const delta = (id: string, text: string): Chunk => ({ type: 'text-delta', id, delta: text });

/** Sequences with runs of deltas in them, split anywhere. */
const withRuns = fc
  .tuple(chunkSequences(7), fc.array(fc.nat(4), { maxLength: 60 }))
  .map(([chunks, cuts]) =>
    chunks.flatMap((chunk, i): Chunk[] => {
      if (chunk.type !== 'text-delta' && chunk.type !== 'reasoning-delta') return [chunk];
      const pieces = cuts[i % (cuts.length || 1)] ?? 0;
      const more = Array.from({ length: pieces }, (_, n) => ({ ...chunk, delta: `${n}` }));
      return [chunk, ...more];
    }),
  );

describe('compactLogged', () => {
  it('gives a run of deltas the number of its last', () => {
    const entries = number([
      { type: 'start', messageId: 'm' },
      { type: 'text-start', id: 'a' },
      delta('a', '1'),
      delta('a', '2'),
      delta('b', '3'),
      delta('a', '4'),
      delta('a', '5'),
      { type: 'text-end', id: 'a' },
    ]);
    expect(compactLogged(entries)).toEqual([
      { seq: 1, chunk: { type: 'start', messageId: 'm' } },
      { seq: 2, chunk: { type: 'text-start', id: 'a' } },
      { seq: 4, chunk: delta('a', '12') },
      { seq: 5, chunk: delta('b', '3') },
      { seq: 7, chunk: delta('a', '45') },
      { seq: 8, chunk: { type: 'text-end', id: 'a' } },
    ]);
  });

  it('keeps its numbers where one of the deltas has no text', () => {
    const odd = { type: 'text-delta', id: 'a', delta: 2 } as unknown as Chunk;
    const entries = number([delta('a', '1'), delta('a', '2'), odd, delta('a', '3')]);
    expect(compactLogged(entries).map(({ seq }) => seq)).toEqual([2, 3, 4]);
  });

  it('numbers chunks that are one and the same object', () => {
    const same = delta('a', 'x');
    const other: Chunk = { type: 'data-x', data: 1 };
    const entries = number([same, same, same, other, other, same]);
    expect(compactLogged(entries).map(({ seq }) => seq)).toEqual([3, 4, 5, 6]);
  });

  it('makes the same message of the same chunks, each with the highest number it covers', () => {
    fc.assert(
      fc.property(withRuns, fc.nat(50), fc.nat(), (chunks, before, at) => {
        const entries = number(chunks, before + 1);
        const compacted = compactLogged(entries);
        expect(chunksOf(compacted)).toEqual(compactChunks(chunks));
        expect(foldChunks(chunksOf(compacted))).toEqual(foldChunks(chunks));
        const seqs = compacted.map(({ seq }) => seq);
        expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
        expect(new Set(seqs).size).toBe(seqs.length);
        expect(seqs.at(-1)).toBe(entries.at(-1)?.seq);
        // Whoever has seen up to some number has the whole of what it covers, and no more.
        const seen = at % (compacted.length + 1);
        const cursor = seqs[seen - 1] ?? before;
        const rest = entries.filter(({ seq }) => seq > cursor).map(({ chunk }) => chunk);
        expect(foldChunks([...chunksOf(compacted.slice(0, seen)), ...rest])).toEqual(
          foldChunks(chunks),
        );
      }),
      { numRuns: 500 },
    );
  });

  it('writes into nothing', () => {
    fc.assert(
      fc.property(withRuns, (chunks) => {
        const entries = number(chunks.map((chunk) => Object.freeze(chunk)));
        compactLogged(Object.freeze(entries.map((entry) => Object.freeze(entry))));
      }),
    );
  });
});
