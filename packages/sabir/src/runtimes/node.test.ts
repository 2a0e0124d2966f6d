import { once } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { createBody, GET, openSocket, startServer } from '../../test/raw-http.ts';
import { serve } from './node.ts';

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
});
