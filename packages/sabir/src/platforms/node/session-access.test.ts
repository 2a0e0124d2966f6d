/** Access that ends while a socket is open, audit events, and what visits store. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { chatBody, openSse, refusal } from '../../../test/gateway-client.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { type ChainOptions, joinSession, startSessionChain } from '../../../test/session-chain.ts';
import type { AuditEvent } from '../../core/audit.ts';
import type { Role } from '../../gateway/index.ts';
import { memorySessionStore } from '../../sessions/index.ts';
import { DEFAULT_SOCKET_TIMING } from './session-server-options.ts';
import { startSessionStack } from './sessions.ts';

const start = (options: Partial<ChainOptions> = {}) =>
  startSessionChain({ agent: scriptedAgent(), ...options });

describe('access that changes while a socket is open', () => {
  function changing(first: Role) {
    const roles: { ann: Role | null; fails: boolean } = { ann: first, fails: false };
    const access = async ({ id }: { id: string }) => {
      if (roles.fails) throw new Error('The database is away.');
      return id === 'ann' ? roles.ann : 'collaborator';
    };
    return { roles, options: { access, timing: { accessCheckMs: 20 } } };
  }

  it('closes the socket of a person who has none any more with 4403, and no other', async () => {
    const { roles, options } = changing('collaborator');
    const chain = await start(options);
    const ann = await joinSession(chain);
    const bob = await joinSession(chain, { user: 'bob' });
    roles.ann = null;
    expect(await ann.closed).toMatchObject({ code: 4403 });
    bob.send({ type: 'ping' });
    await bob.until(({ type }) => type === 'pong');
    expect(chain.sessions.clientCount).toBe(1);
  });

  it('closes the socket of a person whose role has changed with 4410, to come back', async () => {
    const { roles, options } = changing('owner');
    const chain = await start(options);
    const ann = await joinSession(chain);
    roles.ann = 'viewer';
    expect(await ann.closed).toMatchObject({ code: 4410 });
    const again = await joinSession(chain);
    expect(again.events[0]).toMatchObject({ data: { role: 'viewer' } });
  });

  it('keeps sockets open while access cannot be asked', async () => {
    const { roles, options } = changing('owner');
    const chain = await start(options);
    const ann = await joinSession(chain);
    roles.fails = true;
    await new Promise((resolve) => setTimeout(resolve, 60));
    ann.send({ type: 'ping' });
    await ann.until(({ type }) => type === 'pong');
  });

  it('is asked about again every minute unless set', () => {
    expect(DEFAULT_SOCKET_TIMING.accessCheckMs).toBe(60_000);
  });
});

it('disconnect closes all sockets of one person at once, and no other', async () => {
  const chain = await start();
  const sockets = [await joinSession(chain), await joinSession(chain, { sessionId: 'other' })];
  const bob = await joinSession(chain, { user: 'bob' });
  chain.sessions.disconnect('ann');
  for (const { closed } of sockets) expect(await closed).toMatchObject({ code: 4403 });
  bob.send({ type: 'ping' });
  await bob.until(({ type }) => type === 'pong');
});

describe('audit events of a session', () => {
  it('tell who prompted, stopped, withdrew and answered, and what was refused', async () => {
    const events: AuditEvent[] = [];
    const onAudit = (event: AuditEvent) => void events.push(event);
    const chain = await start({ onAudit });
    const ann = await joinSession(chain);
    const vera = await joinSession(chain, { user: 'vera' });
    ann.send({ type: 'prompt', content: 'question secret', promptId: 'p1', turnId: 't1' });
    const { questionId } = await ann.until(({ type }) => type === 'question');
    vera.send({ type: 'answer', questionId, answer: 'mine' });
    await vera.until(({ type }) => type === 'error');
    ann.send({ type: 'answer', questionId, answer: 'a secret' });
    await ann.until(({ type, turnId }) => type === 'complete' && turnId === 't1');
    ann.send({ type: 'prompt', content: 'slow', promptId: 'p2', turnId: 't2' });
    await ann.until(({ type, turnId }) => type === 'message.part.text-delta' && turnId === 't2');
    ann.send({ type: 'prompt', content: 'text', promptId: 'p3', turnId: 't3' });
    ann.send({ type: 'withdraw', promptId: 'p3' });
    ann.send({ type: 'abort', turnId: 't2' });
    await ann.until(({ type, turnId }) => type === 'complete' && turnId === 't2');
    const reported = events.map(({ at: _, ...event }) => event);
    const turnOf = (messageId: string) =>
      chain.store.open('s').promptInfo('messageId', messageId)?.turnId;
    const common = { sessionId: 's', via: 'socket' };
    const anns = { ...common, userId: 'ann', role: 'collaborator', outcome: 'accepted' };
    expect(reported).toEqual([
      { ...anns, action: 'prompt', turnId: turnOf('t1') },
      {
        ...common,
        userId: 'vera',
        role: 'viewer',
        outcome: 'refused',
        action: 'answer',
        questionId,
        code: 'may-only-watch',
      },
      { ...anns, action: 'answer', questionId, turnId: turnOf('t1') },
      { ...anns, action: 'prompt', turnId: turnOf('t2') },
      { ...anns, action: 'prompt', turnId: turnOf('t3') },
      { ...anns, action: 'withdraw', turnId: turnOf('t3') },
      { ...anns, action: 'stop', turnId: turnOf('t2') },
    ]);
    expect(JSON.stringify(events)).not.toContain('secret');
  });
});

describe('a session stack', () => {
  async function startStack(limits = {}) {
    const audited: AuditEvent[] = [];
    const store = memorySessionStore();
    const stack = await startSessionStack({
      store,
      agent: () => scriptedAgent(),
      shutdownMs: 0,
      sessions: { limits, timing: { lingerMs: 20 }, onAudit: (event) => audited.push(event) },
      gateway: { timing: { lingerMs: 20 } },
    });
    onTestFinished(() => stack.close());
    const post = (text: string, id: string) =>
      fetch(`${stack.url}/api/sessions/s/chat`, {
        method: 'POST',
        body: JSON.stringify(chatBody(text, { id })),
      });
    return { stack, store, post, audited };
  }

  it('does not report from the session what comes through the gateway', async () => {
    const { post, audited } = await startStack();
    await openSse(await post('text', 'c')).ended;
    expect(audited).toEqual([]);
  });

  it('answers a prompt at once with the refusal of the session, when its queue is full', async () => {
    const { post } = await startStack({ queuedPrompts: 1 });
    const running = openSse(await post('slow', 'c1'));
    await running.until(() => running.text() === 'Half ');
    const [waits, refused] = await Promise.all([post('one', 'c2'), post('two', 'c3')]).then(
      (responses) => responses.sort((one, other) => one.status - other.status),
    );
    expect([waits?.status, refused?.status]).toEqual([200, 429]);
    expect(await refused?.json()).toMatchObject({ code: 'queue-full' });
  });

  it('refuses a prompt with 413 that is larger than the session takes, and stores nothing', async () => {
    const { post, store } = await startStack({ promptBytes: 5_000 });
    const response = await post('x'.repeat(6_000), 'c');
    expect(await refusal(response)).toMatchObject({ status: 413, code: 'body-too-large' });
    expect(store.list()).toEqual([]);
  });

  it('stores nothing of sessions that people only look at, and forgets them', async () => {
    const { stack, store } = await startStack();
    expect((await fetch(`${stack.url}/api/sessions/none/messages`)).status).toBe(200);
    const local = await joinSession(stack, { sessionId: 'neither' });
    local.send({ type: 'follow', turnId: 't' });
    await local.until(({ type }) => type === 'error');
    local.close();
    await expect.poll(() => stack.sessions.sessions.size).toBe(0);
    expect(store.list()).toEqual([]);
    expect(store.open('neither').participants()).toEqual([]);
  });

  it('knows who was there when the first prompt of a session came', async () => {
    const { stack, store, post } = await startStack();
    await joinSession(stack, { sessionId: 's' });
    await openSse(await post('text', 'c')).ended;
    expect(store.open('s').participants()).toMatchObject([{ id: 'local', role: 'owner' }]);
  });
});
