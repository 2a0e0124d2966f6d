import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CLIENTS, runClientOnBytes } from '../../test/real-clients.ts';
import type { Chunk } from './chunks.ts';
import { createSseDecoder, encodeSse, SSE_DONE, type SseFrame } from './sse.ts';

const encoder = new TextEncoder();

function decode(...pieces: Array<Uint8Array | string>): SseFrame[] {
  const frames: SseFrame[] = [];
  const decoder = createSseDecoder({ frame: (frame) => frames.push(frame) });
  for (const piece of pieces) decoder.push(piece);
  decoder.end();
  return frames;
}

function split(bytes: Uint8Array, sizes: number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return [...pieces, bytes.subarray(at)];
}

describe('encodeSse', () => {
  test('writes one data line', () => {
    expect(encodeSse({ type: 'text-delta', id: 't', delta: 'a\nb\r\n' })).toBe(
      'data: {"type":"text-delta","id":"t","delta":"a\\nb\\r\\n"}\n\n',
    );
  });

  test.each<[Chunk, string]>([
    [{ type: 'start', messageId: 'm' }, 'message-start'],
    [{ type: 'finish' }, 'message-finish'],
    [{ type: 'start-step' }, 'start-step'],
    [{ type: 'data-agent-status', data: 1 }, 'data-agent-status'],
  ])('names the event of %j', (chunk, event) => {
    expect(encodeSse(chunk, { id: 't1:7', eventName: true })).toBe(
      `event: ${event}\nid: t1:7\ndata: ${JSON.stringify(chunk)}\n\n`,
    );
  });

  test.each(['a\nb', 'a\rb', 'a\r\nevent: x', 'a\0'])('leaves out the unsafe id %j', (id) => {
    expect(encodeSse({ type: 'abort' }, { id })).toBe('data: {"type":"abort"}\n\n');
  });

  test('lets no chunk type forge a line', () => {
    const chunk: Chunk = { type: 'data-x\ndata: {"type":"abort"}\n\n', data: null };
    expect(decode(encodeSse(chunk, { eventName: true }))).toEqual([
      { data: JSON.stringify(chunk) },
    ]);
  });

  test.each(CLIENTS)(
    'is read by $name, event names, ids and comments included',
    async ({ name }) => {
      const chunks: Chunk[] = [
        { type: 'start', messageId: 'm1' },
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'grüß 😀' },
        { type: 'text-end', id: 't' },
        { type: 'finish' },
      ];
      const body = chunks.map((chunk, at) =>
        encodeSse(chunk, { id: `t:${at + 1}`, eventName: true }),
      );
      const result = await runClientOnBytes(name, `: hello\n\n${body.join('')}${SSE_DONE}`);
      expect(result.status).toBe('ready');
      expect(result.message?.parts).toMatchObject([{ type: 'text', text: 'grüß 😀' }]);
    },
  );
});

