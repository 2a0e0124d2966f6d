import { once } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { chatBody, createLogSpy, openSse, readChunks } from '../../../test/gateway-client.ts';
import { openSocket } from '../../../test/raw-http.ts';
import { knock as knockAt, toFrame, UPGRADE } from '../../../test/raw-websocket.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { joinSession, startSessionChain } from '../../../test/session-chain.ts';
import { TURN_TOO_LARGE } from '../../core/errors.ts';
import { foldChunks } from '../../core/fold.ts';
import { type Agent, memorySessionStore } from '../../sessions/index.ts';
import { type SessionStackOptions, startSessionStack } from './sessions.ts';

const WAIT = { timeout: 10_000, interval: 5 };
const FOREIGN = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };

async function startStack(options: Partial<SessionStackOptions> = {}) {
  const stack = await startSessionStack({
    store: memorySessionStore(),
    agent: () => scriptedAgent(),
    shutdownMs: 100,
    ...options,
  });
  onTestFinished(() => stack.close());
  const post = (text: string, chat: string) =>
    fetch(`${stack.url}/api/sessions/s/chat`, {
      method: 'POST',
      body: JSON.stringify(chatBody(text, { id: chat })),
    });
  return { ...stack, post };
}

/** The status that an upgrade is answered with. */
async function knock(...given: Parameters<typeof knockAt>): Promise<number> {
  return (await knockAt(...given)).status;
}

describe('a page of another site', () => {
  it.each([
    ['as it is', []],
    ['with a protocol that looks like a token', ['sabir', 'bearer.x']],
  ])('is refused, %s', async (_, protocols) => {
    const stack = await startStack();
    expect(await knock(stack, FOREIGN, protocols)).toBe(403);
    const chain = await startSessionChain({
      agent: scriptedAgent(),
      authenticate: () => ({ id: 'who has a cookie' }),
    });
    expect(await knock(chain, FOREIGN, protocols)).toBe(403);
    expect([stack.sessions.sessions.size, chain.sessions.sessions.size]).toEqual([0, 0]);
    // The page of this very server is let in.
    expect(await knock(stack, { origin: stack.url })).toBe(101);
  });

  it('does not get in by a name of its own that leads to this machine', async () => {
    const stack = await startStack();
    const headers = { host: 'evil.example', origin: 'http://evil.example' };
    expect(await knock(stack, headers)).toBe(401);
    expect(await knock(stack, headers, ['sabir', 'bearer.x'])).toBe(401);
    for (const path of ['/api/sessions/s/messages', '/metrics', '/healthz', '/readyz', '/']) {
      const request = `GET ${path} HTTP/1.1\r\nHost: evil.example\r\n\r\n`;
      const http = openSocket(stack.port, request);
      await vi.waitFor(() => expect(http.heard()).toMatch(/^HTTP\/1\.1 401 /), WAIT);
    }
    expect((await fetch(`${stack.url}/metrics`)).status).toBe(200);
    expect(stack.sessions.sessions.size).toBe(0);
    expect(await knock(stack, { host: `localhost:${stack.port}` })).toBe(101);
  });
});

describe('signing in', () => {
  function createGate() {
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const authenticate = async ({ headers }: Request) => {
      const id = headers.get('authorization')?.replace('Bearer ', '') ?? 'late';
      if (id !== 'late') return { id };
      asked.resolve();
      await gate.promise;
      return { id };
    };
    return { authenticate, asked: asked.promise, open: gate.resolve };
  }

  it('that takes until the server closes comes too late', async () => {
    const { authenticate, asked, open } = createGate();
    const agent = scriptedAgent();
    const chain = await startSessionChain({ agent, authenticate });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'slow' });
    await ann.until(({ type }) => type === 'message.part.text-delta');
    const late = knock(chain, {});
    await asked;
    const closing = chain.sessions.close(5_000);
    open();
    expect(await late).toBe(503);
    agent.go();
    await Promise.all([closing, ann.closed]);
    expect(ann.of('message.finalize')).toMatchObject([{ reason: 'end_turn' }]);
  });

  it.each(['end', 'destroy', 'resetAndDestroy'] as const)(
    'that ends after the client has gone opens no session (%s)',
    async (leave) => {
      const { authenticate, asked, open } = createGate();
      const timing = { lingerMs: 20 };
      const chain = await startSessionChain({ agent: scriptedAgent(), authenticate, timing });
      const socket = openSocket(chain.port, UPGRADE);
      await asked;
      socket[leave]();
      await once(socket, leave === 'end' ? 'finish' : 'close');
      // When another client is in, the server has noticed it.
      const ann = await joinSession(chain, { sessionId: 'another' });
      open();
      ann.send({ type: 'ping' });
      await ann.until(({ type }) => type === 'pong');
      await expect.poll(() => chain.sessions.clientCount).toBe(1);
      await expect.poll(() => chain.sessions.sessions.size).toBe(1);
    },
  );

  it('that has expired: the server ignores what the client sends after that', async () => {
    const expiresAt = Date.now() + 200;
    const chain = await startSessionChain({
      agent: scriptedAgent(),
      authenticate: () => ({ id: 'ann', expiresAt }),
    });
    const socket = openSocket(chain.port, UPGRADE);
    await vi.waitFor(() => expect(socket.heard()).toContain('the sign-in has expired'), WAIT);
    const prompt = { type: 'prompt', content: 'Hi', promptId: 'p', turnId: 'late' };
    const goodbye = Buffer.from([0x03, 0xe8]);
    const closed = once(socket, 'close');
    socket.write(toFrame(1, Buffer.from(JSON.stringify(prompt))));
    // Frames are read in order: when this one is answered, the prompt was read.
    socket.write(toFrame(8, goodbye));
    await closed;
    expect(chain.store.open('s').promptInfo('messageId', 'late')).toBeUndefined();
  });

  it('with claims as long as some are works on the whole way', async () => {
    const stack = await startStack({
      authenticate: () => ({ id: 'ann', groups: 'g'.repeat(20_000) }),
    });
    const chunks = await readChunks(await stack.post('text', 'c1'));
    expect(foldChunks(chunks).metadata).toMatchObject({ outcome: 'finished' });
  });
});

