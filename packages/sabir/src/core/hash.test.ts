import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hash128 } from './hash.ts';

describe('hash128', () => {
  it('names a text by 32 hexadecimal digits, the same each time', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(hash128(text)).toMatch(/^[0-9a-f]{32}$/);
        expect(hash128(text)).toBe(hash128(text));
      }),
    );
  });

  it('names 200,000 similar texts differently, in each of its halves', () => {
    const texts = Array.from({ length: 200_000 }, (_, n) => `["carl","submit-message","m${n}"]`);
    const names = texts.map(hash128);
    expect(new Set(names.map((name) => name.slice(0, 16))).size).toBe(texts.length);
    expect(new Set(names.map((name) => name.slice(16))).size).toBe(texts.length);
  });

  it('changes about half of its bits with one bit of the text', () => {
    let changed = 0;
    const rounds = 500;
    for (let n = 0; n < rounds; n++) {
      const text = `a message of some length ${n}`;
      const other = String.fromCharCode(text.charCodeAt(0) ^ 1) + text.slice(1);
      const bits = BigInt(`0x${hash128(text)}`) ^ BigInt(`0x${hash128(other)}`);
      changed += bits.toString(2).replaceAll('0', '').length;
    }
    expect(changed / rounds).toBeGreaterThan(60);
    expect(changed / rounds).toBeLessThan(68);
  });
});
