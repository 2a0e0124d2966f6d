import { once } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openSocket } from '../../../test/raw-http.ts';
import { knock, toFrame, upgradeAs } from '../../../test/raw-websocket.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { type ChainOptions, joinSession, startSessionChain } from '../../../test/session-chain.ts';
import type { Agent } from '../../sessions/index.ts';
import { memoryTurnLog } from '../../turns/memory.ts';

const WAIT = { timeout: 10_000, interval: 5 };
const TEXT = 1;
const BINARY = 2;

const start = (options: Partial<ChainOptions> = {}) =>
  startSessionChain({ agent: scriptedAgent(), ...options });

/** A socket of this user that sends bytes, and its close code once the server has closed it. */
async function openRaw({ port }: { port: number }, user: string, more = '') {
  const socket = openSocket(port, upgradeAs(user, more));
  const bytes: Buffer[] = [];
  socket.on('data', (piece: Buffer) => bytes.push(piece));
  await vi.waitFor(() => expect(socket.heard()).toContain('"type":"init"'), WAIT);
  const closed = once(socket, 'close').then(() => {
    const all = Buffer.concat(bytes);
    return all.readUInt16BE(all.lastIndexOf(0x88) + 2);
  });
  return { socket, closed };
}

const ping = (bytes: number) => JSON.stringify({ type: 'ping', x: 'x'.repeat(bytes) });

describe('the messages of a socket', () => {
  it.each([
    ['one frame', [toFrame(TEXT, Buffer.alloc(0), { length: 60_000_000 })]],
    ['a binary frame', [toFrame(BINARY, Buffer.alloc(0), { length: 60_000_000 })]],
    [
      'fragments',
      [
        toFrame(TEXT, Buffer.from(ping(3_000)), { hasMore: true }),
        toFrame(0, Buffer.alloc(0), { length: 3_000, hasMore: true }),
      ],
    ],
  ])('of a viewer are refused by their header when they are too large: %s', async (_, frames) => {
    const { socket, closed } = await openRaw(await start(), 'vera');
    // No more than headers: the server must not wait for what they announce.
    for (const frame of frames) socket.write(frame);
    expect(await closed).toBe(1009);
  });

  it('may not be compressed, so that a small frame cannot become a large message', async () => {
    const extension = 'Sec-WebSocket-Extensions: permessage-deflate\r\n';
    const { socket, closed } = await openRaw(await start(), 'vera', extension);
    expect(socket.heard()).not.toContain('permessage-deflate');
    socket.write(toFrame(TEXT, Buffer.from('x'), { isCompressed: true }));
    expect(await closed).toBe(1002);
  });

  it('of a viewer may be as long as its messages are', async () => {
    const vera = await joinSession(await start(), { user: 'vera' });
    const longest = 'é"'.repeat(100);
    vera.send({ type: 'follow', turnId: longest, after: 1 });
    expect(await vera.until(({ type }) => type === 'error')).toMatchObject({ code: 'not-found' });
  });

  it('of a collaborator may be as large as a prompt, and no larger', async () => {
    const chain = await start({ limits: { promptBytes: 50_000 } });
    const ann = await joinSession(chain);
    expect(ann.of('init')).toMatchObject([{ data: { maxMessageBytes: 50_000 } }]);
    ann.send({ type: 'prompt', content: 'x'.repeat(49_000), turnId: 't' });
    await ann.until(({ type }) => type === 'message.finalize');
    ann.send(ping(50_000));
    expect(await ann.closed).toMatchObject({ code: 1009 });
  });

  it.each([
    ['as many values', `[${'{},'.repeat(3_000_000)}{}]`],
    ['as deep', `${'['.repeat(4_000_000)}${']'.repeat(4_000_000)}`],
  ])('of a collaborator are not parsed when they hold %s as no prompt does', async (_, x) => {
    const ann = await joinSession(await start());
    ann.send(`{"type":"ping","x":${x}}`);
    expect(await ann.until(({ type }) => type === 'error')).toMatchObject({ code: 'bad-request' });
    expect(ann.of('pong')).toEqual([]);
  });

  it('close it with 4008 when too many bytes of them wait for a log that hangs', async () => {
    const log = memoryTurnLog();
    let isHanging = false;
    const chain = await start({
      log: { ...log, get: (id) => (isHanging ? new Promise(() => undefined) : log.get(id)) },
    });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'slow', turnId: 't' });
    await ann.until(({ type }) => type === 'message.part.text-delta');
    isHanging = true;
    // The log is asked for the turn; what follows waits.
    ann.send({ type: 'follow', turnId: 't' });
    for (let n = 0; n < 3; n++) ann.send(ping(3_000_000));
    expect(await ann.closed).toMatchObject({ code: 4008 });
    // A newcomer waits for the log as well, and leaves nothing behind when it goes.
    const socket = openSocket(chain.port, upgradeAs('bob'));
    await vi.waitFor(() => expect(socket.heard()).toContain('101'), WAIT);
    socket.destroy();
    await vi.waitFor(() => expect(chain.sessions.clientCount).toBe(0), WAIT);
    const uses = 'sabir_limit_use{limit="sessions.sockets"} 0\n';
    await vi.waitFor(() => expect(chain.sessions.metrics.toText()).toContain(uses), WAIT);
  });

  it('of a runner may be larger than those of people', async () => {
    const agent: Agent = {
      name: 'long',
      async *prompt() {
        yield { type: 'text-delta', delta: 'x'.repeat(20_000) };
      },
    };
    const ann = await joinSession(await start({ agent, limits: { promptBytes: 5_000 } }));
    ann.send({ type: 'prompt', content: 'Go on' });
    await ann.until(({ type }) => type === 'message.finalize');
    expect(ann.text()).toHaveLength(20_000);
  });
});

