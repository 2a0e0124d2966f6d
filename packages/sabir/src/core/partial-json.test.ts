import { inspect, isDeepStrictEqual } from 'node:util';
import { parsePartialJson } from 'ai-v7';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createPartialJson } from './partial-json.ts';

function parse(text: string): unknown {
  const json = createPartialJson();
  json.push(text);
  return json.value;
}

const oracle = async (text: string) => (await parsePartialJson(text)).value;

/** Whether it is what JSON can say: without NaN, holes, arrays with keys or a class. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return !Number.isNaN(value);
  const isOfItsKind = Array.isArray(value)
    ? Object.keys(value).length === value.length
    : Object.getPrototypeOf(value) === Object.prototype;
  return isOfItsKind && Object.values(value).every(isPlain);
}

// Not `toStrictEqual`: that takes a key named `constructor` for the object's class.
function expectSame(actual: unknown, expected: unknown, text: string): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Error(`${text}\n  gave ${inspect(actual)}\n  not  ${inspect(expected)}`);
}

/** After every prefix the live tree is what AI SDK makes of that prefix. */
async function expectSameAtEveryPrefix(text: string): Promise<void> {
  const json = createPartialJson();
  for (let end = 0; end <= text.length; end++) {
    if (end > 0) json.push(text.slice(end - 1, end));
    const prefix = text.slice(0, end);
    expectSame(json.value, await oracle(prefix), prefix);
  }
}

// Where AI SDK does worse: it takes an escaped quote in a key for its end and, at a colon behind it,
// loses the tree; and it refuses keys that are harmless here.
const unescaped = (text: string) =>
  text.replaceAll(/\\u([\da-f]{4})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
const isException = (text: string) =>
  /\\"[^"]*:/.test(text) ||
  /"__proto__"|"constructor"[\s\S]*"prototype"|"prototype"[\s\S]*"constructor"/.test(
    unescaped(text),
  );
// And it takes a number for finished at the plus sign of `1e+21`.
const withoutPlus = (text: string) => text.replaceAll(/(e)\+/gi, '$1');

const blanks = fc.stringMatching(/^[ \n\t\r]{0,3}$/);
const awkwardNumbers = fc.constantFrom('1e21', '-1.5E-7', '0', '-0', '1e5', '12.50', '-3E2');
const string = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  fc.constantFrom('', '"', '\\', '\u2028', 'é', '😀', '\ud83d', 'a\nb', '\u0000', '/', '{"a":[1'),
);
const key = fc.oneof(fc.string(), fc.constantFrom('constructor', 'toString', '', 'prototype'));

/** JSON text with blanks, escapes and number forms that JSON.stringify never writes. */
const { json: awkwardJson } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('true', 'false', 'null'),
    awkwardNumbers,
    awkwardString(string),
    fc
      .array(fc.tuple(blanks, tie('json'), blanks), { maxLength: 4 })
      .map((items) => `[${items.map((item) => item.join('')).join(',')}]`),
    fc
      .array(fc.tuple(blanks, awkwardString(key), blanks, blanks, tie('json'), blanks), {
        maxLength: 4,
      })
      .map(
        (items) => `{${items.map(([a, k, b, c, v, d]) => `${a}${k}${b}:${c}${v}${d}`).join(',')}}`,
      ),
  ),
}));

function awkwardString(content: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(content, fc.boolean()).map(([value, isEscaped]) => {
    if (!isEscaped) return JSON.stringify(value);
    const codes = Array.from({ length: value.length }, (_, at) => value.charCodeAt(at));
    return `"${codes.map((code) => `\\u${code.toString(16).padStart(4, '0')}`).join('')}"`;
  });
}

