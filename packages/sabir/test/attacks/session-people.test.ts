/** Attacks by people who were let in: what they send, how they connect, and what they do not read. */
import { once } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Agent } from '../../src/sessions/index.ts';
import { startHostileTurn } from '../hostile-runner.ts';
import { openSocket } from '../raw-http.ts';
import { knock, toFrame, upgradeAs } from '../raw-websocket.ts';
import { scriptedAgent } from '../scripted-agent.ts';
import { type ChainOptions, joinSession, saidBefore, startSessionChain } from '../session-chain.ts';
import { createSessionRig, settled } from '../session-rig.ts';

const WAIT = { timeout: 10_000, interval: 5 };
const PONG = 10;
const start = (options: Partial<ChainOptions> = {}) =>
  startSessionChain({ agent: scriptedAgent(), ...options });
const asked = (user: string) => ({ authorization: `Bearer ${user}` });

describe('a viewer', () => {
  it('who reads nothing and sends pongs without being asked is disconnected', async () => {
    const chain = await start({ timing: { pingMs: 40 } });
    for (let n = 0; n < 12; n++)
      chain.store.open('s').addMessage(saidBefore(`m${n}`, 'x'.repeat(900_000)));
    const socket = openSocket(chain.port, upgradeAs('vera'));
    socket.pause();
    const pongs = setInterval(() => socket.write(toFrame(PONG, Buffer.from('x'))), 10);
    onTestFinished(() => clearInterval(pongs));
    await vi.waitFor(() => expect(chain.sessions.clientCount).toBe(1), WAIT);
    await vi.waitFor(() => expect(chain.sessions.clientCount).toBe(0), WAIT);
  });

  it('who reads nothing and goes on sending messages is disconnected', async () => {
    const chain = await start({
      timing: { pingMs: 40 },
      limits: { messagesPerSecond: 10_000, clientBufferBytes: 100_000_000 },
    });
    for (let n = 0; n < 12; n++)
      chain.store.open('s').addMessage(saidBefore(`m${n}`, 'x'.repeat(900_000)));
    const socket = openSocket(chain.port, upgradeAs('vera'));
    socket.pause();
    const ping = toFrame(1, Buffer.from('{"type":"ping"}'));
    const pings = setInterval(() => socket.write(ping), 10);
    onTestFinished(() => clearInterval(pings));
    await vi.waitFor(() => expect(chain.sessions.clientCount).toBe(1), WAIT);
    await vi.waitFor(() => expect(chain.sessions.clientCount).toBe(0), WAIT);
  });

  it('who reads nothing on ten sockets has no more waiting in memory than on one', async () => {
    const rig = createSessionRig({ limits: { clientBufferBytes: 1_000 } });
    const sockets = Array.from({ length: 10 }, () => rig.client('vera', { role: 'viewer' }));
    const other = rig.client('bob');
    await settled();
    for (const socket of [...sockets, other]) socket.buffered = 3_000;
    rig.client('carl');
    await settled();
    const open = sockets.filter(({ closed }) => closed === undefined);
    expect(open.length).toBeLessThanOrEqual(2);
    expect(other.closed).toBeUndefined();
  });

  it('who connects again and again to a large session is refused with 429, and others are not', async () => {
    const chain = await start({ limits: { initBytesPerSecond: 15_000 } });
    chain.store.open('s').addMessage(saidBefore('m', 'x'.repeat(200_000)));
    (await joinSession(chain, { user: 'vera' })).cut();
    expect(await knock(chain, asked('vera'))).toEqual({ status: 429, retryAfter: '5' });
    expect(await knock(chain, asked('bob'))).toMatchObject({ status: 101 });
    expect(chain.sessions.metrics.toText()).toContain(
      'sabir_limit_refusals_total{limit="sessions.initBytesPerSecond"} 1\n',
    );
  });

  it('who enters and leaves many sessions leaves none of them in the store', async () => {
    const chain = await start({ timing: { lingerMs: 20 } });
    for (let n = 0; n < 20; n++) {
      (await joinSession(chain, { user: 'vera', sessionId: `empty-${n}` })).cut();
    }
    await vi.waitFor(() => expect(chain.sessions.sessions.size).toBe(0), WAIT);
    expect(chain.store.list()).toEqual([]);
  });

  it.each([
    ['in capitals', { type: 'PROMPT', content: 'x' }],
    ['in a list', [{ type: 'prompt', content: 'x' }]],
    ['as a list of types', { type: ['prompt'], content: 'x' }],
    ['with a space', { type: 'prompt ', content: 'x' }],
    ['as an inherited name', { type: 'constructor', content: 'x' }],
    ['with another role in it', { type: 'prompt', content: 'x', role: 'owner' }],
    [
      'as a gateway',
      { type: 'answer', questionId: 'q', answer: true, by: { userId: 'olga', role: 'owner' } },
    ],
    ['as an abort', { type: 'abort' }],
    ['as a withdrawal', { type: 'withdraw', promptId: 'waits' }],
  ])('may not write %s', async (_, message) => {
    const chain = await start({ onRunnerWanted: () => undefined });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'slow', promptId: 'runs' });
    ann.send({ type: 'prompt', content: 'text', promptId: 'waits' });
    await ann.until(({ data }) => Object(data).promptId === 'waits');
    const vera = await joinSession(chain, { user: 'vera' });
    vera.send(message);
    await vera.until(({ type }) => type === 'error');
    expect(chain.store.open('s').openPrompts()).toHaveLength(2);
  });

  it.each([-1, -9_007_199_254_740_991, 9_007_199_254_740_991])(
    'who follows a turn after event %d is sent what there is, or an error',
    async (after) => {
      const chain = await start();
      const ann = await joinSession(chain, { query: '&dialect=v2' });
      ann.send({ type: 'prompt', content: 'text', turnId: 't' });
      await ann.until(({ type }) => type === 'message.finalize');
      const vera = await joinSession(chain, { user: 'vera' });
      vera.send({ type: 'follow', turnId: 't', after });
      if (after < 0) await vera.until(({ type }) => type === 'message.finalize');
      else
        expect(await vera.until(({ type }) => type === 'error')).toMatchObject({
          code: 'events-gone',
        });
    },
  );

  it.each(['1e999', 'null', '"1"', '1.5', '[]', '{}'])(
    'who follows a turn after %s is refused',
    async (after) => {
      const vera = await joinSession(await start(), { user: 'vera' });
      vera.send(`{"type":"follow","turnId":"t","after":${after}}`);
      expect(await vera.until(({ type }) => type === 'error')).toMatchObject({
        code: 'bad-request',
      });
    },
  );

  it('cannot follow a turn of another session', async () => {
    const chain = await start();
    const ann = await joinSession(chain, { sessionId: 'private' });
    ann.send({ type: 'prompt', content: 'text', turnId: 'hidden', promptId: 'hidden-prompt' });
    await ann.until(({ type }) => type === 'message.finalize');
    const vera = await joinSession(chain, { user: 'vera' });
    for (const turnId of ['hidden', 'hidden-prompt', 'private/hidden', '%']) {
      vera.send({ type: 'follow', turnId });
    }
    await vi.waitFor(() => expect(vera.of('error')).toHaveLength(4), WAIT);
    expect(vera.of('error').every(({ code }) => code === 'not-found')).toBe(true);
  });
});