describe('too many messages in a short time', () => {
  it('close the socket with 4429, after an error that says so', async () => {
    const ann = await joinSession(await start({ limits: { messagesPerSecond: 5 } }));
    for (let sent = 0; sent < 12; sent++) ann.send({ type: 'ping' });
    expect(await ann.closed).toMatchObject({ code: 4429 });
    expect(ann.of('pong').length).toBeLessThanOrEqual(10);
    expect(ann.events.at(-1)).toMatchObject({ type: 'error', code: 'too-many-messages' });
  });

  it('close it also when they are WebSocket pings, which the server would answer', async () => {
    const { socket, closed } = await openRaw(
      await start({ limits: { messagesPerSecond: 5 } }),
      'ann',
    );
    for (let sent = 0; sent < 12; sent++) socket.write(toFrame(9, Buffer.from('x')));
    expect(await closed).toBe(4429);
  });
});

describe('too many sockets', () => {
  const asked = (user: string) => ({ authorization: `Bearer ${user}` });

  it.each([
    ['of one user', { socketsPerUser: 2 }, 'ann', 429],
    ['in one session', { socketsPerSession: 2 }, 'bob', 429],
    ['in all', { sockets: 2 }, 'bob', 503],
  ])('%s are refused with a time to come back', async (_, limits, user, status) => {
    const chain = await start({ limits });
    const first = await joinSession(chain);
    await joinSession(chain);
    expect(await knock(chain, asked(user))).toEqual({ status, retryAfter: '5' });
    expect(chain.sessions.clientCount).toBe(2);
    const name = Object.keys(limits)[0];
    const text = chain.sessions.metrics.toText();
    expect(text).toContain(`sabir_limit_use{limit="sessions.${name}"} 2\n`);
    expect(text).toContain(`sabir_limit_refusals_total{limit="sessions.${name}"} 1\n`);
    // The place of one that has left is free again.
    first.close();
    await first.closed;
    await vi.waitFor(() => expect(chain.sessions.clientCount).toBe(1), WAIT);
    expect(await knock(chain, asked(user))).toMatchObject({ status: 101 });
  });

  it('of one user do not keep others out', async () => {
    const chain = await start({ limits: { socketsPerUser: 1 } });
    await joinSession(chain);
    expect(await knock(chain, asked('bob'))).toMatchObject({ status: 101 });
  });
});

describe('an upgrade', () => {
  it('that a hook does not decide in time is answered with 503', async () => {
    const authenticate = () => new Promise<never>(() => undefined);
    const chain = await start({ authenticate, timing: { hookMs: 30 } });
    expect(await knock(chain, {})).toEqual({ status: 503, retryAfter: '5' });
  });

  it('is refused while too many others are being decided', async () => {
    const gate = Promise.withResolvers<void>();
    const authenticate = async ({ headers }: Request) => {
      await gate.promise;
      return { id: headers.get('authorization') ?? '' };
    };
    const chain = await start({ authenticate, limits: { pendingUpgrades: 1 } });
    const first = knock(chain, { authorization: 'ann' });
    await vi.waitFor(async () => {
      expect(await knock(chain, { authorization: 'bob' })).toMatchObject({ status: 503 });
    }, WAIT);
    gate.resolve();
    expect(await first).toMatchObject({ status: 101 });
  });

  it('that was refused is closed, though the client keeps its side open', async () => {
    const chain = await start({ authenticate: () => null });
    const socket = openSocket(chain.port, upgradeAs('ann'));
    socket.allowHalfOpen = true;
    await vi.waitFor(() => expect(socket.heard()).toContain('401'), WAIT);
    // The server's own close of the connection resets a client that goes on writing.
    const reset = Promise.withResolvers<void>();
    socket.on('error', () => reset.resolve());
    const writing = setInterval(() => socket.write('x'), 20);
    onTestFinished(() => clearInterval(writing));
    await reset.promise;
  });
});

describe('a prompt', () => {
  it('is refused while its user has too many waiting, and others still may send', async () => {
    const chain = await start({ limits: { queuedPromptsPerUser: 1 } });
    const ann = await joinSession(chain);
    const bob = await joinSession(chain, { user: 'bob' });
    ann.send({ type: 'prompt', content: 'slow', promptId: 'runs' });
    await ann.until(({ type }) => type === 'message.part.text-delta');
    ann.send({ type: 'prompt', content: 'text', promptId: 'waits' });
    ann.send({ type: 'prompt', content: 'text', promptId: 'refused' });
    expect(await ann.until(({ type }) => type === 'error')).toMatchObject({
      promptId: 'refused',
      code: 'queue-full',
    });
    bob.send({ type: 'prompt', content: 'text', promptId: 'others' });
    await bob.until(({ data }) => Object(data).promptId === 'others');
    expect(chain.store.open('s').promptInfo('promptId', 'refused')).toBeUndefined();
    expect(chain.sessions.metrics.toText()).toContain(
      'sabir_limit_refusals_total{limit="sessions.queuedPromptsPerUser"} 1\n',
    );
  });
});
