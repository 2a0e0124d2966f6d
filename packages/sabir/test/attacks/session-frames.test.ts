/** Attacks on the sockets themselves: frames, upgrades, and what proves who connects. */
import { once } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { createLogSpy } from '../gateway-client.ts';
import { openSocket } from '../raw-http.ts';
import { knock, toFrame, UPGRADE, upgradeAs } from '../raw-websocket.ts';
import { scriptedAgent } from '../scripted-agent.ts';
import { type ChainOptions, joinSession, startSessionChain } from '../session-chain.ts';

const WAIT = { timeout: 10_000, interval: 5 };
const [MORE, TEXT, CLOSE, PING] = [0, 1, 8, 9];
const start = (options: Partial<ChainOptions> = {}) =>
  startSessionChain({ agent: scriptedAgent(), ...options });
const pingText = Buffer.from('{"type":"ping"}');

async function openRaw({ port }: { port: number }, user = 'ann') {
  const socket = openSocket(port, upgradeAs(user));
  const bytes: Buffer[] = [];
  socket.on('data', (piece: Buffer) => bytes.push(piece));
  await vi.waitFor(() => expect(socket.heard()).toContain('"type":"init"'), WAIT);
  const closed = once(socket, 'close').then(() => {
    const all = Buffer.concat(bytes);
    return all.readUInt16BE(all.lastIndexOf(0x88) + 2);
  });
  return { socket, closed };
}

/** The same frame with other bits in its first two bytes. */
function withBits(frame: Buffer, first: number, second = frame[1] as number): Buffer {
  const changed = Buffer.from(frame);
  changed[0] = first;
  changed[1] = second;
  return changed;
}

