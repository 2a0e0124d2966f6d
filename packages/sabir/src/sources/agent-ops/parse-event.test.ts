import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { createEventParser } from './parse-event.ts';

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  fc.constantFrom('', '"', '\\', '"}', '","x":"', '\n', '\u2028', '{"delta":"', '?', '\\u0041'),
);
const bytes = (frame: string) => new TextEncoder().encode(frame);
const id = fc.constantFrom('turn-1', 'turn-2');
const seq = fc.oneof(
  fc.nat(),
  fc.nat({ max: 12 }),
  fc.integer(),
  fc.double({ noDefaultInfinity: true, noNaN: true }),
  fc.maxSafeInteger(),
  text,
);
const event = fc.oneof(
  fc.record({ type: fc.constant('message.part.text-delta'), turnId: id, delta: text, seq }),
  fc.record({ type: fc.constant('message.part.text-delta'), seq, delta: text }),
  fc.record({ type: fc.constant('x'), delta: text, deep: fc.record({ delta: text, seq }), seq }),
  fc.record({ type: fc.constant('x'), delta: text, seq: fc.record({ seq }) }),
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

  it('are told apart by their text and their number', () => {
    const parser = createEventParser(10_000);
    const delta = (raw: string, number: string) => `{"type":"d","delta":"${raw}","seq":${number}}`;
    const parse = (raw: string, number: string) => parser(bytes(delta(raw, number)));
    expect(parse('one', '9')).toEqual({ type: 'd', delta: 'one', seq: 9 });
    for (const number of [
      '10',
      '0',
      '999999999999999',
      '12345678901234567890',
      '-3',
      '1.5',
      '2e3',
    ]) {
      expect(parse('two', number)).toEqual({ type: 'd', delta: 'two', seq: Number(number) });
    }
    for (const number of ['012', '00', '', '1 2', '0x1', '+1']) {
      expect(parse('three', number)).toBe(delta('three', number));
    }
    expect(parse('a","seq":7,"x":"', '8')).toEqual({ type: 'd', delta: 'a', seq: 8, x: '' });
    expect(parse('four', '11')).toEqual({ type: 'd', delta: 'four', seq: 11 });
  });

  it('are read without a parser once one of their like was, also where they are numbered', () => {
    const parser = createEventParser(10_000);
    const frames = [1, 2, 13].map((number) =>
      bytes(JSON.stringify({ type: 'd', turnId: 't', delta: `word ${number}`, seq: number })),
    );
    const parse = vi.spyOn(JSON, 'parse');
    const events = frames.map((frame) => {
      const before = parse.mock.calls.length;
      return [parser(frame), parse.mock.calls.length > before];
    });
    parse.mockRestore();
    expect(events).toEqual([
      [{ type: 'd', turnId: 't', delta: 'word 1', seq: 1 }, true],
      [{ type: 'd', turnId: 't', delta: 'word 2', seq: 2 }, false],
      [{ type: 'd', turnId: 't', delta: 'word 13', seq: 13 }, false],
    ]);
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
