/** Attacks over the WebSockets of chats: who gets in, and what a client can make the process hold. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { asUpstream, type ChatGatewayOptions } from '../../src/gateway/index.ts';
import type { UpgradeListenerOptions } from '../../src/platforms/node/serve.ts';
import { createTestGateway, createUser, echo } from '../gateway-client.ts';
import { toFrame } from '../raw-websocket.ts';
import { knockAt, listenWithSockets, openRawSocket, sendFrame } from '../socket-client.ts';

const BEARER = ['sabir', 'bearer.carl'];
const EVIL = { origin: 'https://evil.example' };

async function setUp(
  options: Partial<ChatGatewayOptions> = {},
  listener: UpgradeListenerOptions = {},
) {
  const gateway = createTestGateway(options.upstream ?? echo, options);
  const { url, port } = await listenWithSockets(gateway, listener);
  const { metrics } = createUser(gateway, 'carl');
  return {
    url,
    port,
    gateway,
    use: async (limit: string) => (await metrics())[`sabir_limit_use{limit="${limit}"}`],
    refusals: async (limit: string) =>
      (await metrics())[`sabir_limit_refusals_total{limit="${limit}"}`],
  };
}

/** Runs until it is stopped. */
const silent = asUpstream(async function* ({ signal }) {
  yield { type: 'text-delta', id: '1', delta: 'on it' };
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
});

describe('an upgrade', () => {
  it('without a token, with a wrong one, or for a session of others is refused as over HTTP', async () => {
    const { url, use } = await setUp();
    expect(await knockAt(url)).toBe(401);
    expect(await knockAt(url, { protocols: ['sabir', 'bearer.a-b'] })).toBe(401);
    expect(await knockAt(url, { protocols: ['sabir', 'bearer.stranger'] })).toBe(404);
    expect(await knockAt(url, { path: '/api/sessions/other/chat', protocols: BEARER })).toBe(404);
    expect(await knockAt(url, { path: '/api/sessions/s1/chat/c1', protocols: BEARER })).toBe(404);
    expect(await knockAt(url, { path: '/api/sessions/%ff/chat', protocols: BEARER })).toBe(404);
    expect(await knockAt(url, { protocols: BEARER })).toBe(101);
    await expect.poll(() => use('chatSockets')).toBe(0);
  });

  it('of a foreign page is refused, with cookies or with a token as protocol, unless cors allows its origin', async () => {
    const authenticate = () => ({ id: 'carl' });
    const closed = await setUp({ authenticate });
    const cookie = { ...EVIL, cookie: 'session=carl' };
    expect(await knockAt(closed.url, { headers: EVIL })).toBe(403);
    expect(await knockAt(closed.url, { headers: cookie })).toBe(403);
    expect(await knockAt(closed.url, { headers: EVIL, protocols: BEARER })).toBe(403);
    const fromHere = { origin: closed.url, cookie: 'session=carl' };
    expect(await knockAt(closed.url, { headers: fromHere })).toBe(101);
    const star = await setUp({ authenticate, cors: { origins: '*' } });
    expect(await knockAt(star.url, { headers: cookie })).toBe(403);
    const named = await setUp({ authenticate, cors: { origins: [EVIL.origin] } });
    expect(await knockAt(named.url, { headers: cookie })).toBe(101);
  });

  it('of a foreign page is refused on a public route as well', async () => {
    const { url } = await setUp({ routes: { onboarding: { public: true } } });
    const path = '/api/onboarding';
    expect(await knockAt(url, { path, headers: EVIL })).toBe(403);
    expect(await knockAt(url, { path })).toBe(101);
  });

  it('past chatSocketsPerUser, chatSocketsPerAddress and chatSockets is refused until a socket closes', async () => {
    const { url, use, refusals } = await setUp({
      routes: { onboarding: { public: true } },
      limits: { chatSockets: 3, chatSocketsPerUser: 1, chatSocketsPerAddress: 1 },
    });
    const carl = await openRawSocket(url);
    expect(await knockAt(url, { protocols: BEARER })).toBe(429);
    await openRawSocket(url, { path: '/api/onboarding', user: '' });
    expect(await knockAt(url, { path: '/api/onboarding' })).toBe(429);
    await openRawSocket(url, { user: 'cora' });
    expect(await knockAt(url, { protocols: ['sabir', 'bearer.olga'] })).toBe(503);
    for (const name of ['chatSockets', 'chatSocketsPerUser', 'chatSocketsPerAddress']) {
      expect(await refusals(name)).toBe(1);
    }
    carl.socket.close();
    await expect.poll(() => use('chatSocketsPerUser')).toBe(1);
    await expect.poll(() => knockAt(url, { protocols: BEARER })).toBe(101);
  });

  it('counts while authenticate decides, and no longer when its client has left meanwhile', async () => {
    const gate = Promise.withResolvers<void>();
    const authenticate = () => gate.promise.then(() => ({ id: 'carl' }));
    const { port, use } = await setUp({ authenticate });
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    const head = ['GET /api/sessions/s1/chat HTTP/1.1', 'Host: a', 'Upgrade: websocket'];
    const rest = [
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: x',
      '',
      '',
    ];
    socket.write([...head, ...rest].join('\r\n'));
    await expect.poll(() => use('chatSockets')).toBe(1);
    socket.destroy();
    gate.resolve();
    await expect.poll(() => use('chatSockets')).toBe(0);
  });
});