describe('a collaborator', () => {
  it('who opens one channel after the other is refused past the limit, and the old ones go on', async () => {
    const chain = await start({ limits: { channels: 3 } });
    const ann = await joinSession(chain);
    const ask = async (channelId: string, n: number) => {
      ann.send({ type: 'prompt', content: 'text', channelType: 'c', channelId, promptId: `p${n}` });
      return ann.until(({ type, promptId }) => promptId === `p${n}` && /finalize|error/.test(type));
    };
    for (const n of [1, 2, 3]) expect((await ask(`${n}`, n)).type).toBe('message.finalize');
    expect(await ask('4', 4)).toMatchObject({ code: 'session-full' });
    expect((await ask('1', 5)).type).toBe('message.finalize');
    const bob = await joinSession(chain, { user: 'bob' });
    const { data } = bob.events[0] as unknown as { data: { channels: object[] } };
    expect(data.channels).toHaveLength(3);
  });

  it('cannot read another person’s prompt by sending its id again', async () => {
    const chain = await start({ onRunnerWanted: () => undefined });
    const ann = await joinSession(chain, { query: '&channelType=c&channelId=private' });
    const channel = { channelType: 'c', channelId: 'private' };
    ann.send({ type: 'prompt', content: 'slow secret', promptId: 'p', turnId: 't', ...channel });
    await ann.until(({ data }) => Object(data).promptId === 'p');
    const bob = await joinSession(chain, { user: 'bob', query: '&channelType=c&channelId=other' });
    for (const ids of [{ promptId: 'p' }, { promptId: 't' }]) {
      bob.send({ type: 'prompt', content: 'x', ...ids });
    }
    await vi.waitFor(() => expect(bob.of('error')).toHaveLength(2), WAIT);
    expect(bob.of('error').map(({ code }) => code)).toEqual(['prompt-taken', 'prompt-taken']);
    expect(JSON.stringify(bob.events)).not.toContain('secret');
  });

  it('who names another person’s turn for the own answer gets another one', async () => {
    const chain = await start();
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'text', promptId: 'p', turnId: 't' });
    await ann.until(({ type }) => type === 'message.finalize');
    const bob = await joinSession(chain, { user: 'bob' });
    bob.send({ type: 'prompt', content: 'mine', promptId: 'p2', turnId: 't' });
    const { turnId } = await bob.until(
      ({ type, promptId }) => type === 'message.finalize' && promptId === 'p2',
    );
    expect(turnId).not.toBe('t');
    expect(chain.store.open('s').promptInfo('messageId', 't')).toMatchObject({ authorId: 'ann' });
  });

  it('cannot withdraw what another person asked, by prompt or by turn', async () => {
    const chain = await start({ onRunnerWanted: () => undefined });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'slow', promptId: 'runs' });
    ann.send({ type: 'prompt', content: 'text', promptId: 'waits', turnId: 'waits-turn' });
    await ann.until(({ data }) => Object(data).promptId === 'waits');
    const bob = await joinSession(chain, { user: 'bob' });
    bob.send({ type: 'withdraw', promptId: 'waits' });
    bob.send({ type: 'abort', turnId: 'waits-turn' });
    bob.send({ type: 'abort', promptId: 'waits' });
    await vi.waitFor(() => expect(bob.of('error')).toHaveLength(3), WAIT);
    expect(chain.store.open('s').promptInfo('promptId', 'waits')?.status).toBe('queued');
  });

  it.each([
    ['an object', '{}'],
    ['a list', '["yes"]'],
    ['a number', '1'],
    ['null', 'null'],
    ['the mark of a question whose time is over', '"__expired__"'],
    ['100 KB of text', JSON.stringify('x'.repeat(100_000))],
  ])('cannot answer a question with %s', async (_, answer) => {
    const { chain, ann, say, turnId = '' } = await startHostileTurn();
    say({ type: 'data-question', id: 'q', data: { questionId: 'q', text: 'Sure?' } });
    await ann.until(({ type }) => type === 'question');
    ann.send(`{"type":"answer","questionId":"q","answer":${answer}}`);
    expect(await ann.until(({ type }) => type === 'error')).toMatchObject({ code: 'bad-request' });
    expect((await chain.store.log.get(turnId))?.questions).toMatchObject([{ status: 'open' }]);
  });

  it('who was made a viewer while a prompt waits keeps the prompt, and may send no other', async () => {
    let role: 'collaborator' | 'viewer' = 'collaborator';
    const agent = scriptedAgent();
    const chain = await start({ agent, access: () => role, timing: { accessCheckMs: 20 } });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'slow', promptId: 'runs' });
    ann.send({ type: 'prompt', content: 'text', promptId: 'waits' });
    await ann.until(({ data }) => Object(data).promptId === 'waits');
    role = 'viewer';
    expect(await ann.closed).toMatchObject({ code: 4410 });
    const again = await joinSession(chain);
    again.send({ type: 'prompt', content: 'text', promptId: 'late' });
    expect(await again.until(({ type }) => type === 'error')).toMatchObject({
      code: 'may-only-watch',
    });
    agent.go();
    await again.until(({ type, promptId }) => type === 'message.finalize' && promptId === 'waits');
  });

  it.each([
    ['an id of 201 characters', { promptId: 'x'.repeat(201) }],
    ['a channel of 201 characters', { channelType: 'c', channelId: 'x'.repeat(201) }],
    ['a file without an address', { attachments: [{ mime: 'a/b' }] }],
    ['files that are no list', { attachments: { length: 1, 0: { mime: 'a/b', url: 'x' } } }],
    ['a model that is no text', { model: {} }],
    [
      'a traceparent with a line break',
      { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01\n` },
    ],
    ['only an empty text', { content: '' }],
  ])('cannot send a prompt with %s', async (_, more) => {
    const chain = await start();
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'x', ...more });
    expect(await ann.until(({ type }) => type === 'error')).toMatchObject({ code: 'bad-request' });
    expect(chain.store.list()).toEqual([]);
  });
});

describe('a person', () => {
  it('who was disconnected while the upgrade was decided is disconnected by the next check', async () => {
    const gate = Promise.withResolvers<void>();
    let isAllowed = true;
    const chain = await start({
      timing: { accessCheckMs: 20 },
      access: async () => {
        const role = isAllowed ? ('owner' as const) : null;
        await gate.promise;
        return role;
      },
    });
    const socket = openSocket(chain.port, upgradeAs('ann'));
    const closed = once(socket, 'close');
    await new Promise((resolve) => setTimeout(resolve, 30));
    isAllowed = false;
    chain.sessions.disconnect('ann');
    gate.resolve();
    await closed;
    expect(socket.heard()).toContain('access was withdrawn');
  });

  it('whose name has line breaks and marks of direction is shown as data, and forges no event', async () => {
    const name = 'eve\r\n{"type":"init"}\u202e\u0000';
    const chain = await start({
      authenticate: ({ headers }) => {
        const id = headers.get('authorization')?.slice('Bearer '.length) ?? '';
        return { id, name: id === 'eve' ? name : id };
      },
    });
    const ann = await joinSession(chain);
    await joinSession(chain, { user: 'eve' });
    const { userDetails } = await ann.until(
      ({ type, userId }) => type === 'user.joined' && userId === 'eve',
    );
    expect(userDetails).toEqual({ id: 'eve', name });
    expect(ann.of('init')).toHaveLength(1);
  });

  it('who asks an agent that says what breaks a client poisons no later connection', async () => {
    const agent: Agent = {
      name: 'hostile',
      async *prompt() {
        yield { type: 'text-delta', id: '__proto__', delta: '\ud800\u2028</script>\u0000' };
        yield { type: 'data-__proto__', id: 'constructor', data: { toJSON: 1 } } as never;
        yield null as never;
        yield { type: 5 } as never;
        yield { type: 'tool-output-available', toolCallId: 'never called', output: 1 };
      },
    };
    const chain = await start({ agent });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'x' });
    await ann.until(({ type }) => type === 'message.finalize');
    const bob = await joinSession(chain, { user: 'bob' });
    const { session } = bob.events[0] as unknown as { session: { messages: object[] } };
    expect(session.messages).toHaveLength(2);
  });
});
