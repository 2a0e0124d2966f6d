/** Cuts before the first chunk of a turn, and between an error and what ends the turn. */
import { expect, it } from 'vitest';
import {
  answerAll,
  CHUNKS,
  collect,
  cursorOf,
  SEND,
  startTransport,
  TEXTS,
} from '../../test/scripted-transport.ts';
import { SSE, toFrames } from '../../test/scripted-turn-server.ts';
import type { Chunk } from '../core/chunks.ts';

const HEAD = { ...SSE, 'x-sabir-turn': 'turn:1' };

it('asks for the turn that was joined, though it ended before its first chunk came', async () => {
  const { transport, requests } = await startTransport((request, response, index) => {
    if (index === 0) {
      response.writeHead(200, HEAD).flushHeaders();
      setTimeout(() => response.destroy(), 20);
    } else if (cursorOf(request)) answerAll(request, response);
    // What a gateway says of a turn that has ended to whoever names none.
    else response.writeHead(204).end();
  });
  expect(await collect(await transport.reconnectToStream({ chatId: 'c1' }))).toEqual(CHUNKS);
  expect(requests.map(cursorOf)).toEqual([undefined, 'turn:1:0']);
});

it('asks for a turn that was cut before its first chunk by its name, not by sending again', async () => {
  const { transport, requests } = await startTransport((_request, response, index) => {
    response.writeHead(200, HEAD);
    if (index > 0) {
      response.end(TEXTS.join(''));
      return;
    }
    response.flushHeaders();
    setTimeout(() => response.destroy(), 20);
  });
  expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
  expect(requests.map(({ method }) => method)).toEqual(['POST', 'GET']);
  expect(requests.map(cursorOf)).toEqual([undefined, 'turn:1:0']);
});

it('goes on when the first response is cut, although three requests before it got none', async () => {
  const { transport, requests } = await startTransport((request, response, index) => {
    if (index < 3) response.destroy();
    else if (index > 3) answerAll(request, response);
    else {
      response.writeHead(200, HEAD).flushHeaders();
      setImmediate(() => response.destroy());
    }
  });
  expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
  expect(requests).toHaveLength(5);
});

it('sends again when the server has forgotten a turn that nothing was seen of', async () => {
  const { transport, requests } = await startTransport((_request, response, index) => {
    if (index === 1) {
      response.writeHead(204).end();
      return;
    }
    response.writeHead(200, HEAD);
    if (index === 2) {
      response.end(TEXTS.join(''));
      return;
    }
    response.flushHeaders();
    setTimeout(() => response.destroy(), 20);
  });
  expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
  expect(requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST']);
  expect(requests[2]?.body).toBe(requests[0]?.body);
});

const FAILED: Chunk[] = [
  { type: 'start', messageId: 'm' },
  { type: 'error', errorText: 'It broke.' },
  { type: 'finish', finishReason: 'error' },
];
const FAILED_TEXTS = toFrames(FAILED).map(({ text }) => text);

it('goes on to the finish behind an error when the body ends in between', async () => {
  const { transport, requests } = await startTransport((_request, response, index) => {
    response.writeHead(200, HEAD);
    if (index === 0) response.end(FAILED_TEXTS.slice(0, 2).join(''));
    else response.end(FAILED_TEXTS.slice(2).join(''));
  });
  expect(await collect(await transport.sendMessages(SEND))).toEqual(FAILED);
  expect(requests.map(cursorOf)).toEqual([undefined, 'turn:1:2']);
});

it('ends with an error behind which the server has nothing', async () => {
  const { transport, requests } = await startTransport((_request, response, index) => {
    if (index === 0) response.writeHead(200, HEAD).end(FAILED_TEXTS.slice(0, 2).join(''));
    else response.writeHead(204).end();
  });
  expect(await collect(await transport.sendMessages(SEND))).toEqual(FAILED.slice(0, 2));
  expect(requests).toHaveLength(2);
});
