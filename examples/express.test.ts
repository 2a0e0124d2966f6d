import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import express from 'express';
import { expect, it, onTestFinished, vi } from 'vitest';
import { toExpress } from './express/to-express.ts';
import { describeChatServer } from './test/chat-server-suite.ts';
import { startServer } from './test/start-server.ts';

describeChatServer('express', () => startServer('express/server.ts'));

it('reads no more of a body than a slow client takes, and cancels it when the client leaves', async () => {
  const piece = new Uint8Array(64 * 1024);
  let pieces = 0;
  let cancelled = false;
  let signal: AbortSignal | undefined;
  const port = await listen(async (request) => {
    signal = request.signal;
    const body = new ReadableStream({
      async pull(controller) {
        await setImmediate();
        pieces += 1;
        controller.enqueue(piece);
      },
      cancel() {
        cancelled = true;
      },
    });
    return new Response(body);
  });

  const socket = connect(port, '127.0.0.1').pause();
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const before = await vi.waitUntil(() => settled(() => pieces), { timeout: 10_000 });
  expect(before * piece.byteLength).toBeLessThan(64 * 1024 * 1024);

  socket.resume();
  await vi.waitUntil(() => pieces > before * 2, { timeout: 10_000 });
  expect(cancelled).toBe(false);

  // The handler kept the signal only: a collection takes everything else it was given.
  collectGarbage();
  socket.destroy();
  await vi.waitUntil(() => cancelled && signal?.aborted, { timeout: 5_000 });
});

it('cancels a body that comes when the client has left already', async () => {
  let cancelled = false;
  let signal: AbortSignal | undefined;
  const port = await listen(async (request) => {
    signal = request.signal;
    await once(signal, 'abort');
    return new Response(
      new ReadableStream({
        cancel() {
          cancelled = true;
        },
      }),
    );
  });

  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await vi.waitUntil(() => signal, { timeout: 5_000 });
  socket.destroy();
  await vi.waitUntil(() => cancelled, { timeout: 5_000 });
});

it('hands headers, cookies and the body through in both directions', async () => {
  const port = await listen(async (request) => {
    const { method, url, headers } = request;
    const seen = { method, url, two: headers.get('x-two'), text: await request.text() };
    const response = Response.json(seen, { status: 201 });
    response.headers.append('set-cookie', 'a=1');
    response.headers.append('set-cookie', 'b=2');
    return response;
  });
  const url = `http://127.0.0.1:${port}/deep/path?q=1`;
  const response = await fetch(url, { method: 'PUT', body: 'héllo', headers: { 'x-two': 'a, b' } });
  expect(response.status).toBe(201);
  expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
  expect(await response.json()).toEqual({ method: 'PUT', url, two: 'a, b', text: 'héllo' });
});

it('leaves what a handler throws to Express', async () => {
  const port = await listen(() => Promise.reject(new Error('no')), ((_error, _req, res, _next) => {
    res.status(503).end('caught');
  }) satisfies express.ErrorRequestHandler);
  const response = await fetch(`http://127.0.0.1:${port}/`);
  expect([response.status, await response.text()]).toEqual([503, 'caught']);
});

async function listen(
  handler: (request: Request) => Promise<Response>,
  onError?: express.ErrorRequestHandler,
): Promise<number> {
  const app = express().use(toExpress(handler));
  if (onError) app.use(onError);
  const server = app.listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

/** A count that has not moved for a while; false while it still does. */
async function settled(count: () => number): Promise<number | false> {
  const before = count();
  await setTimeout(200);
  return before > 0 && count() === before && before;
}
