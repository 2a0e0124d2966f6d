/** Attacks with the bytes of HTTP itself: smuggled, slow, odd and oversized requests. */
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { chatBody, createAgent, echo, eventually, refusal } from '../gateway-client.ts';
import { openSocket } from '../raw-http.ts';
import { startAttacked, statusesOf } from './attacked.ts';

const POST = ['POST /api/sessions/s1/chat HTTP/1.1', 'Authorization: Bearer carl'];
const GET_STREAM = ['GET /api/sessions/s1/chat/c1/stream HTTP/1.1', 'Authorization: Bearer carl'];
const BODY = JSON.stringify(chatBody('a'));
const CHUNKED_BODY = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
const SMUGGLED = 'POST /api/sessions/s1/chat/c1/stop HTTP/1.1\r\nHost: x\r\n\r\n';

async function start(limits = {}) {
  const agent = createAgent();
  return { agent, ...(await startAttacked(agent.upstream, { limits })) };
}

describe('a request that two servers would read differently', () => {
  it.each([
    ['two lengths', [`Content-Length: ${BODY.length}`, 'Content-Length: 5'], BODY],
    ['a length and chunks', ['Content-Length: 5', 'Transfer-Encoding: chunked'], CHUNKED_BODY],
    ['an unknown encoding', ['Transfer-Encoding: xchunked'], CHUNKED_BODY],
    ['chunked not last', ['Transfer-Encoding: chunked, gzip'], CHUNKED_BODY],
    ['a negative length', ['Content-Length: -1'], BODY],
    ['a length in another notation', ['Content-Length: 1e2'], BODY],
    ['a space before a colon', ['Content-Length : 5'], BODY],
    ['a folded header', ['X-A: b\r\n c: d', 'Transfer-Encoding:\r\n chunked'], CHUNKED_BODY],
    [
      'a chunk longer than a number can say',
      ['Transfer-Encoding: chunked'],
      `${'F'.repeat(20)}\r\n`,
    ],
  ])(
    'by %s is refused, and nothing after it on the connection is served',
    async (_, head, body) => {
      const { agent, say } = await start();
      const socket = say([...POST, ...head], body + SMUGGLED);
      await eventually(() => socket.closed);
      expect(statusesOf(socket.heard())).toEqual([400]);
      expect(agent.runs).toEqual([]);
    },
  );

  it('by a bare carriage return in Last-Event-ID is refused', async () => {
    const { say } = await start();
    const socket = say([...GET_STREAM, 'Last-Event-ID: a\rX-Forged: 1']);
    await eventually(() => socket.closed);
    expect(statusesOf(socket.heard())).toEqual([400]);
  });
});

describe('a request that asks for more than it gets', () => {
  it('with 100 KB of chunk extensions is cut off', async () => {
    const { say } = await start();
    const socket = say(
      [...POST, 'Transfer-Encoding: chunked'],
      `1;${'x'.repeat(100_000)}\r\n{\r\n`,
    );
    await eventually(() => socket.closed);
    expect(statusesOf(socket.heard())).toEqual([413]);
  });

  it('with Expect: 100-continue and a length past the limit is refused without its body', async () => {
    const { say } = await start();
    const socket = say([...POST, 'Expect: 100-continue', 'Content-Length: 50000000']);
    await eventually(() => socket.heard().includes('body-too-large'));
    expect(statusesOf(socket.heard())).toEqual([100, 413]);
  });

  it('with another expectation is refused: 417', async () => {
    const { say } = await start();
    const socket = say([...POST, 'Expect: a-pony', 'Content-Length: 0']);
    await eventually(() => statusesOf(socket.heard()).length > 0);
    expect(statusesOf(socket.heard())).toEqual([417]);
  });

  it('with a gzip bomb is refused without being inflated', async () => {
    const { url } = await start();
    const body = gzipSync(Buffer.alloc(20_000_000, ' '));
    const headers = { authorization: 'Bearer carl', 'content-encoding': 'gzip' };
    const before = process.memoryUsage().rss;
    const response = await fetch(`${url}/api/sessions/s1/chat`, { method: 'POST', headers, body });
    expect(await refusal(response)).toMatchObject({ status: 400, code: 'bad-request' });
    expect(process.memoryUsage().rss - before).toBeLessThan(15_000_000);
  });

  it('with a range or a condition gets the whole stream, and no way to cache it', async () => {
    const { agent, user } = await start();
    const post = user('carl').post(chatBody('a'));
    const headers = { range: 'bytes=0-9', 'if-none-match': '*', 'if-range': '"x"' };
    (await agent.run()).text('hello');
    await post;
    const response = await user('vera').resume('c1', { headers });
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toMatch(/^no-cache/);
    for (const name of ['etag', 'last-modified', 'accept-ranges', 'content-range']) {
      expect(response.headers.has(name)).toBe(false);
    }
    expect((await user('vera').resume('c2')).headers.get('cache-control')).toBe('no-store');
  });

  it('with HEAD for a stream is refused and takes no place', async () => {
    const { user, use } = await start();
    await user('carl').post(chatBody('a'));
    const response = await user('carl').send('HEAD', '/api/sessions/s1/chat/c1/stream');
    expect(response.status).toBe(405);
    expect(await use('viewers')).toBe(1);
  });

  it.each(['TRACE', 'CONNECT', 'PUT', 'PATCH', 'DELETE', 'QUERY'])(
    'with %s reads nothing and echoes nothing',
    async (method) => {
      const { agent, say } = await start();
      const target = method === 'CONNECT' ? 'x:80' : '/api/sessions/s1/chat';
      const socket = say([
        `${method} ${target} HTTP/1.1`,
        'Cookie: token=abc',
        'Connection: close',
      ]);
      await eventually(() => socket.closed);
      for (const status of statusesOf(socket.heard())) expect([400, 405]).toContain(status);
      expect(socket.heard()).not.toContain('abc');
      expect(agent.runs).toEqual([]);
    },
  );

  it('with GET and a header that names another method is a GET', async () => {
    const { agent, user } = await start();
    const headers = { 'x-http-method-override': 'POST', 'x-method-override': 'POST' };
    const response = await user('carl').send('GET', '/api/sessions/s1/chat', { headers });
    expect(response.status).toBe(405);
    expect(agent.runs).toEqual([]);
  });
});