describe('a frame', () => {
  it.each([
    ['text', 'hello'],
    ['JSON without a request', '{}'],
    ['deep nesting', '{"a":'.repeat(10_000)],
  ])('of %s closes its socket with 4400, and no other', async (_, garbage) => {
    const { url } = await setUp();
    const [bad, good] = [await openRawSocket(url), await openRawSocket(url)];
    bad.say(garbage);
    expect(await bad.closed()).toMatchObject({ code: 4400 });
    good.say(sendFrame('hi'));
    await good.until('end');
  });

  it('of bytes that are no text closes its socket, and the process goes on', async () => {
    const { url } = await setUp();
    const bad = await openRawSocket(url);
    bad.socket.send(Buffer.from([0xff, 0xfe, 0]));
    expect(await bad.closed()).toMatchObject({ code: 4400 });
    expect(await knockAt(url, { protocols: BEARER })).toBe(101);
  });

  it('that says the requestId of an open request closes its socket with 4400', async () => {
    const { url } = await setUp({ upstream: silent });
    const raw = await openRawSocket(url);
    raw.say(sendFrame('hi'));
    await raw.until('chunk');
    raw.say(sendFrame('hi'));
    expect(await raw.closed()).toMatchObject({ code: 4400 });
  });

  it('with messages of a wrong shape is answered with an error frame', async () => {
    const { url } = await setUp();
    const raw = await openRawSocket(url);
    for (const messages of [null, 'x', [null], [{ role: 'user' }], [{ role: 'x', parts: [] }]]) {
      raw.say(sendFrame('hi', { messages, requestId: JSON.stringify(messages) }));
      const { code } = await raw.until('error', JSON.stringify(messages));
      expect(code).toBe('bad-request');
    }
  });

  it('larger than a body may be closes its socket with 1009, by its header alone', async () => {
    const limits = { bodyBytes: 10_000, attachmentBytes: 0 };
    const { url, refusals } = await setUp({ limits });
    const raw = await openRawSocket(url);
    const { _socket: tcp } = raw.socket as unknown as { _socket: NodeJS.WritableStream };
    tcp.write(toFrame(1, Buffer.from('{'), { length: 26_001 }));
    expect(await raw.closed()).toMatchObject({ code: 1009 });
    expect(await refusals('bodyBytes')).toBe(1);
  });

  it('whose body is larger than bodyBytes is refused, though the frame is not too large', async () => {
    const { url } = await setUp({ limits: { bodyBytes: 10_000, attachmentBytes: 10_000 } });
    const raw = await openRawSocket(url);
    raw.say(sendFrame('x'.repeat(11_000), { requestId: 'r1' }));
    expect(await raw.until('error')).toMatchObject({ code: 'body-too-large' });
  });

  it('that waits for authenticate counts in heldBodyBytesPerUser until it is answered', async () => {
    const gate = Promise.withResolvers<void>();
    const { url, use } = await setUp({
      limits: { heldBodyBytesPerUser: 50_000 },
      async authenticate({ method }) {
        if (method === 'POST') await gate.promise;
        return { id: 'carl' };
      },
    });
    const raw = await openRawSocket(url);
    // In the message's id as well.
    const text = 'x'.repeat(10_000);
    for (let i = 0; i < 4; i++) raw.say(sendFrame(text, { requestId: `r${i}`, id: `c${i}` }));
    expect(await raw.until('error', 'r2')).toMatchObject({ code: 'too-many-requests' });
    expect(await raw.until('error', 'r3')).toMatchObject({ code: 'too-many-requests' });
    expect(await use('heldBodyBytesPerUser')).toBeGreaterThan(40_000);
    gate.resolve();
    await raw.until('end', 'r0');
    await raw.until('end', 'r1');
    await expect.poll(() => use('heldBodyBytesPerUser')).toBe(0);
  });

  it('that never ends counts in heldBodyBytesPerUser, over all sockets of its user, and closes with 4429 past it', async () => {
    const { url, use, refusals } = await setUp({ limits: { heldBodyBytesPerUser: 500_000 } });
    const [one, two, three, small] = await Promise.all([1, 2, 3, 4].map(() => openRawSocket(url)));
    const begin = (raw = one) => raw?.socket.send('x'.repeat(200_000), { fin: false });
    begin(one);
    begin(two);
    await expect.poll(() => use('heldBodyBytesPerUser')).toBeGreaterThan(360_000);
    begin(three);
    expect(await three?.closed()).toMatchObject({ code: 4429 });
    expect(await refusals('heldBodyBytesPerUser')).toBe(1);
    small?.say({ type: 'resume', requestId: 'r', id: 'none', headers: {}, body: {} });
    await small?.until('no-active');
    one?.socket.terminate();
    two?.socket.terminate();
    await expect.poll(() => use('heldBodyBytesPerUser')).toBe(0);
  });

  it('that is not complete within bodyMs closes its socket with 4408, pings between its parts or not', async () => {
    const { url } = await setUp({ timing: { bodyMs: 200 } }, { pingMs: 50 });
    const [slow, idle] = [await openRawSocket(url), await openRawSocket(url)];
    slow.socket.send('{', { fin: false });
    const pings = setInterval(() => slow.socket.ping(), 50);
    onTestFinished(() => clearInterval(pings));
    expect(await slow.closed()).toMatchObject({ code: 4408 });
    expect(idle.socket.readyState).toBe(idle.socket.OPEN);
  });

  it('past chatSocketRequests is refused until a request ends', async () => {
    const { url, refusals } = await setUp({ upstream: silent, limits: { chatSocketRequests: 2 } });
    const raw = await openRawSocket(url);
    for (const id of ['a', 'b', 'c']) raw.say(sendFrame(id, { id }));
    expect(await raw.until('error', 'r-c')).toMatchObject({ code: 'too-many-requests' });
    expect(await refusals('chatSocketRequests')).toBe(1);
    raw.say({ type: 'abort', requestId: 'r-a' });
    raw.say(sendFrame('d', { id: 'd' }));
    await raw.until('chunk', 'r-d');
  });

  it('past chatSocketFramesPerSecond closes its socket with 4429', async () => {
    const { url, refusals } = await setUp({ limits: { chatSocketFramesPerSecond: 5 } });
    const raw = await openRawSocket(url);
    for (let i = 0; i < 20; i++) raw.say({ type: 'abort', requestId: 'none' });
    expect(await raw.closed()).toMatchObject({ code: 4429 });
    expect(await refusals('chatSocketFramesPerSecond')).toBe(1);
  });
});

