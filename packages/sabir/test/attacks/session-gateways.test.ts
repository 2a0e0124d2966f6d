/** Attacks on the connection of a gateway to a session server: who is admitted, and what an admitted one sends. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket } from 'ws';
import { type Agent, memorySessionStore } from '../../src/sessions/index.ts';
import { memoryTurnLog } from '../../src/turns/memory.ts';
import { createLogSpy } from '../gateway-client.ts';
import { openSocket } from '../raw-http.ts';
import { upgradeAs } from '../raw-websocket.ts';
import { scriptedAgent } from '../scripted-agent.ts';
import { type ChainOptions, joinSession, saidBefore, startSessionChain } from '../session-chain.ts';

type Event = { type: string; [field: string]: unknown };

const MB = 1_000_000;
const WAIT = { timeout: 10_000, interval: 5 };
const CHANNEL = { channelType: 'web', channelId: 'default' };
const TOKEN = 'gateway-token';

/** A gateway proves itself with the token, and names its user and their role behind it. */
const admitGateway: ChainOptions['admitGateway'] = ({ headers }) => {
  const [token, id = '', role] = (headers.get('authorization') ?? '').split(':');
  if (token !== `Bearer ${TOKEN}`) return null;
  return { user: { id }, role: role === 'viewer' || role === 'owner' ? role : 'collaborator' };
};

const start = (options: Partial<ChainOptions> = {}) =>
  startSessionChain({ agent: scriptedAgent(), admitGateway, ...options });

const prompt = (turnId: string, more: object = {}) => ({
  ...{ type: 'prompt', turnId, messageId: `m-${turnId}`, channel: CHANNEL, text: 'text' },
  ...{ attachments: [], body: {}, after: 0 },
  ...more,
});

async function connectGateway(
  { url }: { url: string },
  { user = 'ann', role = 'collaborator', sessionId = 's' } = {},
) {
  const socket = new WebSocket(
    `${url.replace('http', 'ws')}/api/sessions/${sessionId}/ws?role=gateway`,
    { headers: { authorization: `Bearer ${TOKEN}:${user}:${role}` } },
  );
  const events: Event[] = [];
  socket.on('message', (data) => events.push(JSON.parse(String(data))));
  socket.on('error', () => undefined);
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  onTestFinished(() => socket.terminate());
  const gateway = {
    socket,
    events,
    closed,
    send: (request: object | string) =>
      socket.send(typeof request === 'string' ? request : JSON.stringify(request)),
    of: (type: string) => events.filter((event) => event.type === type),
    until: (type: string, is: (event: Event) => unknown = () => true): Promise<Event> =>
      vi.waitFor(() => {
        const found = events.find((event) => event.type === type && is(event));
        if (!found) throw new Error(`Not among ${events.map((event) => event.type).join(', ')}`);
        return found;
      }, WAIT),
    chunks: (turnId: string) =>
      gateway.of('chunks').flatMap((event) => (event.turnId === turnId ? event.chunks : [])) as {
        type: string;
        delta?: string;
      }[],
    /** The end of this turn has come. */
    ended: (turnId: string) =>
      vi.waitFor(() => expect(gateway.chunks(turnId).at(-1)?.type).toBe('finish'), WAIT),
    /** The server has read every request that was sent before this. */
    async settled(): Promise<void> {
      const count = gateway.of('pong').length;
      gateway.send({ type: 'ping' });
      await vi.waitUntil(() => gateway.of('pong').length > count, WAIT);
    },
  };
  await gateway.until('init');
  return gateway;
}

/** The status that an upgrade is answered with. */
async function statusOf({ port }: { port: number }, query: string, token: string): Promise<string> {
  const socket = openSocket(port, upgradeAs(token).replace('role=client', query));
  await vi.waitFor(() => expect(socket.heard()).toMatch(/^HTTP\/1\.1 \d{3} /), WAIT);
  return socket.heard().slice('HTTP/1.1 '.length, 'HTTP/1.1 '.length + 3);
}

