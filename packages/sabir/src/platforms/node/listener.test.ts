import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  createBody,
  createEndlessBody,
  GET,
  openSocket,
  startServer,
} from '../../../test/raw-http.ts';
import { INTERNAL_ERROR } from '../../core/errors.ts';
import { toNodeListener } from './serve.ts';

/** A client that leaves sooner may have ended only its own side. */
const PAST_HALF_CLOSE_MS = 150;
const WAIT = { timeout: 10_000 };

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

describe('requests and responses', () => {
  it('hands method, headers, cookies and bodies through in both directions', async () => {
    const { url } = await startServer(async (request) => {
      const { method, headers } = request;
      const seen = {
        method,
        url: request.url,
        two: headers.get('x-two'),
        text: await request.text(),
      };
      const response = Response.json(seen, { status: 201 });
      response.headers.append('set-cookie', 'a=1');
      response.headers.append('set-cookie', 'b=2');
      return response;
    });
    const address = `${url}/deep/path?q=1?2`;
    const body = 'é'.repeat(300_000);
    const response = await fetch(address, { method: 'PUT', body, headers: { 'x-two': 'a, b' } });
    expect(response.status).toBe(201);
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(await response.json()).toEqual({ method: 'PUT', url: address, two: 'a, b', text: body });
  });

  it.each([
    ['//evil.example/x?y', 'name.example:81', 'http://name.example:81//evil.example/x?y'],
    ['http://evil.example/x', '127.0.0.1', 'http://127.0.0.1/x'],
    ['http://evil.example', '[::1]:80', 'http://[::1]/'],
    ['/a#b', 'user@evil.example', 'http://localhost/a%23b'],
    ['/a', 'evil.example/x?', 'http://localhost/a'],
    ['/a', 'x:99999', 'http://localhost/a'],
  ])(
    'takes only path and query of %s, and the host from %s if it is one',
    async (path, host, url) => {
      const { port } = await startServer((request) => new Response(request.url));
      const socket = openSocket(
        port,
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      );
      await once(socket, 'close');
      expect(socket.heard()).toContain(`\r\n${url}\r\n`);
    },
  );

  it('answers HEAD with headers only, and reads no body for it', async () => {
    const { body, seen } = createEndlessBody(new Uint8Array(8));
    const { url } = await startServer(
      () => new Response(body, { headers: { 'content-length': '99' } }),
    );
    const response = await fetch(url, { method: 'HEAD' });
    expect(response.headers.get('content-length')).toBe('99');
    expect(await response.text()).toBe('');
    expect(seen.isCancelled).toBe(true);
  });

  it('lets a body that the handler stopped reading run dry, so that the client hears why', async () => {
    const { url } = await startServer(async (request) => {
      for await (const _ of request.body ?? []) break;
      return new Response('too large', { status: 413 });
    });
    const response = await fetch(url, { method: 'POST', body: new Uint8Array(8_000_000) });
    expect([response.status, await response.text()]).toEqual([413, 'too large']);
  });

  it('takes what a body parser in front has read already', async () => {
    const listener = toNodeListener(async (request) => new Response(await request.text()));
    const server = createServer(async (incoming, outgoing) => {
      let text = '';
      for await (const bytes of incoming) text += bytes;
      if (incoming.url === '/parsed') Object.assign(incoming, { body: JSON.parse(text) });
      listener(incoming, outgoing);
    });
    server.listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const post = async (path: string) => {
      const url = `http://127.0.0.1:${port}${path}`;
      return (await fetch(url, { method: 'POST', body: '{"a": 1}' })).text();
    };
    expect(await post('/parsed')).toBe('{"a":1}');
    expect(await post('/lost')).toBe('');
  });

  it('reads a body as the handler does', async () => {
    let reads = 0;
    const gate = Promise.withResolvers<void>();
    const { port } = await startServer(async (request) => {
      for await (const _ of request.body ?? []) {
        reads += 1;
        await gate.promise;
      }
      return new Response('read');
    });
    const upload = httpRequest({ port, method: 'POST', path: '/' });
    upload.end(Buffer.alloc(16_000_000));
    const answered = once(upload, 'response');
    await vi.waitUntil(() => reads > 0, WAIT);
    await setTimeout(100);
    expect(upload.socket?.writableLength).toBeGreaterThan(1_000_000);
    gate.resolve();
    const [response] = (await answered) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    upload.destroy();
  });

  it('tells the handler that the client left in the middle of its body', async () => {
    let failure: unknown;
    const { port } = await startServer(async (request) => {
      failure = await request.text().catch((error: unknown) => error);
      return new Response();
    });
    const socket = openSocket(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nhalf');
    await setTimeout(20);
    socket.destroy();
    await vi.waitUntil(() => failure instanceof Error, WAIT);
  });

  it('says 500 without details when the handler throws, and logs where, without its text', async () => {
    const error = vi.fn();
    const failing = [
      () => Promise.reject(new Error('secret')),
      () => {
        throw new Error('secret');
      },
      () => new Response(new ReadableStream({ pull: () => Promise.reject(new Error('secret')) })),
    ];
    for (const handler of failing) {
      const { url } = await startServer(handler, { logger: { warn: vi.fn(), error } });
      const response = await fetch(url);
      expect(response.status).toBe(500);
      expect(await response.json()).toEqual({
        code: INTERNAL_ERROR.code,
        message: expect.any(String),
        remedy: expect.any(String),
      });
    }
    expect(error).toHaveBeenCalledTimes(3);
    expect(error.mock.calls[0]?.[1]).toEqual({
      error: { name: 'Error', stack: expect.any(String) },
    });
    expect(JSON.stringify(error.mock.calls)).not.toContain('secret');
  });

  it('cuts the connection when a body fails halfway: it must not look whole', async () => {
    const { body, write, controller } = createBody();
    const { url } = await startServer(() => new Response(body));
    write('half');
    const response = await fetch(url);
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('half');
    controller.error(new Error('no'));
    await expect(reader?.read()).rejects.toThrow();
  });

  it('refuses a method that no Request can have', async () => {
    const { port } = await startServer(() => new Response('never'));
    const socket = openSocket(port, 'TRACE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await once(socket, 'close');
    expect(socket.heard()).toMatch(/^HTTP\/1.1 400 .*"code":"bad-request"/s);
  });
});

describe('streaming', () => {
  it('sends headers at once when there is no byte yet, then each batch as it comes', async () => {
    const { body, write } = createBody();
    const { port } = await startServer(() => new Response(body));
    const socket = openSocket(port, GET);
    await vi.waitUntil(() => socket.heard().endsWith('\r\n\r\n'), WAIT);
    expect(socket.heard()).toMatch(/^HTTP\/1.1 200 /);
    for (const text of ['first', 'second']) {
      write(text);
      await vi.waitUntil(() => socket.heard().endsWith(`\r\n${text}\r\n`), WAIT);
    }
  });

  it('sends headers and a first batch that is there in one piece', async () => {
    const { body, write } = createBody();
    write('first');
    const { port } = await startServer(() => new Response(body));
    const socket = openSocket(port, GET);
    const [piece] = await once(socket, 'data');
    expect(String(piece)).toContain('\r\nfirst\r\n');
  });

  it('reads no more of a body than a slow client takes, and cancels it when the client leaves', async () => {
    const piece = new Uint8Array(64 * 1024);
    const { body, seen } = createEndlessBody(piece);
    let signal: AbortSignal | undefined;
    const { port } = await startServer((request) => {
      signal = request.signal;
      return new Response(body);
    });
    const socket = connect(port, '127.0.0.1').pause();
    socket.write(GET);
    const before = await vi.waitUntil(() => settled(() => seen.pieces), WAIT);
    expect(before * piece.byteLength).toBeLessThan(64 * 1024 * 1024);

    socket.resume();
    await vi.waitUntil(() => seen.pieces > before * 2, WAIT);
    expect(seen.isCancelled).toBe(false);

    // The handler kept the signal only: a collection takes everything else it was given.
    collectGarbage();
    socket.destroy();
    await vi.waitUntil(() => seen.isCancelled && signal?.aborted, WAIT);
  });

  it('aborts the signal of a request that has been answered for a long while', async () => {
    const { body, seen, write } = createBody();
    let signal: AbortSignal | undefined;
    const { port } = await startServer((request) => {
      signal = request.signal;
      return new Response(body);
    });
    write('first');
    const socket = openSocket(port, GET);
    await once(socket, 'data');
    for (let round = 0; round < 3; round++) {
      collectGarbage();
      await setImmediate();
    }
    await setTimeout(PAST_HALF_CLOSE_MS);
    socket.destroy();
    await vi.waitUntil(() => signal?.aborted && seen.isCancelled, WAIT);
  });

  it('leaves the signal of a complete answer alone', async () => {
    let signal: AbortSignal | undefined;
    const { url } = await startServer((request) => {
      signal = request.signal;
      return new Response('whole');
    });
    expect(await (await fetch(url)).text()).toBe('whole');
    await setTimeout(20);
    expect(signal?.aborted).toBe(false);
  });

  it('cancels a body that comes when the client has left already', async () => {
    const { body, seen } = createBody();
    let signal: AbortSignal | undefined;
    const { port } = await startServer(async (request) => {
      signal = request.signal;
      await once(signal, 'abort');
      return new Response(body);
    });
    const socket = openSocket(port, GET);
    await vi.waitUntil(() => signal, WAIT);
    await setTimeout(PAST_HALF_CLOSE_MS);
    socket.destroy();
    await vi.waitUntil(() => seen.isCancelled, WAIT);
  });

  it('lets a client go that takes nothing while bytes wait for it', async () => {
    const { body, seen } = createEndlessBody(new Uint8Array(1024 * 1024));
    const { port } = await startServer(() => new Response(body), { stallMs: 200 });
    const socket = connect(port, '127.0.0.1').pause();
    onTestFinished(() => void socket.destroy());
    socket.write(GET);
    await vi.waitUntil(() => seen.isCancelled, WAIT);
  });

  it('keeps a client that is slow, but takes something', async () => {
    const { body, seen } = createEndlessBody(new Uint8Array(1024 * 1024));
    const { port } = await startServer(() => new Response(body), { stallMs: 1_000 });
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(GET);
    // Takes a batch now and then, for more than twice the limit.
    for (let round = 0; round < 25; round++) {
      let bytes = 0;
      while (bytes < 4 * 1024 * 1024) bytes += ((await once(socket, 'data')) as [Buffer])[0].length;
      socket.pause();
      await setTimeout(100);
      socket.resume();
    }
    expect(seen.isCancelled).toBe(false);
  });

  it('keeps a quiet answer open past the limits for requests, also with a body nobody read', async () => {
    const { body, write } = createBody();
    const listener = toNodeListener(() => new Response(body));
    const limits = { requestTimeout: 100, headersTimeout: 100, connectionsCheckingInterval: 20 };
    const server = createServer({ ...limits, keepAliveTimeout: 100 }, listener);
    server.listen(0, '127.0.0.1');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const posted = Buffer.alloc(300_000, 'x');
    const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${posted.length}\r\n\r\n`;
    const socket = openSocket(port, head + posted);
    const slow = openSocket(port, 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ');
    // The slow one is cut off: the limits are on.
    await once(slow, 'close');
    await setTimeout(150);
    write('still here');
    await vi.waitUntil(() => socket.heard().includes('still here'), WAIT);
  });

  it('keeps a connection for the next request', async () => {
    const { port } = await startServer((request) => new Response(new URL(request.url).pathname));
    const socket = openSocket(port, GET.replace('/', '/one'));
    await vi.waitUntil(() => socket.heard().includes('/one'), WAIT);
    socket.write(GET.replace('/', '/two'));
    await vi.waitUntil(() => socket.heard().includes('/two'), WAIT);
  });
});