describe('a client that does not read', () => {
  /** About 64 MB in chunks of 64 KB, as fast as they are taken. */
  const flood = asUpstream(async function* ({ signal }) {
    for (let i = 0; i < 1_000 && !signal.aborted; i++) {
      yield { type: 'data-block', data: `${i} ${'x'.repeat(64_000)}` };
      if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  });

  it('is disconnected from its turn as too slow, and its socket holds little', async () => {
    const { url, gateway } = await setUp({ upstream: flood });
    const raw = await openRawSocket(url);
    raw.socket.pause();
    raw.say(sendFrame('go'));
    const { metrics } = createUser(gateway, 'carl');
    const slow = async () => (await metrics()).sabir_slow_viewers_total;
    await expect.poll(async () => (await metrics()).sabir_viewers).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    raw.socket.resume();
    await raw.until('end');
    expect(await slow()).toBe(1);
    const received = JSON.stringify(raw.frames).length;
    expect(received).toBeLessThan(20_000_000);
  });

  it('is refused more requests past chatSocketUnreadBytes, though each is answered at once', async () => {
    const { url, refusals } = await setUp({ limits: { chatSocketUnreadBytes: 100_000 } });
    const raw = await openRawSocket(url);
    raw.socket.pause();
    // The answer to each says that its approval has expired, with its long id: 500 KB.
    const approval = { id: 'a', approved: true };
    const part = { type: 'tool-pay', state: 'approval-responded', input: {}, approval };
    const parts = [{ ...part, toolCallId: 'x'.repeat(500_000) }];
    const report = { messages: [{ id: 'm', role: 'assistant', parts }] };
    // The first ones fill the buffers of the connection.
    for (let i = 0; i < 60 && !(await refusals('chatSocketUnreadBytes')); i++) {
      raw.say(sendFrame('', { ...report, requestId: `r${i}` }));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    raw.socket.resume();
    expect(await raw.until('error')).toMatchObject({ code: 'viewer-too-slow' });
    raw.say(sendFrame('hi'));
    await raw.until('end', 'r-hi');
  });

  it('is cut off when it does not answer pings, and its turn loses a viewer', async () => {
    const { url, use } = await setUp({ upstream: silent }, { pingMs: 50 });
    const raw = await openRawSocket(url);
    raw.say(sendFrame('go'));
    await raw.until('chunk');
    raw.socket.pause();
    await expect.poll(() => use('chatSockets')).toBe(0);
    await expect.poll(() => use('viewers')).toBe(0);
  });

  it('that leaves takes all its requests with it, those that are not answered yet too', async () => {
    const gate = Promise.withResolvers<void>();
    const { url, use } = await setUp({
      upstream: silent,
      async authenticate({ url: asked }) {
        if (asked.includes('/slow/')) await gate.promise;
        return { id: 'carl' };
      },
    });
    const raw = await openRawSocket(url);
    raw.say(sendFrame('go'));
    await raw.until('chunk');
    raw.say({ type: 'resume', requestId: 'r2', id: 'slow', headers: {}, body: {} });
    raw.socket.terminate();
    await once(raw.socket, 'close');
    await expect.poll(() => use('chatSockets')).toBe(0);
    gate.resolve();
    await expect.poll(() => use('viewers')).toBe(0);
  });
});
