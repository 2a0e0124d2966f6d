import { safeValidateWebSocketChatTransportRequest } from 'ai-v7';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeSse, SSE_DONE } from '../../core/sse.ts';
import { createChunkFrames } from './encode.ts';
import { parseClientFrame } from './frames.ts';

const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'hi' }] }];
const common = {
  requestId: 'r1',
  id: 'c1',
  headers: { authorization: 'Bearer x' },
  body: { a: 1 },
};
const send = { type: 'send', trigger: 'submit-message', messageId: 'm1', messages, ...common };
const parse = (frame: unknown) => parseClientFrame(JSON.stringify(frame));

describe('parseClientFrame', () => {
  it('reads what the client sends, which its own validator accepts too', async () => {
    const { headers, body, requestId, id } = common;
    const message = { id, messages, trigger: 'submit-message', messageId: 'm1' };
    const frames = [
      [send, { type: 'send', requestId, id, headers, body, message }],
      [
        { type: 'resume', ...common },
        { type: 'resume', requestId, id, headers },
      ],
      [
        { type: 'abort', requestId },
        { type: 'abort', requestId },
      ],
    ];
    for (const [given, frame] of frames) {
      expect(parse(given)).toEqual({ frame });
      const checked = await safeValidateWebSocketChatTransportRequest({ value: given });
      expect(checked.success).toBe(true);
    }
  });

  it.each([
    ['an unknown type', { ...send, type: 'shout' }],
    ['no chat', { ...send, id: undefined }],
    ['a chat id that no address can carry', { ...send, id: '\ud800' }],
    ['a chat id that is too long', { ...send, id: 'x'.repeat(1_001) }],
    ['a header that is too long', { ...send, headers: { a: 'x'.repeat(8_001) } }],
    ['headers that are no strings', { ...send, headers: { a: 1 } }],
    ['a header with a line break', { ...send, headers: { a: 'b\r\nc: d' } }],
    ['a body that is a list', { ...send, body: [] }],
    ['a resume from a number', { type: 'resume', ...common, lastSequence: 4 }],
  ])('refuses %s, and knows which request it was', (_, frame) => {
    expect(parse(frame)).toMatchObject({ about: 'r1', problem: { code: 'bad-request' } });
  });

  it.each([
    ['text', 'hello'],
    ['nothing', ''],
    ['a list', '[]'],
    ['null', 'null'],
    ['no requestId', '{"type":"abort"}'],
    ['a long requestId', JSON.stringify({ type: 'abort', requestId: 'x'.repeat(201) })],
    ['deep nesting', '['.repeat(100_000)],
  ])('cannot tell the request of %s', (_, text) => {
    expect(parseClientFrame(text)).toMatchObject({ about: undefined });
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        parseClientFrame(text);
      }),
    );
    const keys = fc.constantFrom('type', 'requestId', 'id', 'headers', 'body', 'messages');
    const values = fc.oneof(fc.constantFrom('send', 'resume', 'abort', 'r1'), fc.jsonValue());
    fc.assert(fc.property(fc.dictionary(keys, values), (frame) => void parse(frame)));
  });
});

describe('createChunkFrames', () => {
  it('numbers the chunks of SSE from 0, however its bytes are split, and leaves out the rest', () => {
    const chunk = { type: 'text-delta', id: '1', delta: 'naïve 🚢\n\ndata: [DONE]' } as const;
    const sse = `: keep-alive\n\n${encodeSse(chunk, { id: 't:1', eventName: true }).repeat(2)}${SSE_DONE}`;
    const bytes = new TextEncoder().encode(sse);
    for (const size of [1, 7, bytes.length]) {
      const frames: string[] = [];
      const { push } = createChunkFrames('r"1', (frame) => frames.push(frame));
      for (let at = 0; at < bytes.length; at += size) push(bytes.subarray(at, at + size));
      expect(frames.map((frame) => JSON.parse(frame))).toEqual(
        [0, 1].map((sequence) => ({ type: 'chunk', requestId: 'r"1', sequence, chunk })),
      );
    }
  });
});
