import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chunkSequences } from '../../test/arbitrary-chunks.ts';
import { SEQUENCES, start } from '../../test/chunk-sequences.ts';
import { CLIENTS, runClient } from '../../test/real-clients.ts';
import type { Chunk } from './chunks.ts';
import { compactChunks } from './compact.ts';
import { foldChunks } from './fold.ts';

const said = (value: string) => ({ providerMetadata: { test: { value } } });

describe('compactChunks', () => {
  test('joins adjacent deltas of one part, and only those', () => {
    const chunks: Chunk[] = [
      { type: 'text-start', id: 'a' },
      { type: 'text-delta', id: 'a', delta: '1' },
      { type: 'text-delta', id: 'a', delta: '2' },
      { type: 'text-delta', id: 'b', delta: '3' },
      { type: 'reasoning-delta', id: 'b', delta: '4' },
      { type: 'text-delta', id: 'b', delta: '5' },
      { type: 'data-x', data: 1, transient: true },
      { type: 'text-delta', id: 'b', delta: '6' },
      { type: 'tool-input-delta', toolCallId: 'b', inputTextDelta: '{' },
      { type: 'tool-input-delta', toolCallId: 'b', inputTextDelta: '}' },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{' },
    ];
    expect(compactChunks(chunks)).toStrictEqual([
      { type: 'text-start', id: 'a' },
      { type: 'text-delta', id: 'a', delta: '12' },
      { type: 'text-delta', id: 'b', delta: '3' },
      { type: 'reasoning-delta', id: 'b', delta: '4' },
      { type: 'text-delta', id: 'b', delta: '5' },
      { type: 'data-x', data: 1, transient: true },
      { type: 'text-delta', id: 'b', delta: '6' },
      { type: 'tool-input-delta', toolCallId: 'b', inputTextDelta: '{}' },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{' },
    ]);
  });

  test('keeps the last metadata given', () => {
    expect(
      compactChunks([
        { type: 'text-delta', id: 'a', delta: '1', ...said('one') },
        { type: 'text-delta', id: 'a', delta: '2', ...said('two') },
        { type: 'text-delta', id: 'a', delta: '3' },
        { type: 'reasoning-delta', id: 'a', delta: '1' },
        { type: 'reasoning-delta', id: 'a', delta: '2', ...said('three') },
      ]),
    ).toStrictEqual([
      { type: 'text-delta', id: 'a', delta: '123', ...said('two') },
      { type: 'reasoning-delta', id: 'a', delta: '12', ...said('three') },
    ]);
  });

  test('changes no final message, cut anywhere, and writes into no chunk', () => {
    fc.assert(
      fc.property(chunkSequences(7), fc.nat(), (all, cut) => {
        const chunks = all.slice(0, cut % (all.length + 1)).map((chunk) => Object.freeze(chunk));
        const compacted = compactChunks(chunks);
        expect(foldChunks(compacted)).toEqual(foldChunks(chunks));
        expect(compactChunks(compacted)).toEqual(compacted);
      }),
    );
  });

  test.each(CLIENTS)('changes no message that $name makes', async ({ name, major }) => {
    for (const [, first, rest] of SEQUENCES) {
      if (first > major) continue;
      const chunks = [...start, ...rest];
      const { message, status } = await runClient(name, compactChunks(chunks));
      expect({ message, status }).toEqual(pick(await runClient(name, chunks)));
    }
    await fc.assert(
      fc.asyncProperty(chunkSequences(major), async (chunks) => {
        const { message, status } = await runClient(name, compactChunks(chunks));
        expect({ message, status }).toEqual(pick(await runClient(name, chunks)));
      }),
      { numRuns: 40 },
    );
  });

  const pick = <T extends { message: unknown; status: unknown }>({ message, status }: T) => ({
    message,
    status,
  });

  test('passes on what it does not join', () => {
    const chunks: Chunk[] = [
      { type: 'start' },
      { type: 'text-delta', id: 'a', delta: '1' },
      { type: 'text-delta', id: 'a', delta: 2 } as unknown as Chunk,
      { type: 'text-delta', id: 'a', delta: '3' },
    ];
    compactChunks(chunks).forEach((chunk, at) => {
      expect(chunk).toBe(chunks[at]);
    });
  });

  test('joins a long text in linear time', () => {
    const delta: Chunk = { type: 'text-delta', id: 'a', delta: 'word ' };
    const began = performance.now();
    expect(compactChunks(Array.from({ length: 500_000 }, () => delta))).toEqual([
      { ...delta, delta: 'word '.repeat(500_000) },
    ]);
    expect(performance.now() - began).toBeLessThan(2000);
  });
});