describe('createSseDecoder', () => {
  const frame = fc.record(
    {
      event: fc.constantFrom('message-start', 'ü', 'x y'),
      id: fc.constantFrom('1', 't:2', '😀'),
      data: fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text)),
      comment: fc.constantFrom('ping', 'é'),
    },
    { requiredKeys: ['data'] },
  );

  test('decodes any split of the bytes to the same frames', () => {
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 5 }),
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.array(fc.nat({ max: 7 }), { maxLength: 60 }),
        (frames, newline, sizes) => {
          const lines = frames.flatMap(({ event, id, data, comment }) => [
            ...(comment === undefined ? [] : [`: ${comment}`]),
            ...(event === undefined ? [] : [`event: ${event}`]),
            ...(id === undefined ? [] : [`id: ${id}`]),
            `data: ${data}`,
            '',
          ]);
          // With bare CRs the last one could still be half of a CRLF, so a comment follows it.
          const bytes = encoder.encode([...lines, ': end', ''].join(newline));
          expect(decode(...split(bytes, sizes))).toEqual(
            frames.map(({ comment: _, ...rest }) => rest),
          );
        },
      ),
    );
  });

  test('takes strings as well', () => {
    expect(decode('data: ', '1\n', '\n', 'data: 2\n\n')).toEqual([{ data: '1' }, { data: '2' }]);
  });

  test('drops a frame that was cut before its blank line', () => {
    expect(decode('data: 1\n\ndata: 2\n')).toEqual([{ data: '1' }]);
    expect(decode('data: 1\n\ndata: 2')).toEqual([{ data: '1' }]);
  });

  test('reads nothing after its end', () => {
    const frames: SseFrame[] = [];
    const decoder = createSseDecoder({ frame: (frame) => frames.push(frame) });
    decoder.push('data: 1\n');
    decoder.end();
    decoder.push('\n');
    decoder.push('data: 2\n\n');
    expect(frames).toEqual([]);
  });

  test('counts every byte, those of comments and of half characters too', () => {
    const counts: number[] = [];
    const decoder = createSseDecoder({
      frame: () => undefined,
      bytes: (count) => counts.push(count),
    });
    const [head, tail] = split(encoder.encode(': é\n\n'), [3]) as [Uint8Array, Uint8Array];
    decoder.push(head);
    decoder.push(tail);
    decoder.push(': é');
    expect(counts).toEqual([3, 3, 4]);
  });

  test('strips one byte order mark', () => {
    expect(decode(encoder.encode('\ufeffdata: 1\n\n'))).toEqual([{ data: '1' }]);
    expect(decode(encoder.encode('\ufeff\ufeffdata: 1\n\n'))).toEqual([]);
  });

  // The parser the AI SDK uses. It leaves the specification where it takes the characters "ï»¿"
  // for a byte order mark too: no text here has them, and the next test holds us to U+FEFF.
  test('reads whatever eventsource-parser reads, however it is split', () => {
    const piece = fc.constantFrom(
      ...['data', 'event', 'id', 'retry', 'dat', 'datas', 'Data', 'eve', 'i', ':', ': ', ' ', '\t'],
      ...['\n', '\r', '\r\n', '\n\n', '\r\r', '\r\n\r\n', '\ufeff', '\0', 'x', '1', 'é', '€', '😀'],
      ...['data: a', 'data:b', 'event: e', 'id: 1', 'id: \0', 'event:', 'id', ': ping', '\ud83d'],
    );
    // Bytes that are no UTF-8 as well, cut short or never to be completed.
    const raw = fc.constantFrom([0xff], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x98], [0x80]);
    const bytes = fc
      .array(fc.oneof({ weight: 12, arbitrary: piece }, { weight: 1, arbitrary: raw }), {
        maxLength: 40,
      })
      .map((parts) =>
        Uint8Array.from(
          parts.flatMap((part) => (typeof part === 'string' ? [...encoder.encode(part)] : part)),
        ),
      );
    const theirs = (feed: (parse: (text: string) => void) => void) => {
      const frames: SseFrame[] = [];
      const parser = createParser({ onEvent: (frame) => frames.push(frame) });
      feed((text) => parser.feed(text));
      return frames;
    };
    fc.assert(
      fc.property(bytes, fc.array(fc.nat({ max: 9 }), { maxLength: 60 }), (whole, sizes) => {
        const pieces = split(whole, sizes);
        const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
        expect(decode(...pieces)).toStrictEqual(
          theirs((parse) => {
            for (const part of pieces) parse(decoder.decode(part, { stream: true }));
          }),
        );
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (texts) => {
        expect(decode(...texts)).toStrictEqual(theirs((parse) => texts.forEach(parse)));
      }),
      { numRuns: 1000 },
    );
  });

  test('takes only U+FEFF for a byte order mark', () => {
    expect(decode('\xef\xbb\xbfdata: 1\n\n')).toEqual([]);
    expect(decode('', '\ufeff', 'data: 1\n\n')).toEqual([{ data: '1' }]);
  });

  test('an empty push completes nothing', () => {
    const [head, tail] = split(encoder.encode('data: é\n\n'), [7]) as [Uint8Array, Uint8Array];
    expect(decode(head, new Uint8Array(), '', tail)).toEqual([{ data: 'é' }]);
    expect(decode('data: 1\r', '', '\n', '\n')).toEqual([{ data: '1' }]);
  });

  test('joins a long line from its pieces', () => {
    const value = '0123456789é'.repeat(2000);
    const bytes = encoder.encode(`data: ${value}\n\n`);
    expect(decode(...split(bytes, Array(bytes.length).fill(1)))).toEqual([{ data: value }]);
  });

  test('lets what a callback throws through, and reads on with the next push', () => {
    const frames: SseFrame[] = [];
    const decoder = createSseDecoder({
      frame(frame) {
        frames.push(frame);
        if (frame.data === '1') throw new Error('no');
      },
    });
    expect(() => decoder.push('event: a\nid: 1\ndata: 1\n\ndata: lost\n\nda')).toThrow('no');
    decoder.push('data: 2\n\n');
    expect(frames).toEqual([{ event: 'a', id: '1', data: '1' }, { data: '2' }]);
  });

  test('reads nothing more when a frame ends it', () => {
    const frames: SseFrame[] = [];
    const decoder = createSseDecoder({
      frame(frame) {
        frames.push(frame);
        decoder.end();
      },
    });
    decoder.push('data: 1\n\ndata: 2\n\n');
    expect(frames).toEqual([{ data: '1' }]);
  });
});