describe('an address', () => {
  it.each([
    '/api/onboarding/../sessions/s1/messages',
    '/api/onboarding/%2e%2e/sessions/s1/messages',
    '/api/onboarding/..%2fsessions/s1/messages',
    '/api\\sessions\\s1\\messages',
    '//api/sessions/s1/messages',
    'http://other.example/api/sessions/s1/messages',
    'http://user@other.example:99999/api/sessions/s1/messages',
    '/API/sessions/s1/messages',
    '/api/sessions/s1/messages/',
    '/api/sessions/s1/messages;a=b',
    '/api/sessions/s1%00/messages',
    '/api/sessions/%ff/messages',
    '/api/sessions/%zz/messages',
    '/api/sessions//messages',
    '/metrics/../api/sessions/s1/messages',
  ])('spelled %s opens nothing without a token', async (target) => {
    const { say } = await start();
    const socket = say([`GET ${target} HTTP/1.1`, 'Connection: close']);
    await eventually(() => socket.closed);
    const [status, ...rest] = statusesOf(socket.heard());
    expect([400, 401, 404]).toContain(status);
    expect(rest).toEqual([]);
  });

  it('of 15 KB is looked up like any other; one past the limit for headers is refused', async () => {
    const { say } = await start();
    const ask = async (length: number) => {
      const path = `/api/sessions/s1/chat/${'c'.repeat(length)}/stream`;
      const socket = say([
        `GET ${path} HTTP/1.1`,
        'Authorization: Bearer carl',
        'Connection: close',
      ]);
      await eventually(() => socket.closed);
      return statusesOf(socket.heard());
    };
    expect(await ask(15_000)).toEqual([204]);
    expect(await ask(17_000)).toEqual([431]);
  });

  it('in the Host header does not get into what clients are told', async () => {
    const attacked = await startAttacked(echo);
    const body = JSON.stringify({ messages: chatBody('a').messages });
    const head = ['POST /api/chat HTTP/1.1', 'Host: evil.example/x?', 'Authorization: Bearer carl'];
    const lines = [...head, `Content-Length: ${body.length}`, 'Connection: close', '', body];
    const socket = openSocket(attacked.port, lines.join('\r\n'));
    await eventually(() => socket.closed);
    expect(statusesOf(socket.heard())).toEqual([200]);
    expect(socket.heard()).toContain('"endpoint":"/api/chat"');
    expect(socket.heard()).not.toContain('evil');
  });
});