describe('a socket that calls itself a gateway’s', () => {
  it('is answered with 404 where no gateway is admitted, whatever it shows', async () => {
    const chain = await startSessionChain({ agent: scriptedAgent() });
    for (const token of ['ann', 'olga', chain.RUNNER_TOKEN, `${TOKEN}:olga:owner`]) {
      expect(await statusOf(chain, 'role=gateway', token)).toBe('404');
    }
    expect(chain.sessions.sessions.size).toBe(0);
  });

  it.each([
    ['the token of a person', 'olga'],
    ['the token of a runner', 'runner-token'],
    ['half a token', TOKEN.slice(0, 8)],
    ['a token with more behind it', `${TOKEN}2:olga:owner`],
  ])('is answered with 404 if it shows %s', async (_, token) => {
    const chain = await start();
    expect(await statusOf(chain, 'role=gateway', token)).toBe('404');
    expect(await statusOf(chain, 'role=gateway&role=client', token)).toBe('404');
    expect(chain.sessions.sessions.size).toBe(0);
  });

  it.each(['role=GATEWAY', 'role=client&role=gateway', 'role=gateway%00', 'role=%20gateway'])(
    'with %s is one of a client: its user needs access, and it speaks V2',
    async (query) => {
      const chain = await start({ access: ({ id }) => (id.startsWith(TOKEN) ? 'viewer' : null) });
      const token = `${TOKEN}:olga:owner`;
      const socket = openSocket(chain.port, upgradeAs(token).replace('role=client', query));
      await vi.waitFor(() => expect(socket.heard()).toContain('"type":"init"'), WAIT);
      expect(socket.heard()).toContain('"role":"viewer"');
      expect(socket.heard()).not.toContain('sabir-session');
    },
  );

  it('does not prove itself with a token among the protocols that a page names', async () => {
    const chain = await start();
    const protocol = `Sec-WebSocket-Protocol: sabir, bearer.${TOKEN}:olga:owner\r\n`;
    const request = upgradeAs('x', protocol).replace(/Authorization: .*\r\n/, '');
    const socket = openSocket(chain.port, request.replace('role=client', 'role=gateway'));
    await vi.waitFor(() => expect(socket.heard()).toMatch(/^HTTP\/1\.1 404 /), WAIT);
  });

  it.each([
    ['throws', '500', () => Promise.reject(new Error('The vault is closed.'))],
    ['does not decide in time', '503', () => new Promise<never>(() => undefined)],
  ])('is refused when admitGateway %s', async (_, status, admit) => {
    const chain = await start({ admitGateway: admit, timing: { hookMs: 30 } });
    expect(await statusOf(chain, 'role=gateway', TOKEN)).toBe(status);
    expect(chain.sessions.sessions.size).toBe(0);
  });

  it('that is admitted is for its session and its user alone', async () => {
    const chain = await start();
    const theirs = await connectGateway(chain, { user: 'bob', sessionId: 'private' });
    theirs.send(prompt('hidden', { text: 'secret' }));
    await theirs.ended('hidden');
    // Of another session, and of another user in the same session.
    for (const sessionId of ['s', 'private']) {
      const ann = await connectGateway(chain, { sessionId });
      ann.send(prompt('hidden', { text: 'mine' }));
      await ann.until(sessionId === 's' ? 'gone' : 'refused');
      ann.send({ type: 'stop', turnId: 'hidden' });
      ann.send(prompt(`own in ${sessionId}`));
      await ann.ended(`own in ${sessionId}`);
      expect(JSON.stringify(ann.events)).not.toContain('secret');
    }
  });
});