describe('createPartialJson', () => {
  test('gives what AI SDK gives after every prefix of any document', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.json({ maxDepth: 4 }),
        fc.constantFrom(0, 1, '\t'),
        async (text, indent) => {
          const document = withoutPlus(JSON.stringify(JSON.parse(text), null, indent));
          fc.pre(!isException(document));
          await expectSameAtEveryPrefix(document);
        },
      ),
      { numRuns: 150 },
    );
  });

  test('gives the same with blanks, escapes and unusual numbers', async () => {
    await fc.assert(
      fc.asyncProperty(fc.tuple(blanks, awkwardJson, blanks), async (pieces) => {
        const document = withoutPlus(pieces.join(''));
        fc.pre(!isException(document));
        await expectSameAtEveryPrefix(document);
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    '[1e+5]',
    '1e+5',
    '{"a":1,"a":-2}',
    '{"a\\"b":1}',
    '{"":{"":""}}',
    '{"a":{"b":1},"a":{"c":2}}',
    '{"length":5,"width":[{"length":7},8]}',
    '{"t":true,"f":false,"n":null}',
    '["\\u00e9\\ud83d\\ude00\\"\\\\\\/\\b\\f\\n\\r\\t"]',
    '["{\\"a\\":[1"]',
    '{"constructor":1,"toString":2}',
    '{"constructor":{"x":1}}',
    ' [ [ ] , { } ] ',
  ])('gives the same for %j', expectSameAtEveryPrefix);

  test('reads an exponent with a plus sign at once', () => {
    const values = Array.from('{"a":1e+21 ,"b":-2}', (_, at) =>
      JSON.stringify(parse('{"a":1e+21 ,"b":-2}'.slice(0, at + 1))),
    );
    expect(values).toEqual([
      ...Array(5).fill('{}'),
      ...Array(3).fill('{"a":1}'),
      '{"a":100}',
      ...Array(8).fill('{"a":1e+21}'),
      ...Array(2).fill('{"a":1e+21,"b":-2}'),
    ]);
  });

  test('reads on where an escaped quote and a colon in a key make AI SDK lose the tree', async () => {
    const text = '{"a\\":b":"v","c":[1';
    expect(parse(text)).toEqual({ 'a":b': 'v', c: [1] });
    expect(parse(text.slice(0, 12))).toEqual({ 'a":b': 'v' });
    expect(await oracle(text.slice(0, 12))).toBeUndefined();
  });

  test('does not depend on how the text is split, JSON or not', () => {
    const alphabet = fc.constantFrom(
      ...'{}[]"",:\\utfrue nul0159-+.eEx\n\u0001😀',
      '\ud83d',
      '"length"',
    );
    const anyText = fc.string({ unit: alphabet, maxLength: 30 });
    const broken = fc
      .tuple(awkwardJson, fc.nat(), anyText)
      .map(([text, at, junk]) =>
        [text.slice(0, at % (text.length + 1)), junk, text.slice(at % (text.length + 1))].join(''),
      );
    fc.assert(
      fc.property(
        fc.oneof(awkwardJson, anyText, broken),
        fc.array(fc.nat({ max: 9 })),
        (text, sizes) => {
          const json = createPartialJson();
          let at = 0;
          for (const size of sizes) {
            json.push(text.slice(at, at + size));
            at += size;
            expectSame(json.value, parse(text.slice(0, at)), text.slice(0, at));
          }
          json.push(text.slice(at));
          const whole = parse(text);
          expectSame(json.value, whole, text);
          expect(isPlain(whole)).toBe(true);
        },
      ),
      { numRuns: 3000 },
    );
  });

  test('keeps what was read before text that is not JSON', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { minLength: 1 }), fc.string(), (items, junk) => {
        const before = JSON.parse(JSON.stringify(items));
        fc.pre(!JSON.stringify(before).includes('__proto__'));
        const text = JSON.stringify(before);
        expectSame(parse(text + junk), before, text + junk);
        const open = parse(`${text.slice(0, -1)},${junk}`) as unknown[];
        expectSame(open.slice(0, before.length), before, `${text.slice(0, -1)},${junk}`);
      }),
    );
  });

  test.each([
    ['', undefined],
    ['hello ]} wrong', undefined],
    ['[1 2,,3,]', [1, 2, 3]],
    ['[1]]}]2', [1]],
    ['{"a":1}{"a":2}', { a: 1 }],
    ['[] "length" -1', []],
    ['[{} "length" -1]', [{}, 'length', -1]],
    ['{a:1,"b" 2}', { a: 1, b: 2 }],
    ['{"a":[1}]', { a: [1] }],
    ['{"a":x,"b":-,"c":NaN,"d":1}', { d: 1 }],
    ['[01,1.2.3,1-2]', [1, 1.2, 1]],
    ['["a\\xb\\u12zz","c"]', ['a"\\xb"\\u12zz', 'c']],
    ['["a\nb"]', ['a\nb']],
    ['\ufeff[1]', [1]],
  ])('makes of %j what it can', (text, value) => {
    expectSame(parse(text), value, text);
  });

  test.each([
    ['{"__proto__":{"polluted":1},"a":1}', { a: 1 }],
    ['{"__proto__":null}', {}],
    ['{"__proto__":"a","b":["c"]}', { b: ['c'] }],
    ['{"a":{"\\u005f_proto__":[1]}}', { a: {} }],
    ['{__proto__:{"polluted":1}}', {}],
    [
      '{"constructor":{"prototype":{"polluted":1}}}',
      { constructor: { prototype: { polluted: 1 } } },
    ],
  ])('pollutes nothing with %s', (text, value) => {
    expectSame(parse(text), value, text);
    expect(Object.getPrototypeOf(parse(text))).toBe(Object.prototype);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test('writes into the tree that it gave before', () => {
    const json = createPartialJson('{"a":["b');
    const tree = json.value;
    json.push('c"],"d":1}');
    expect(tree).toEqual({ a: ['b'] });
    expect(json.value).toBe(tree);
    expect(tree).toEqual({ a: ['bc'], d: 1 });
  });

  test('reads in linear time however small the pieces', () => {
    const document = JSON.stringify({
      rows: Array.from({ length: 20_000 }, (_, n) => ({ n, text: 'some "text"' })),
    });
    const json = createPartialJson();
    const began = performance.now();
    for (const char of document) {
      json.push(char);
      void json.value;
    }
    expect(performance.now() - began).toBeLessThan(3000);
    expect(json.value).toEqual(JSON.parse(document));
  });

  test.each([
    ['a string', '"', 'some words, '],
    ['escapes', '"', '\\n\\u00e9\\"\\\\'],
    ['a number', '[', '123456789012'],
    ['a word', '', 'notanyliteral'],
    ['blanks', '[', ' \n\t        '],
    ['brackets', '', '[[[[[[[[[[[['],
    ['too many brackets', '[', ']]]]]]]]]]]]'],
    ['commas', '[', ',,,,,,,,,,,,'],
    ['a key', '{"', 'long key ...'],
  ])('reads %s without an end in linear time', (_name, begin, piece) => {
    const json = createPartialJson(begin);
    const began = performance.now();
    for (let at = 0; at < 40_000; at++) {
      json.push(piece);
      void json.value;
    }
    expect(performance.now() - began).toBeLessThan(3000);
  });
});
