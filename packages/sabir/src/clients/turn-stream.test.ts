import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { PAGE_EVENTS, stubPage } from '../../test/page-events.ts';
import {
  answerAll,
  CHUNKS,
  collect,
  cursorOf,
  SEND,
  startTransport,
  TEXTS,
  WAIT,
} from '../../test/scripted-transport.ts';
import { SSE, toFrames } from '../../test/scripted-turn-server.ts';
import type { Chunk } from '../core/chunks.ts';
import { TURN_LOST } from '../core/errors.ts';
import { SSE_DONE } from '../core/sse.ts';

describe('reading', () => {
  it('delivers while the answer is written, and closes with finish, not with the body', async () => {
    let response: ServerResponse | undefined;
    const { transport, connections } = await startTransport((_request, given) => {
      response = given.writeHead(200, SSE);
      response.flushHeaders();
    });
    const stream = await transport.sendMessages(SEND);
    const reader = stream.getReader();
    for (const [i, text] of TEXTS.entries()) {
      response?.write(text);
      expect(await reader.read()).toEqual({ done: false, value: CHUNKS[i] });
    }
    expect(await reader.read()).toEqual({ done: true, value: undefined });
    // The server never ends its body: it is let go after a moment.
    await vi.waitUntil(async () => (await connections()) === 0, WAIT);
  });

  it('leaves a connection to be used again', async () => {
    const { transport, connections } = await startTransport(answerAll);
    for (let i = 0; i < 5; i++) await collect(await transport.sendMessages(SEND));
    // The next may begin while the one before it is being put away.
    expect(await connections()).toBeLessThanOrEqual(2);
  });

  it('holds back what no number covers yet', async () => {
    const frames = toFrames(CHUNKS, 'turn:1', (index) => index !== 1);
    let response: ServerResponse | undefined;
    const { transport } = await startTransport((_request, given) => {
      response = given.writeHead(200, SSE);
      response.write((frames[0]?.text ?? '') + frames[1]?.text);
    });
    const reader = (await transport.sendMessages(SEND)).getReader();
    expect((await reader.read()).value).toEqual(CHUNKS[0]);
    const second = reader.read();
    expect(await Promise.race([second, setTimeout(400, 'held')])).toBe('held');
    response?.write(frames[2]?.text);
    expect([(await second).value, (await reader.read()).value]).toEqual(CHUNKS.slice(1, 3));
    await reader.cancel();
  });

  it.each([
    ['an error and an end outside of the log', ['text-end', 'error', 'finish']],
    ['an error alone', ['error']],
    ['an end alone', ['finish']],
  ])('delivers %s', async (_name, types) => {
    const last = types.map((type) => ({ type, ...(type === 'text-end' ? { id: 't' } : {}) }));
    const outside = last.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
    for (const end of [SSE_DONE, '']) {
      const { transport, requests } = await startTransport((_request, response) => {
        response.writeHead(200, SSE).end(TEXTS.slice(0, 3).join('') + outside + end);
      });
      const chunks = await collect(await transport.sendMessages(SEND));
      expect(chunks).toEqual([...CHUNKS.slice(0, 3), ...last]);
      expect(requests).toHaveLength(1);
    }
  });

  it('goes for the finish behind an error, and does without', async () => {
    const failed: Chunk[] = [
      { type: 'start', messageId: 'm' },
      { type: 'error', errorText: 'no' },
      { type: 'finish' },
    ];
    const texts = toFrames(failed).map(({ text }) => text);
    for (const status of [200, 204]) {
      const { transport } = await startTransport((request, response, index) => {
        if (index === 0) {
          response.writeHead(200, SSE).write(texts.slice(0, 2).join(''), () => response.destroy());
          return;
        }
        expect(cursorOf(request)).toBe('turn:1:2');
        response.writeHead(status, SSE).end(status === 200 ? texts[2] : undefined);
      });
      const chunks = await collect(await transport.sendMessages(SEND));
      expect(chunks).toEqual(status === 200 ? failed : failed.slice(0, 2));
    }
  });

  it('streams from a server that numbers nothing, and says when that breaks off', async () => {
    const plain = CHUNKS.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
    let response: ServerResponse | undefined;
    const { transport } = await startTransport((_request, given) => {
      response = given.writeHead(200, SSE);
      response.write(plain[0]);
    });
    for (const isCut of [false, true]) {
      const reader = (await transport.sendMessages(SEND)).getReader();
      expect((await reader.read()).value).toEqual(CHUNKS[0]);
      response?.write(plain[1]);
      expect((await reader.read()).value).toEqual(CHUNKS[1]);
      if (isCut) response?.destroy();
      else response?.end(plain.slice(2).join(''));
      const rest: unknown[] = [];
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        rest.push(next.value);
      }
      const lost = { type: 'error', errorText: TURN_LOST.userMessage };
      expect(rest).toEqual(isCut ? [lost] : CHUNKS.slice(2));
    }
  });

  it('notices silence, but not where there are signs of life', async () => {
    const { transport, requests } = await startTransport(
      (request, response, index) => {
        response.writeHead(200, SSE);
        if (index > 0) {
          response.end(TEXTS.slice(Number(String(cursorOf(request)).split(':').at(-1))).join(''));
          return;
        }
        response.write(TEXTS[0]);
        let beats = 0;
        const timer = setInterval(() => {
          response.write(': keep-alive\n\n');
          if (++beats === 10) clearInterval(timer);
        }, 50);
      },
      { silenceMs: 250 },
    );
    const startedAt = Date.now();
    expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
    expect(Date.now() - startedAt).toBeGreaterThan(10 * 50 + 200);
    expect(requests).toHaveLength(2);
  });

  it('does not wait for a reconnect that hangs', async () => {
    const { transport, requests } = await startTransport(
      (request, response, index) => {
        if (index === 0) response.writeHead(200, SSE).write(TEXTS[0], () => response.destroy());
        if (index > 1) response.writeHead(200, SSE).end(TEXTS.slice(1).join(''));
        if (index > 0) expect(cursorOf(request)).toBe('turn:1:1');
      },
      { silenceMs: 100 },
    );
    expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
    expect(requests).toHaveLength(3);
  });

  it('reads no further than its reader, more or less', async () => {
    const delta = `data: ${JSON.stringify({ type: 'text-delta', id: 't', delta: 'x'.repeat(999) })}\n\n`;
    let sent = 0;
    const { transport } = await startTransport((_request, response) => {
      response.writeHead(200, SSE).write(TEXTS.slice(0, 2).join(''));
      const more = () => {
        while (sent < 100_000) {
          sent += 1;
          if (response.write(`id: turn:1:${sent + 2}\n${delta}`)) continue;
          response.once('drain', more);
          return;
        }
        response.end(`data: {"type":"finish"}\n\n${SSE_DONE}`);
      };
      more();
    });
    const stream = await transport.sendMessages(SEND);
    let before = -1;
    await vi.waitUntil(async () => {
      before = sent;
      await setTimeout(200);
      return sent === before;
    }, WAIT);
    expect(sent).toBeLessThan(50_000);
    expect(await collect(stream)).toHaveLength(100_003);
  });

  it.each(PAGE_EVENTS)('does not wait for its next attempt on %s', async (type) => {
    const page = stubPage();
    const waiting = Promise.withResolvers<void>();
    const { transport } = await startTransport(
      (_request, response, index) => {
        response.writeHead(200, SSE);
        if (index === 0) response.write(TEXTS[0], () => response.destroy());
        else response.end(TEXTS.slice(1).join(''));
      },
      {
        backoff: { initialMs: 600_000, maxMs: 600_000 },
        onReconnect: ({ status }) => status === 'waiting' && waiting.resolve(),
      },
    );
    const stream = await transport.sendMessages(SEND);
    await waiting.promise;
    page.fire(type);
    expect(await collect(stream)).toEqual(CHUNKS);
    await vi.waitUntil(() => page.listeners() === 0, WAIT);
  });

  it('cuts a connection from before the network was away', async () => {
    const page = stubPage();
    const { transport } = await startTransport(
      (_request, response, index) => {
        response.writeHead(200, SSE);
        // Half-open: the server has gone without closing the connection.
        if (index === 0) response.write(TEXTS[0]);
        else response.end(TEXTS.slice(1).join(''));
      },
      { backoff: { initialMs: 600_000, maxMs: 600_000 } },
    );
    const stream = await transport.sendMessages(SEND);
    const reader = stream.getReader();
    await reader.read();
    page.fire('online');
    const rest = reader.read();
    // It waits for the next attempt now, unless the network is back once more.
    await setTimeout(20);
    page.fire('online');
    expect((await rest).value).toEqual(CHUNKS[1]);
    reader.releaseLock();
    await collect(stream);
    await vi.waitUntil(() => page.listeners() === 0, WAIT);
  });

  it.each(['Load failed', 'Failed to fetch', 'NetworkError when attempting to fetch resource.'])(
    'takes up a body that breaks off with the browser\'s words "%s"',
    async (words) => {
      const { transport } = await startTransport(
        (_request, response, index) =>
          response.writeHead(200, SSE).end(TEXTS.slice(index).join('')),
        {
          async fetch(input, init) {
            const response = await globalThis.fetch(input, init);
            if (init?.method !== 'POST') return response;
            const body = new ReadableStream({
              start: (controller) => controller.enqueue(new TextEncoder().encode(TEXTS[0])),
              pull: (controller) => controller.error(new TypeError(words)),
            });
            return new Response(body, response);
          },
        },
      );
      expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
    },
  );
});