describe('a socket', () => {
  it.each([
    ['goes on with a message that never began', 1002, toFrame(MORE, pingText)],
    [
      'begins a message within another',
      1002,
      Buffer.concat([toFrame(TEXT, pingText, { hasMore: true }), toFrame(TEXT, pingText)]),
    ],
    ['sends a frame without a mask', 1002, Buffer.from([0x81, 2, 0x7b, 0x7d])],
    ['sends text that is no UTF-8', 1007, toFrame(TEXT, Buffer.from([0xff, 0xfe, 0xfd]))],
    ['cuts a character in two at the end', 1007, toFrame(TEXT, Buffer.from([0xe2, 0x82]))],
    ['uses a reserved opcode', 1002, toFrame(3, pingText)],
    ['sets reserved bits', 1002, withBits(toFrame(TEXT, pingText), 0xf1)],
    ['sends a control frame in pieces', 1002, toFrame(PING, pingText, { hasMore: true })],
    ['sends a ping of 126 bytes', 1002, toFrame(PING, Buffer.alloc(126))],
    [
      'says a length of 2^63',
      1009,
      Buffer.from([0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ],
    ['closes with one byte', 1002, toFrame(CLOSE, Buffer.from([3]))],
    ['closes with a code that is none', 1002, toFrame(CLOSE, Buffer.from([0, 5]))],
    ['closes for a reason that is no UTF-8', 1007, toFrame(CLOSE, Buffer.from([3, 0xe8, 0xff]))],
  ])('that %s is closed with %d, and the others go on', async (_, code, bytes) => {
    const chain = await start();
    const bob = await joinSession(chain, { user: 'bob' });
    const { socket, closed } = await openRaw(chain);
    socket.write(bytes);
    expect(await closed).toBe(code);
    bob.send({ type: 'ping' });
    await bob.until(({ type }) => type === 'pong');
    await vi.waitFor(() => expect(chain.sessions.clientCount).toBe(1), WAIT);
  });

  it('that sends one message in 20,000 pieces is closed before the server keeps them', async () => {
    const { socket, closed } = await openRaw(await start());
    const pieces = Array.from({ length: 20_000 }, () =>
      toFrame(MORE, Buffer.from('x'), { hasMore: true }),
    );
    socket.write(Buffer.concat([toFrame(TEXT, pingText, { hasMore: true }), ...pieces]));
    expect(await closed).toBe(1008);
  });

  it('that sends pings between the pieces of a message is answered, once', async () => {
    const { socket } = await openRaw(await start());
    const half = pingText.length / 2;
    socket.write(toFrame(TEXT, pingText.subarray(0, half), { hasMore: true }));
    socket.write(toFrame(PING, Buffer.from('between')));
    socket.write(toFrame(MORE, pingText.subarray(half)));
    await vi.waitFor(() => expect(socket.heard()).toContain('"pong"'), WAIT);
    expect(socket.heard().split('"pong"')).toHaveLength(2);
  });

  it.each(['destroy', 'resetAndDestroy'] as const)(
    'that ends with %s in the middle of a frame leaves nothing behind',
    async (leave) => {
      const chain = await start({ timing: { lingerMs: 10 } });
      const { socket } = await openRaw(chain);
      socket.write(toFrame(TEXT, pingText, { length: 1_000_000 }), () => socket[leave]());
      await vi.waitFor(() => expect(chain.sessions.sessions.size).toBe(0), WAIT);
      expect(chain.sessions.metrics.toText()).toContain(
        'sabir_limit_use{limit="sessions.sockets"} 0',
      );
    },
  );
});

describe('an upgrade', () => {
  it.each([
    ['/api/sessions/%2e%2e/ws', 404],
    ['/api/sessions/../sessions/secret/ws', 404],
    ['/api/sessions/x/../secret/ws', 404],
    ['/api/sessions/secret/ws/', 404],
    ['/api/sessions//ws', 404],
    ['/api/sessions/%E0%A4%A/ws', 404],
    ['/API/sessions/s/ws', 404],
    ['/api/sessions/secret/ws?sessionId=s', 404],
    ['http://localhost/api/sessions/secret/ws', 404],
    ['*', 404],
  ])('to %s is answered with %d', async (path, status) => {
    const { lines, logger } = createLogSpy();
    const chain = await start({ logger });
    const socket = openSocket(chain.port, upgradeAs('ann').replace(/ \/\S+/, ` ${path}`));
    await vi.waitFor(() => expect(socket.heard()).toMatch(/^HTTP\/1\.1 \d{3} /), WAIT);
    expect(socket.heard()).toContain(`HTTP/1.1 ${status} `);
    expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
    expect(chain.sessions.sessions.size).toBe(0);
  });

  it.each(['%252e%252e', 'a%2Fb', '%00', 'chat%3Aolga%3Achat_x', '%EF%BC%8E', 'S'])(
    'for the session %s reaches the session of exactly that name, by access',
    async (name) => {
      const access = vi.fn(() => 'viewer' as const);
      const chain = await start({ access });
      await joinSession(chain, { sessionId: name });
      expect(access).toHaveBeenCalledWith(expect.anything(), decodeURIComponent(name));
    },
  );

  it.each([
    'role=RUNNER',
    'role=client&role=runner',
    'Role=runner',
    'role=runner%00',
    'role=%20runner',
  ])('with %s is one of a client, whatever token of a runner it shows', async (query) => {
    const { port, RUNNER_TOKEN } = await start({
      access: ({ id }) => (id === 'runner-token' ? 'viewer' : null),
    });
    const socket = openSocket(port, upgradeAs(RUNNER_TOKEN).replace('role=client', query));
    await vi.waitFor(() => expect(socket.heard()).toContain('"type":"init"'), WAIT);
    expect(socket.heard()).toContain('"role":"viewer"');
    expect(socket.heard()).not.toContain('sabir-runner');
  });

  it('of a person as a runner is refused, also with an own runnerId', async () => {
    const chain = await start();
    for (const query of ['role=runner', 'role=runner&runnerId=x', 'role=runner&role=client']) {
      const socket = openSocket(chain.port, upgradeAs('olga').replace('role=client', query));
      await vi.waitFor(() => expect(socket.heard()).toMatch(/^HTTP\/1\.1 404 /), WAIT);
    }
  });

  it.each([
    ['no key', /Sec-WebSocket-Key: .*\r\n/, ''],
    ['a key of the wrong length', /Key: .*\r\n/, 'Key: x\r\n'],
    ['another version', 'Version: 13', 'Version: 12'],
    ['the method POST', 'GET ', 'POST '],
  ])('with %s is refused, and counted nowhere', async (_, part, by) => {
    const chain = await start({ timing: { lingerMs: 10 } });
    const socket = openSocket(chain.port, upgradeAs('ann').replace(part, by));
    await vi.waitFor(() => expect(socket.heard()).toMatch(/^HTTP\/1\.1 4\d\d /), WAIT);
    await vi.waitFor(() => expect(chain.sessions.sessions.size).toBe(0), WAIT);
    expect(chain.sessions.metrics.toText()).toContain(
      'sabir_limit_use{limit="sessions.sockets"} 0',
    );
  });

  it('with frames right behind it has them read in order, and not before it is accepted', async () => {
    const prompt = { type: 'prompt', content: 'x', turnId: 'early' };
    const frame = toFrame(TEXT, Buffer.from(JSON.stringify(prompt)));
    const chain = await start();
    const refused = openSocket(chain.port, '');
    refused.write(Buffer.concat([Buffer.from(UPGRADE), frame]));
    await vi.waitFor(() => expect(refused.heard()).toContain('401'), WAIT);
    expect(chain.store.open('s').promptInfo('messageId', 'early')).toBeUndefined();
    const viewer = openSocket(chain.port, '');
    viewer.write(Buffer.concat([Buffer.from(upgradeAs('vera')), frame]));
    await vi.waitFor(() => expect(viewer.heard()).toContain('may-only-watch'), WAIT);
    expect(chain.store.open('s').promptInfo('messageId', 'early')).toBeUndefined();
  });

  it.each([
    ['null', { origin: 'null' }],
    ['of a subdomain', { origin: 'http://localhost.evil.example' }],
    ['with this host as its user', { origin: 'http://localhost@evil.example' }],
    ['of another port', { origin: 'http://localhost:1' }],
    ['empty', { origin: '' }],
  ])('of a page whose origin is %s is refused where cookies sign in', async (_, headers) => {
    const chain = await start({ authenticate: () => ({ id: 'who has a cookie' }) });
    expect(await knock(chain, { ...headers, cookie: 'sid=1' })).toMatchObject({ status: 403 });
  });

  it('that the client resets at any moment crashes nothing', async () => {
    const chain = await start();
    const text = upgradeAs('ann');
    for (let at = 1; at < text.length; at += 25) {
      const socket = openSocket(chain.port, text.slice(0, at));
      socket.once('connect', () => setImmediate(() => socket.resetAndDestroy()));
    }
    for (let n = 0; n < 10; n++) {
      const socket = openSocket(chain.port, text);
      setTimeout(() => socket.resetAndDestroy(), n);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    const bob = await joinSession(chain, { user: 'bob' });
    await vi.waitFor(() => expect(chain.sessions.clientCount).toBe(1), WAIT);
    bob.close();
  });
});
