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

// AI SDK takes an escaped quote in a key for its end and, at a colon behind it, loses the tree. It
// also forgives a refused `constructor` that is said again.
const unescaped = (text: string) =>
  text.replaceAll(/\\u([\da-f]{4})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
const isException = (text: string) =>
  /\\"[^"]*:/.test(text) || /"constructor"[\s\S]*"constructor"/.test(unescaped(text));

const blanks = fc.stringMatching(/^[ \n\t\r]{0,3}$/);
const awkwardNumbers = fc.constantFrom('1e+21', '-1.5E-7', '0', '-0', '1e5', '12.50', '-3e+2');
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
          const document = JSON.stringify(JSON.parse(text), null, indent);
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
        const document = pieces.join('');
        fc.pre(!isException(document));
        await expectSameAtEveryPrefix(document);
      }),
      { numRuns: 200 },
    );
  });

  test('gives the same for text that is not JSON', async () => {
    const alphabet = fc.constantFrom(...'{}[]",:\\tfrue nul0159-+.eEx\n\u0001');
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: alphabet, maxLength: 14 }), async (text) => {
        fc.pre(!/\\/.test(text));
        await expectSameAtEveryPrefix(text);
      }),
      { numRuns: 1500 },
    );
    await fc.assert(
      fc.asyncProperty(
        awkwardJson,
        fc.nat(),
        fc.string({ unit: alphabet, maxLength: 3 }),
        async (text, at, junk) => {
          const broken =
            text.slice(0, at % (text.length + 1)) + junk + text.slice(at % (text.length + 1));
          fc.pre(!/\\/.test(broken) && !isException(broken));
          await expectSameAtEveryPrefix(broken);
        },
      ),
      { numRuns: 500 },
    );
  });

  test.each([
    '1e+5x',
    '[1e+5',
    '{"a":1e+5,"b":-2}',
    '{"a":1e+5 }',
    '[tr x',
    '[truex]',
    '[1. ]',
    '[1,]',
    '01',
    '[01',
    '{"a" x',
    '{"a":1 x}',
    '"\\u12"',
    '"\\u12zz34"',
    '"\\x"',
    '"a\nb"',
    '{"a":1,"a":-2}',
    '[-]',
    '[1e++5]',
    '[1e+5.2]',
    '[1-2]',
    '{"a":[1}',
    '{"a\\"b":1}',
    '{"a":{"b":1},"a":{"c":2}}',
    '  [ ] x',
    '\ufeff[1]',
    '{"constructor":1,"prototype":2}',
    '{"constructor":{"x":{"prototype":1}}}',
  ])('gives the same for %j', expectSameAtEveryPrefix);

  test('does not depend on how the text is split', () => {
    fc.assert(
      fc.property(
        awkwardJson,
        fc.array(fc.nat({ max: 20 })),
        fc.boolean(),
        (text, sizes, isRead) => {
          const json = createPartialJson();
          let at = 0;
          for (const size of sizes) {
            json.push(text.slice(at, at + size));
            at += size;
            if (isRead) void json.value;
          }
          json.push(text.slice(at));
          expectSame(json.value, parse(text), text);
        },
      ),
    );
  });

  test('keeps the tree where an escaped quote and a colon in a key make AI SDK lose it', async () => {
    const text = '{"a\\":b":"v","c":[1';
    expect(parse(text)).toEqual({ 'a":b': 'v', c: [1] });
    expect(parse(text.slice(0, 12))).toEqual({ 'a":b': 'v' });
    expect(await oracle(text.slice(0, 12))).toBeUndefined();
  });

  test.each([
    '{"__proto__":{"polluted":1}}',
    '{"a":{"\\u005f_proto__":1}}',
    '{"constructor":{"prototype":{"polluted":1}}}',
  ])('refuses %s, as AI SDK does, and pollutes nothing', async (text) => {
    await expectSameAtEveryPrefix(text);
    expect(parse(text)).toBeUndefined();
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
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
});
