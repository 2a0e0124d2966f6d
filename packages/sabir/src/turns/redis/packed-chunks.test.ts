import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Chunk } from '../../core/chunks.ts';
import { encodeBatch } from '../chunk-codec.ts';
import { PackedChunks } from './packed-chunks.ts';

const delta = (text: string, id = 't'): Chunk => ({ type: 'text-delta', id, delta: text });
const CHUNK = fc.oneof(
  { weight: 8, arbitrary: fc.string({ maxLength: 4 }).map((text) => delta(text)) },
  { weight: 1, arbitrary: fc.string({ maxLength: 4 }).map((text) => delta(text, 'other')) },
  { weight: 1, arbitrary: fc.integer().map((data): Chunk => ({ type: 'data-x', data })) },
);
const BATCHES = fc.array(fc.array(CHUNK, { minLength: 1, maxLength: 30 }), { maxLength: 8 });

function pack(batches: Chunk[][]): PackedChunks {
  const packed = new PackedChunks();
  let last = 0;
  for (const batch of batches) {
    last += batch.length;
    packed.add(last, encodeBatch(batch).stored);
  }
  return packed;
}

const numbered = (chunks: Chunk[]) => chunks.map((chunk, at) => ({ seq: at + 1, chunk }));

describe('packed chunks', () => {
  it('gives everything behind any number, each chunk with its own', () => {
    fc.assert(
      fc.property(BATCHES, fc.nat(250), (batches, after) => {
        const all = numbered(batches.flat());
        const packed = pack(batches);
        expect(packed.length).toBe(all.length);
        expect(packed.after(after)).toEqual(all.slice(after));
      }),
      { numRuns: 300 },
    );
  });

  it('takes of a batch only what it does not have', () => {
    fc.assert(
      fc.property(BATCHES, fc.nat(100), (batches, from) => {
        const chunks = batches.flat();
        const packed = pack(batches);
        // The same again from somewhere on, in other pieces, and a little more.
        const more = [...chunks.slice(from), delta('one'), delta('more')];
        const isBehind = from <= chunks.length;
        const last = Math.min(from, chunks.length) + more.length;
        expect(packed.add(last, encodeBatch(more).stored)).toBe(true);
        const expected = isBehind ? [...chunks.slice(0, from), ...more] : [...chunks, ...more];
        expect(packed.after(0)).toEqual(numbered(expected));
      }),
      { numRuns: 300 },
    );
  });

  it('takes nothing that something is missing before', () => {
    const packed = pack([[delta('a')]]);
    expect(packed.add(3, encodeBatch([delta('c')]).stored)).toBe(false);
    expect(packed.length).toBe(1);
  });

  it.each(['', '{}', '7', '[7]', '["x"]', '[["id", "text"]]', '[["id", 1, 2]]', '[null]', '[{}]'])(
    'takes nothing that is no append: %s',
    (stored) => {
      const packed = new PackedChunks();
      expect(() => packed.add(1, stored)).toThrow();
      expect(packed.length).toBe(0);
    },
  );
});
