import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../test/arbitrary-chunks.ts';
import type { Chunk } from '../core/chunks.ts';
import { verifyChunks } from '../core/verify.ts';
import { chunkBytes } from './chunk-bytes.ts';
import { closingsOf } from './closings.ts';

describe('closingsOf', () => {
  it('ends whatever was stored, wherever it was cut', () => {
    fc.assert(
      fc.property(chunkSequences(5, 'whole'), fc.nat(), (chunks, cut) => {
        const stored = chunks.slice(0, cut % (chunks.length + 1));
        const closings = closingsOf(stored, 'm', { status: 'lost' });
        expect(verifyChunks([...stored, ...closings])).toEqual([]);
        if (stored.at(-1)?.type === 'finish') expect(closings).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it('adds no second error', () => {
    const stored: Chunk[] = [
      { type: 'start', messageId: 'm' },
      { type: 'error', errorText: 'no' },
    ];
    expect(closingsOf(stored, 'm', { status: 'lost' })).toEqual([
      { type: 'finish', finishReason: 'error' },
    ]);
  });

  it('begins a turn that had said nothing', () => {
    expect(closingsOf([], 'm', { status: 'lost' })).toMatchObject([
      { type: 'start', messageId: 'm' },
      { type: 'message-metadata', messageMetadata: { outcome: 'lost' } },
      { type: 'error' },
      { type: 'finish', finishReason: 'error' },
    ]);
  });
});

describe('chunkBytes', () => {
  it('is near to what the chunk takes as JSON', () => {
    fc.assert(
      fc.property(chunkSequences(7), (chunks) => {
        for (const chunk of chunks) {
          const { length } = JSON.stringify(chunk);
          expect(chunkBytes(chunk)).toBeGreaterThan(length / 2 - 64);
          expect(chunkBytes(chunk)).toBeLessThanOrEqual(length + 64);
        }
      }),
    );
    const delta: Chunk = { type: 'text-delta', id: 'a', delta: 'x'.repeat(1_000) };
    expect(chunkBytes(delta)).toBe(1_064);
  });
});
