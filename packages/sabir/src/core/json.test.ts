import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CLIENTS, runClient } from '../../test/real-clients.ts';
import { toJsonSafe } from './json.ts';

const cyclic: Record<string, unknown> = { a: 1 };
cyclic.self = cyclic;
const polluted = JSON.parse(
  '{"__proto__":{"x":1},"kept":{"__proto__":null,"b":[{"__proto__":1}]}}',
);
const cyclicAndPolluted = JSON.parse('{"__proto__":1,"a":{}}');
cyclicAndPolluted.a.back = cyclicAndPolluted;
let deep: unknown = 1;
for (let n = 0; n < 100_000; n++) deep = [deep];

describe('toJsonSafe', () => {
  it('gives plain data back as it is, the same object', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        // Those are left out: see below.
        fc.pre(!/"(__proto__|constructor)":/.test(JSON.stringify(value)));
        expect(toJsonSafe(value)).toBe(value);
      }),
    );
    const withHoles = { a: undefined, list: [1, undefined], constructor: 'Ferrari' };
    expect(toJsonSafe(withHoles)).toBe(withHoles);
  });

  it.each([
    ['undefined', undefined, null],
    ['a function', () => 1, null],
    ['a symbol', Symbol('s'), null],
    ['NaN', Number.NaN, null],
    ['a BigInt', { n: [1n] }, { n: ['1'] }],
    ['a cycle', cyclic, { a: 1, self: '[circular]' }],
    ['one object twice', [cyclic.a, [cyclic]], [1, [{ a: 1, self: '[circular]' }]]],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['an error', { failed: new Error('no') }, { failed: 'no' }],
    ['a map', new Map([[1, 2]]), {}],
    ['keys that clients refuse', polluted, { kept: { b: [{}] } }],
    ['such keys in a cycle', cyclicAndPolluted, { a: { back: '[circular]' } }],
    ['a constructor key', { constructor: { prototype: 1 }, a: 1 }, { a: 1 }],
    ['no constructor', { constructor: null, a: 1 }, { a: 1 }],
    ['a constructor that JSON writes as null', { constructor: Number.NaN, a: 1 }, { a: 1 }],
    [
      'a constructor whose toJSON gives null',
      { constructor: new Date(Number.NaN), a: 1 },
      { a: 1 },
    ],
    ['nesting without end', deep, '[unreadable]'],
    [
      'a getter that throws',
      {
        get x() {
          throw new Error('no');
        },
      },
      '[unreadable]',
    ],
  ])('makes %s safe', (_, value, safe) => {
    expect(toJsonSafe(value)).toEqual(safe);
  });

  it('makes anything into what every client parses', async () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withSparseArray: true,
      withTypedArray: true,
      key: fc.oneof(
        fc.string(),
        fc.constantFrom('__proto__', 'constructor', 'prototype', 'toJSON'),
      ),
    });
    await fc.assert(
      fc.asyncProperty(anything, async (value) => {
        const data = toJsonSafe(value);
        for (const { name } of CLIENTS) {
          const { status } = await runClient(name, [
            { type: 'start', messageId: 'm' },
            { type: 'data-x', data },
            { type: 'finish' },
          ]);
          expect(status, name).toBe('ready');
        }
      }),
      { numRuns: 300 },
    );
  });
});
