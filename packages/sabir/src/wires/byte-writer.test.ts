import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createByteWriter } from './byte-writer.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('"', '\\', '\n', '\ud800'),
);
/** Longer than what there is room for at first, and than what is kept. */
const LENGTHS = [0, 12, 64 * 1024, 2 * 1024 * 1024];

describe('a writer of bytes', () => {
  it('gives what was written, in its order, as JSON and an encoder would', () => {
    const writer = createByteWriter();
    const write = fc.record({ as: fc.constantFrom('text', 'json', 'bytes'), text });
    fc.assert(
      fc.property(fc.array(write), fc.constantFrom(...LENGTHS), (writes, length) => {
        let expected = 'x'.repeat(length);
        writer.text(expected);
        for (const { as, text } of writes) {
          if (as === 'text') writer.text(text);
          else if (as === 'json') writer.json(text);
          else writer.bytes(bytes(text));
          expected += as === 'json' ? JSON.stringify(text) : text;
        }
        expect(Buffer.compare(writer.take(), bytes(expected))).toBe(0);
      }),
    );
  });

  it('keeps its hands off what was taken, and forgets what was dropped', () => {
    const writer = createByteWriter();
    writer.text('first');
    const first = writer.take();
    writer.text('half of');
    writer.drop();
    writer.json('second');
    expect(new TextDecoder().decode(writer.take())).toBe('"second"');
    expect(new TextDecoder().decode(first)).toBe('first');
  });
});
