import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createJsonMeter, type JsonLimits } from './json-limits.ts';

function measure(text: string, limits: JsonLimits, pieceLength = text.length || 1) {
  const meter = createJsonMeter(limits);
  let problem: ReturnType<typeof meter.push>;
  for (let at = 0; at < text.length; at += pieceLength) {
    problem = meter.push(text.slice(at, at + pieceLength));
  }
  return problem;
}

/** The same by the parsed value, which is what the meter has to agree with. */
function shapeOf(value: unknown): { depth: number; nodes: number } {
  if (typeof value !== 'object' || value === null) return { depth: 0, nodes: 0 };
  const inner = Object.values(value).map(shapeOf);
  const fields = Array.isArray(value) ? 0 : inner.length;
  return {
    depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    nodes: inner.reduce((sum, { nodes }) => sum + nodes, 1 + fields),
  };
}

const awkward = fc.oneof(
  fc.jsonValue(),
  fc.array(fc.constantFrom('\\', '"', 'data:x', 'data', '{', '[', ':', '\\"', 'data:"\\')),
);

describe('the JSON meter', () => {
  it('counts levels and nodes as JSON.parse makes them, however the text is cut', () => {
    fc.assert(
      fc.property(awkward, fc.integer({ min: 1, max: 9 }), (value, piece) => {
        const text = JSON.stringify(value);
        const { depth, nodes } = shapeOf(JSON.parse(text));
        expect(measure(text, { depth, nodes }, piece)).toBeUndefined();
        if (depth > 0) {
          expect(measure(text, { depth: depth - 1 }, piece)).toBe('too-deep');
          expect(measure(text, { nodes: nodes - 1 }, piece)).toBe('too-many-nodes');
        }
      }),
      { numRuns: 500 },
    );
  });

  it('counts every character outside of data: URLs, however the text is cut', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.integer({ min: 1, max: 9 }), (a, b, piece) => {
        const url = JSON.stringify(`data:${b}`);
        const text = `[${JSON.stringify(`-${a}`)},${url}]`;
        const length = text.length - url.length + '"data:'.length;
        expect(measure(text, { length }, piece)).toBeUndefined();
        expect(measure(text, { length: length - 1 }, piece)).toBe('too-long');
      }),
    );
  });

  it.each([
    ['brackets that never close', '['.repeat(1_000_000), 'too-deep'],
    ['spaces without end', ' '.repeat(1_000_000), 'too-long'],
    ['a string that never ends', `"${'x'.repeat(1_000_000)}`, 'too-long'],
    ['closing brackets first', `${']'.repeat(50)}${'['.repeat(251)}`, 'too-deep'],
  ])('limits text that is not JSON: %s', (_, text, problem) => {
    expect(measure(text, { length: 100_000 })).toBe(problem);
  });
});
