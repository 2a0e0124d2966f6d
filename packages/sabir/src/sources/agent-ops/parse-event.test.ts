import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createEventParser } from './parse-event.ts';

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  fc.constantFrom('', '"', '\\', '"}', '","x":"', '\n', '\u2028', '{"delta":"', '?', '\\u0041'),
);
const bytes = (frame: string) => new TextEncoder().encode(frame);
const id = fc.constantFrom('turn-1', 'turn-2');
const event = fc.oneof(
  fc.record({ type: fc.constant('message.part.text-delta'), turnId: id, delta: text }),
  fc.record({ type: fc.constant('chunk'), content: text, messageId: id, channelType: text }),
  fc.record({ type: fc.constant('x'), deep: fc.record({ delta: text }), delta: text }),
  fc.record({ delta: text, content: text, deep: fc.record({ content: text }) }),
  fc.record({ type: text, data: fc.jsonValue() }),
  fc.jsonValue(),
);

describe('frames of one socket', () => {
  it('say what a JSON parser reads in them, whatever came before', () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 2, maxLength: 12 }), fc.boolean(), (events, raw) => {
        const parse = createEventParser(10_000);
        for (const given of events) {
          const frame = JSON.stringify(given);
          expect(parse(raw ? bytes(frame) : frame)).toEqual(JSON.parse(frame));
        }
      }),
      { numRuns: Number(process.env.PARSE_RUNS ?? 3_000) },
    );
  });

  it('are told as they are where they are no JSON, also between good ones', () => {
    const parser = createEventParser(10_000);
    const parse = (frame: string) => parser(bytes(frame));
    const delta = (raw: string) => `{"type":"chunk","content":"${raw}","messageId":"t"}`;
    expect(parse(delta('one'))).toEqual({ type: 'chunk', content: 'one', messageId: 't' });
    for (const raw of ['a"b', 'a\nb', 'a\\', '\\x']) expect(parse(delta(raw))).toBe(delta(raw));
    expect(parse(delta('two'))).toEqual({ type: 'chunk', content: 'two', messageId: 't' });
    expect(parse(delta('').slice(0, -3))).toBeTypeOf('string');
    expect(parse(delta(''))).toEqual({ type: 'chunk', content: '', messageId: 't' });
  });

  it('are not read past a length', () => {
    const parse = createEventParser(60);
    const delta = (said: string) => JSON.stringify({ type: 'chunk', content: said });
    expect(parse(delta('short'))).toMatchObject({ content: 'short' });
    const long = delta('long'.repeat(20));
    expect(parse(long)).toBe(`(a frame of ${long.length} characters)`);
    expect(parse(bytes(long))).toBe(`(a frame of ${long.length} bytes)`);
  });

  it('give each its own event', () => {
    const parse = createEventParser(10_000);
    const first = parse(bytes('{"type":"chunk","content":"a"}'));
    const second = parse(bytes('{"type":"chunk","content":"b"}'));
    expect([first, second]).toEqual([
      { type: 'chunk', content: 'a' },
      { type: 'chunk', content: 'b' },
    ]);
  });
});
