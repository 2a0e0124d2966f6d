import { once } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { createBody, GET, openSocket, startServer } from '../../../test/raw-http.ts';
import { serve } from './serve.ts';

const WAIT = { timeout: 10_000 };

const active = (pattern: RegExp) =>
  process.getActiveResourcesInfo().filter((name) => pattern.test(name));
const handles = () => active(/^TCP/);
const timers = () => active(/^Timeout$/).length;

describe('serve', () => {
  it('listens on this machine, on a free port unless told otherwise', async () => {
    const { url, port } = await startServer(() => new Response('here'));
    expect(url).toBe(`http://127.0.0.1:${port}`);
    expect(await (await fetch(url)).text()).toBe('here');
  });

  it('says clearly that its port is taken', async () => {
    const { port } = await startServer(() => new Response());
    await expect(serve({ fetch: () => new Response(), port })).rejects.toMatchObject({
      message: `Port ${port} is already taken. Choose another one, or 0 for any.`,
      code: 'EADDRINUSE',
    });
  });

  it('refuses headers past the limit', async () => {
    const { url } = await startServer(() => new Response(), { maxHeaderBytes: 2_000 });
    expect((await fetch(url, { headers: { 'x-long': 'x'.repeat(3_000) } })).status).toBe(431);
  });

  it('lets a running answer end, turns nobody else away late, and leaves nothing behind', async () => {
    await vi.waitUntil(() => handles().length === 0, WAIT);
    const timersBefore = timers();
    const { body, write, controller } = createBody();
    const { port, close } = await serve({ fetch: () => new Response(body) });
    const socket = openSocket(port, GET);
    // Opened ahead, as browsers do, and never used.
    const idle = openSocket(port, '');
    write('first');
    while (!socket.heard().includes('first')) await once(socket, 'data');
    const closed = close();
    expect(close()).toBe(closed);
    await once(idle, 'close');
    await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow();
    write('last');
    controller.close();
    await closed;
    await once(socket, 'close');
    expect(socket.heard()).toMatch(/\r\nlast\r\n0\r\n\r\n$/);
    expect(handles()).toEqual([]);
    expect(timers()).toBeLessThanOrEqual(timersBefore);
  });

  it('cuts off what still runs when its time is over', async () => {
    const { body, seen } = createBody();
    let signal: AbortSignal | undefined;
    const { port, close } = await serve({
      fetch: (request) => {
        signal = request.signal;
        return new Response(body);
      },
      shutdownMs: 50,
    });
    const socket = openSocket(port, GET);
    await once(socket, 'data');
    await close();
    await vi.waitUntil(() => signal?.aborted && seen.isCancelled, WAIT);
  });

  it('closes by signal, and does not begin when that has aborted', async () => {
    const stop = new AbortController();
    const { url } = await startServer(() => new Response(), { signal: stop.signal });
    stop.abort();
    await vi.waitFor(() => expect(fetch(url)).rejects.toThrow(), WAIT);
    await expect(serve({ fetch: () => new Response(), signal: stop.signal })).rejects.toThrow();
  });

  it.each([
    ['a request', `GET /a HTTP/1.1\r\nHost: a\r\n\r\n`, 'GET /a '],
    [
      'a request with a body',
      `POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody`,
      'POST /b body',
    ],
  ])('answers a client that half-closes after %s', async (_, text, answer) => {
    const { port } = await startServer(async (request) => {
      const { pathname } = new URL(request.url);
      const body = await request.text();
      await new Promise((resolve) => setTimeout(resolve, 30));
      return new Response(`${request.method} ${pathname} ${body}`);
    });
    const socket = openSocket(port, text);
    socket.end();
    await once(socket, 'close');
    expect(socket.heard()).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(socket.heard()).toContain(answer);
  });

  const EVENTS = { headers: { 'content-type': 'text/event-stream' } };

  it('sends the whole stream of events to a client that half-closes with its request', async () => {
    const { body, write, controller } = createBody();
    const { port } = await startServer(async () => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return new Response(body, EVENTS);
    });
    const socket = openSocket(port, GET);
    socket.end();
    write('data: 1\n\n');
    while (!socket.heard().includes('data: 1')) await once(socket, 'data');
    write('data: 2\n\n');
    controller.close();
    await once(socket, 'close');
    expect(socket.heard()).toContain('data: 2');
  });

  it('notices at once that a client of a stream has left, though nothing is sent', async () => {
    const { body, seen, write } = createBody();
    let signal: AbortSignal | undefined;
    const { port } = await startServer((request) => {
      signal = request.signal;
      return new Response(body, EVENTS);
    });
    const socket = openSocket(port, GET);
    write('data: 1\n\n');
    while (!socket.heard().includes('data: 1')) await once(socket, 'data');
    socket.end();
    await vi.waitUntil(() => signal?.aborted && seen.isCancelled, { timeout: 1_000 });
  });

  it('hands WebSockets to upgrade, and answers a request for any other protocol itself', async () => {
    const { port } = await startServer(
      async (request) => new Response(`${request.method} ${await request.text()}`),
      { upgrade: (_, socket) => void socket.end('HTTP/1.1 418 Upgraded\r\n\r\n') },
    );
    const ask = async (method: string, protocol: string, body = '') => {
      const head = `${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n`;
      const upgrade = `Connection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\n\r\n`;
      const socket = openSocket(port, `${head}${upgrade}${body}`);
      socket.end();
      await once(socket, 'close');
      return socket.heard();
    };
    expect(await ask('GET', 'h2c')).toMatch(/^HTTP\/1\.1 200 OK.*\r\nGET \r\n/s);
    expect(await ask('POST', 'h2c', 'body')).toMatch(/^HTTP\/1\.1 200 OK.*\r\nPOST body\r\n/s);
    expect(await ask('GET', 'WebSocket')).toMatch(/^HTTP\/1\.1 418/);
  });
});
