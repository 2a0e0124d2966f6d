import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CLIENTS, runClientOnBytes } from '../test/real-clients.ts';
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
});