describe('what is very large', () => {
  it('in a prompt closes no client’s socket', async () => {
    const chain = await startSessionChain({ agent: scriptedAgent({ needsHistory: true }) });
    const ann = await joinSession(chain);
    const url = `data:image/png;base64,${'A'.repeat(9_000_000)}`;
    const attachments = [{ type: 'file', mime: 'image/png', url }];
    ann.send({ type: 'prompt', content: 'text', turnId: 't1', attachments });
    await ann.until(({ type, turnId }) => type === 'message.finalize' && turnId === 't1');
    const bob = await joinSession(chain, { user: 'bob' });
    ann.send({ type: 'prompt', content: 'text', turnId: 't2' });
    for (const client of [ann, bob]) {
      await client.until(({ type, turnId }) => type === 'message.finalize' && turnId === 't2');
    }
    expect(chain.sessions.clientCount).toBe(2);
  });

  /** A tool's result of so many characters. */
  function largeAgent(character: string): Agent {
    return {
      name: 'large',
      async *prompt({ text }) {
        yield { type: 'text-delta', delta: 'Before. ' };
        const toolCallId = 'c';
        yield { type: 'tool-input-available', toolCallId, toolName: 'read', input: {} };
        const output = character.repeat(Number(text));
        yield { type: 'tool-output-available', toolCallId, output };
        yield { type: 'text-delta', delta: 'After.' };
      },
    };
  }

  it('in an event fails its turn, once, and the next works', async () => {
    let entries = 0;
    const access = () => {
      entries++;
      return 'owner' as const;
    };
    const store = memorySessionStore();
    const stack = await startStack({ store, agent: () => largeAgent('é'), access });
    const sse = openSse(await stack.post('9000000', 'c1'));
    await sse.ended;
    const { code } = TURN_TOO_LARGE;
    expect(foldChunks(sse.chunks()).metadata).toMatchObject({ outcome: 'failed', code });
    expect(sse.text()).toBe('Before. ');
    expect(store.open('s').messages().at(-1)).toMatchObject({
      metadata: { outcome: 'failed', code, reason: TURN_TOO_LARGE.userMessage },
      parts: [
        { type: 'text', text: 'Before. ', state: 'done' },
        { type: 'tool-read', state: 'output-error' },
      ],
    });
    const next = await readChunks(await stack.post('9', 'c2'));
    expect(foldChunks(next).metadata).toMatchObject({ outcome: 'finished' });
    expect(entries).toBe(2);
  });

  it('in bytes, though not in characters, reaches the page', async () => {
    const stack = await startStack({ agent: () => largeAgent('€') });
    const { parts, metadata } = foldChunks(await readChunks(await stack.post('5500000', 'c1')));
    expect(metadata).toMatchObject({ outcome: 'finished' });
    expect(parts.at(-1)).toMatchObject({ text: 'After.' });
  });
});

describe('a session server', () => {
  it.each([
    ['//', 'localhost', 404],
    ['//evil.example/ws', 'localhost', 404],
    ['//user:word@evil.example/api/sessions/s/ws', 'localhost', 404],
    ['/api/sessions/%/ws', 'localhost', 404],
    ['/api/sessions/s/ws?role=client', 'user:word@localhost', 401],
    ['/api/sessions/s/ws?role=client', 'localhost:99999', 401],
  ])('refuses %s at the host %s and complains of nothing', async (path, host, status) => {
    const { lines, logger } = createLogSpy();
    const stack = await startStack({ logger, authenticate: () => null });
    const request = UPGRADE.replace(/ \/\S+/, ` ${path}`).replace('localhost', host);
    const socket = openSocket(stack.port, request);
    await vi.waitFor(() => expect(socket.heard()).toMatch(/^HTTP\/1\.1 \d{3} /), WAIT);
    expect(socket.heard()).toContain(`HTTP/1.1 ${status} `);
    expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('whose runners cannot be called says so, and goes on', async () => {
    const { lines, logger } = createLogSpy();
    const chain = await startSessionChain({
      agent: scriptedAgent(),
      onRunnerWanted: () => {
        throw new Error('There is no room.');
      },
      logger,
    });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'text' });
    await ann.until(({ data }) => Object(data).promptQueued);
    await vi.waitFor(() => {
      expect(lines).toMatchObject([
        { level: 'error', details: { error: { message: 'There is no room.' } } },
      ]);
    }, WAIT);
    ann.send({ type: 'ping' });
    await ann.until(({ type }) => type === 'pong');
  });
});