describe('headers', () => {
  it('called __proto__ and constructor are headers, and change nothing', async () => {
    const { say } = await start();
    const odd = ['__proto__: x', 'constructor: y', 'toString: z', 'Connection: close'];
    const socket = say(['GET /healthz HTTP/1.1', ...odd]);
    await eventually(() => socket.closed);
    expect(statusesOf(socket.heard())).toEqual([200]);
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it('with bytes past ASCII are a refusal or nobody, never a 500', async () => {
    const { say } = await start();
    for (const value of ['\u0001', '\u007f', 'é', 'Bearer é', '\u00ff'.repeat(100)]) {
      const socket = say([
        'GET /api/sessions/s1/messages HTTP/1.1',
        `Authorization: ${value}`,
        'Connection: close',
      ]);
      await eventually(() => socket.closed);
      expect([400, 401]).toContain(statusesOf(socket.heard())[0]);
    }
  });
});

describe('a body', () => {
  it('in UTF-16 is refused; one with a byte order mark in UTF-8 is taken', async () => {
    const { url } = await startAttacked(echo);
    const headers = { authorization: 'Bearer carl' };
    const post = (body: Uint8Array<ArrayBuffer>) =>
      fetch(`${url}/api/sessions/s1/chat`, { method: 'POST', headers, body });
    expect((await post(Buffer.from(BODY, 'utf16le'))).status).toBe(400);
    expect((await post(Buffer.from(`\ufeff${BODY}`))).status).toBe(200);
  });

  it('of somebody unknown is not read: 401 while it is still being sent', async () => {
    const { say, use } = await start();
    const [line = ''] = POST;
    const socket = say([line, 'Content-Length: 1000000'], 'x'.repeat(1_000));
    await eventually(() => statusesOf(socket.heard()).length > 0);
    expect(statusesOf(socket.heard())).toEqual([401]);
    expect(await use('heldBodyBytes')).toBe(0);
  });

  it('whose client is gone in the middle gives back what it held', async () => {
    const { say, use } = await start();
    const socket = say([...POST, 'Content-Length: 500000'], '{"a":"'.padEnd(100_000, 'x'));
    await expect.poll(() => use('heldBodyBytes')).toBe(100_000);
    socket.destroy();
    await expect.poll(() => use('heldBodyBytes')).toBe(0);
    expect(await use('bodiesPerUser')).toBe(0);
  });

  it('of 20,000 chunks of one byte is read like any other', async () => {
    const { port } = await startAttacked(echo);
    const body = JSON.stringify(chatBody('a'.repeat(20_000)));
    const chunks = [...body].map((byte) => `1\r\n${byte}\r\n`).join('');
    const head = [...POST, 'Host: x', 'Connection: close', 'Transfer-Encoding: chunked', '', ''];
    const socket = openSocket(port, `${head.join('\r\n')}${chunks}0\r\n\r\n`);
    await eventually(() => socket.closed);
    expect(statusesOf(socket.heard())).toEqual([200]);
  });
});

describe('requests in one connection behind a stream that goes on', () => {
  const warned = vi.fn();
  beforeEach(() => void process.on('warning', warned));
  afterEach(() => void process.off('warning', warned));
  const one = `${[...GET_STREAM, 'Host: x'].join('\r\n')}\r\n\r\n`;

  it('wait for it, count as viewers, and are forgotten when the client leaves', async () => {
    const { agent, user, say, use } = await start();
    await user('olga').post(chatBody('a'));
    (await agent.run()).delta('x');
    const socket = say(GET_STREAM, one.repeat(7));
    await expect.poll(() => use('viewersPerUser')).toBe(8);
    await eventually(() => socket.heard().includes('"x"'));
    expect(statusesOf(socket.heard())).toEqual([200]);
    socket.destroy();
    await expect.poll(() => use('viewers')).toBe(1);
    expect(warned).not.toHaveBeenCalled();
  });

  it('past the limit cut the connection off, and nothing of them is kept', async () => {
    const { agent, user, say, use } = await start();
    await user('olga').post(chatBody('a'));
    (await agent.run()).delta('x');
    const socket = say(GET_STREAM, one.repeat(2_000));
    await eventually(() => socket.closed);
    await expect.poll(() => use('viewers')).toBe(1);
    expect(warned).not.toHaveBeenCalled();
  });

  it('are not all answered in memory where the client reads nothing', async () => {
    let count = 0;
    const attacked = await startAttacked(echo, { routes: { metrics: () => ++count > 0 } });
    const asked = 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2_000);
    const socket = openSocket(attacked.port, asked).pause();
    await eventually(() => count > 0);
    socket.resume();
    await eventually(() => socket.closed);
    expect(count).toBe(8);
  });
});