describe('a request of a gateway', () => {
  const MALFORMED: [string, unknown][] = [
    ['that is no JSON', '{"type":"prompt"'],
    ['that is a list', '[{"type":"ping"}]'],
    ['that is a text', '"ping"'],
    ['that is null', 'null'],
    ['without a type', {}],
    ['with a list as its type', { ...prompt('t'), type: ['prompt'] }],
    ['with an inherited type', { ...prompt('t'), type: 'constructor' }],
    ['of V2: abort', { type: 'abort', turnId: 't' }],
    ['of V2: withdraw', { type: 'withdraw', promptId: 'p' }],
    ['of V2: follow', { type: 'follow', turnId: 't' }],
    ['of V2: prompt', { type: 'prompt', content: 'x', turnId: 't', promptId: 'p' }],
    ['of a runner', { type: 'chunks', turnId: 't', seq: 1, chunks: [{ type: 'finish' }] }],
    ['with a turn id that is no text', prompt('t', { turnId: 7 })],
    ['with an empty turn id', prompt('')],
    ['with a turn id of 10,000 characters', prompt('t'.repeat(10_000))],
    ['without a message id', prompt('t', { messageId: undefined })],
    ['without a channel', prompt('t', { channel: undefined })],
    ['with half a channel', prompt('t', { channel: { channelType: 'web' } })],
    ['with a list as its text', prompt('t', { text: ['x'] })],
    ['with files that are no list', prompt('t', { attachments: { length: 1 } })],
    ['with a file without an address', prompt('t', { attachments: [{ mediaType: 'a/b' }] })],
    ['with a list as its body', prompt('t', { body: null })],
    ['after a chunk below zero', prompt('t', { after: -1 })],
    ['after half a chunk', prompt('t', { after: 0.5 })],
    ['after a chunk as text', prompt('t', { after: '0' })],
    ['with an object as its trace', prompt('t', { traceparent: {} })],
    ['for a history without an id', { type: 'history', channel: CHANNEL }],
    ['for a history of no channel', { type: 'history', id: 1 }],
    ['that answers without a turn', { type: 'answer', questionId: 'q', answer: true }],
    ['that stops a list', { type: 'stop', turnId: ['t'] }],
    [
      'that nests deeper than anything means',
      JSON.stringify(prompt('t')).replace(
        '"body":{}',
        `"body":{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
      ),
    ],
  ];

  it.each(MALFORMED)('%s is ignored, and stores nothing', async (_, request) => {
    const { lines, logger } = createLogSpy();
    const chain = await start({ logger });
    const gateway = await connectGateway(chain);
    gateway.send(request as string);
    await gateway.settled();
    expect(gateway.events.map(({ type }) => type)).toEqual(['init', 'pong']);
    expect(chain.store.list()).toEqual([]);
    expect(lines).toEqual([]);
  });

  it('that makes no sense costs nothing, 20,000 times', async () => {
    const warn = vi.fn();
    const chain = await start({ logger: { warn, error: warn } });
    const gateway = await connectGateway(chain);
    const began = performance.now();
    for (let n = 0; n < 20_000; n++) gateway.send({ type: `type-${n}`, turnId: `t${n}` });
    for (let n = 0; n < 1_000; n++) gateway.send({ type: 'release', turnId: `t${n}` });
    for (let n = 0; n < 1_000; n++) gateway.send({ type: 'stop', turnId: `t${n}` });
    await gateway.settled();
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(warn).not.toHaveBeenCalled();
    expect(chain.store.list()).toEqual([]);
  });

  it('over promptBytes closes the socket with 1009, and is counted', async () => {
    const chain = await start({ limits: { promptBytes: 50_000 } });
    const gateway = await connectGateway(chain);
    expect(gateway.events[0]).toMatchObject({ maxMessageBytes: 50_000 });
    gateway.send(prompt('t', { text: 'x'.repeat(60_000) }));
    expect(await gateway.closed).toBe(1009);
    expect(chain.store.list()).toEqual([]);
    expect(chain.sessions.metrics.toText()).toContain(
      'sabir_limit_refusals_total{limit="sessions.promptBytes"} 1\n',
    );
  });

  it('for a prompt of a viewer is refused, and a viewer stops nothing', async () => {
    const chain = await start();
    const ann = await connectGateway(chain);
    ann.send(prompt('t', { text: 'slow' }));
    await ann.until('chunks');
    const vera = await connectGateway(chain, { user: 'vera', role: 'viewer' });
    vera.send(prompt('mine'));
    expect(await vera.until('refused')).toMatchObject({ code: 'may-only-watch' });
    vera.send({ type: 'stop', turnId: 't' });
    await vera.settled();
    expect(chain.sessions.sessions.all()[0]?.running?.turnId).toBe('t');
  });

  it('for what comes after the end of a turn gets no chunks', async () => {
    const chain = await start();
    const gateway = await connectGateway(chain);
    gateway.send(prompt('t'));
    await gateway.ended('t');
    const again = await connectGateway(chain);
    again.send(prompt('t', { after: Number.MAX_SAFE_INTEGER }));
    await again.until('gone');
    expect(again.of('chunks')).toEqual([]);
  });

  it('is not audited by the session server: the gateway does that', async () => {
    const onAudit = vi.fn();
    const chain = await start({ onAudit });
    const gateway = await connectGateway(chain);
    gateway.send(prompt('t', { text: 'slow' }));
    await gateway.until('chunks');
    gateway.send({ type: 'stop', turnId: 't' });
    await gateway.ended('t');
    expect(onAudit).not.toHaveBeenCalled();
  });
});

describe('an answer of a gateway', () => {
  const refundAgent: Agent = {
    name: 'refund',
    async *prompt({ ask }) {
      const text = 'Refund?';
      const given = await ask({ text, questionId: 'q', answerBy: { role: 'owner' } });
      yield { type: 'text-delta', delta: `Said ${Object(given).answer}` };
    },
  };
  const answer = (by?: unknown) => ({
    type: 'answer',
    turnId: 't',
    questionId: 'q',
    answer: 'yes',
    by,
  });
  async function ask() {
    const chain = await start({ agent: refundAgent });
    const carl = await connectGateway(chain, { user: 'carl' });
    carl.send(prompt('t'));
    await carl.until('chunks', ({ chunks }) => JSON.stringify(chunks).includes('data-question'));
    return { chain, carl };
  }
  const statusIn = async ({ store }: Awaited<ReturnType<typeof start>>) =>
    (await store.log.get('t'))?.questions[0]?.status;

  it('counts as the answer of the person whom the admitted gateway names', async () => {
    const { carl } = await ask();
    carl.send(answer({ userId: 'olga', role: 'owner' }));
    await carl.ended('t');
    expect(
      carl
        .chunks('t')
        .map(({ delta }) => delta ?? '')
        .join(''),
    ).toBe('Said yes');
  });

  it.each([
    ['no person, on the connection of a collaborator', undefined],
    ['a collaborator', { userId: 'olga', role: 'collaborator' }],
    ['a role that there is not', { userId: 'olga', role: 'king' }],
    ['a list of roles', { userId: 'olga', role: ['owner'] }],
    ['no user', { role: 'owner' }],
    ['an empty user', { userId: '', role: 'owner' }],
    ['a text', 'olga'],
  ])('leaves a question for owners open if the gateway names %s', async (_, by) => {
    const { chain, carl } = await ask();
    carl.send(answer(by));
    await carl.settled();
    expect(await statusIn(chain)).toBe('open');
  });

  it('that a client forges on its own socket is refused', async () => {
    const { chain } = await ask();
    const carl = await joinSession(chain, { user: 'carl' });
    carl.send(answer({ userId: 'olga', role: 'owner' }));
    expect(await carl.until(({ type }) => type === 'error')).toMatchObject({
      code: 'may-not-answer',
    });
    expect(await statusIn(chain)).toBe('open');
  });
});

describe('a gateway that does not read', () => {
  /** 30 MB, in 60 pieces. */
  const longAgent: Agent = {
    name: 'long',
    async *prompt() {
      for (let n = 0; n < 60; n++) {
        await new Promise((resolve) => setImmediate(resolve));
        yield { type: 'text-delta', delta: 'x'.repeat(500_000) };
      }
    },
  };

  it('is sent a turn at the pace of its socket, and all of it when it reads again', async () => {
    const log = memoryTurnLog({ maxTurnBytes: 64 * MB });
    let readBytes = 0;
    const counted: typeof log = {
      ...log,
      async *read(turnId, after, signal, maxBytes) {
        for await (const batch of log.read(turnId, after, signal, maxBytes)) {
          // The turn itself is read once more, for its message.
          if (maxBytes !== undefined) readBytes += JSON.stringify(batch).length;
          yield batch;
        }
      },
    };
    const chain = await start({ agent: longAgent, log: counted });
    const gateway = await connectGateway(chain);
    gateway.socket.pause();
    gateway.send(prompt('t'));
    await vi.waitFor(async () => {
      expect(await log.get('t')).toMatchObject({ outcome: { status: 'finished' } });
    }, WAIT);
    await new Promise((resolve) => setTimeout(resolve, 300));
    // What may wait, and what the system's own buffers take.
    expect(readBytes).toBeGreaterThan(8 * MB);
    expect(readBytes).toBeLessThan(20 * MB);
    gateway.socket.resume();
    await gateway.ended('t');
    expect(gateway.chunks('t').reduce((sum, { delta = '' }) => sum + delta.length, 0)).toBe(
      30 * MB,
    );
  });

  it('and asks for the history again and again is sent it at the pace of its socket', async () => {
    const store = memorySessionStore();
    for (let n = 0; n < 4; n++) store.open('s').addMessage(saidBefore(`m${n}`, 'x'.repeat(MB)));
    let loaded = 0;
    const open = (sessionId: string) => {
      const storage = store.open(sessionId);
      const messages: typeof storage.messages = (options) => {
        loaded++;
        return storage.messages(options);
      };
      return { ...storage, messages };
    };
    const chain = await start({ store: { ...store, open } });
    const gateway = await connectGateway(chain);
    gateway.socket.pause();
    for (let id = 1; id <= 50; id++) gateway.send({ type: 'history', id, channel: CHANNEL });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(loaded).toBeLessThan(6);
    gateway.socket.resume();
    await vi.waitFor(() => expect(gateway.of('history')).toHaveLength(50), WAIT);
  });

  it('is disconnected when it answers no ping', async () => {
    const chain = await start({ agent: longAgent, timing: { pingMs: 40 } });
    const gateway = await connectGateway(chain);
    const hasEnded = vi.fn();
    void gateway.closed.then(hasEnded);
    gateway.socket.pause();
    gateway.send(prompt('t'));
    await vi.waitFor(() => {
      expect(chain.sessions.sessions.all()[0]?.people.size).toBe(0);
    }, WAIT);
  });
});
