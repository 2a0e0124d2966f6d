import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Chunk } from '../core/chunks.ts';
import { decodeBatch, encodeBatch } from './chunk-codec.ts';

/** As it comes back from a store that keeps bytes. */
const stored = (text: string) => new TextDecoder().decode(new TextEncoder().encode(text));
const throughStore = (chunks: Chunk[]) => decodeBatch(stored(encodeBatch(chunks).stored));
const delta = (text: string, id = 't'): Chunk => ({ type: 'text-delta', id, delta: text });

it('gives every chunk back as it was', () => {
  const text = fc.string({ unit: 'binary', maxLength: 12 });
  const chunk = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.tuple(text, fc.constantFrom('a', 'b')).map(([t, id]) => delta(t, id)),
    },
    text.map((t): Chunk => ({ type: 'reasoning-delta', id: 'r', delta: t })),
    text.map((t): Chunk => ({ ...delta(t), providerMetadata: { x: { y: t } } }) as Chunk),
    fc.jsonValue().map((data): Chunk => ({ type: 'data-x', data })),
  );
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 30 }), (chunks) => {
      // What JSON cannot tell apart is no chunk's: -0 is 0.
      expect(throughStore(chunks)).toEqual(JSON.parse(JSON.stringify(chunks)));
    }),
    { numRuns: 300 },
  );
});

it.each([
  ['halves of a character', ['\ud83d', '\ude00', '\ud83d', 'x', '\ude00']],
  ['nothing', ['', '', 'a', '']],
  ['quotes and controls', ['"', '\\', '\u0000', '\n', '\u2028']],
  ['what is very long', ['a'.repeat(0xd7ff), 'b'.repeat(0x1_0000), 'c'.repeat(0xd7ff - 36)]],
])('keeps the deltas apart: %s', (_what, deltas) => {
  const chunks = deltas.map((text) => delta(text));
  expect(throughStore(chunks)).toEqual(chunks);
});
