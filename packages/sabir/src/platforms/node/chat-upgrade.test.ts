/** The real `WebSocketChatTransport` of AI SDK 7 on real sockets. The page with `useChat` is in test/stock-clients.test.ts. */
import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai-v7';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createApprovalAgent } from '../../../test/approval-agent.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  eventually,
  openSse,
} from '../../../test/gateway-client.ts';
import { startHosted } from '../../../test/hosted-gateway.ts';
import {
  createSocketClient,
  knockAt,
  listenWithSockets,
  openRawSocket,
  sendFrame,
} from '../../../test/socket-client.ts';
import { startSocketProxy } from '../../../test/socket-proxy.ts';
import type { AuditEvent } from '../../core/audit.ts';
import type { ChatGatewayOptions, Upstream } from '../../gateway/index.ts';
import { memorySessionStore } from '../../sessions/index.ts';
import { startSessionStack } from './session-stack.ts';

async function setUp(upstream: Upstream, options: Partial<ChatGatewayOptions> = {}) {
  const gateway = createTestGateway(upstream, options);
  const { url, port } = await listenWithSockets(gateway);
  return { gateway, url, port };
}

async function setUpLed(options: Partial<ChatGatewayOptions> = {}) {
  const agent = createAgent();
  return { agent, ...(await setUp(agent.upstream, options)) };
}

describe('WebSocketChatTransport', () => {
  it('chats over one socket: a question, an answer, and another', async () => {
    const { gateway, url } = await setUp(echo);
    const { chat, text, result } = await createSocketClient(url);
    await chat.sendMessage({ text: 'one' });
    expect([text(), result().status]).toEqual(['You said one', 'ready']);
    await chat.sendMessage({ text: 'two' });
    expect(text()).toBe('You said two');
    expect(
      result()
        .messages.map(({ role }) => role)
        .join(),
    ).toBe('user,assistant,user,assistant');
    const metrics = await createUser(gateway, 'carl').metrics();
    expect(metrics['sabir_limit_use{limit="chatSockets"}']).toBe(1);
    expect(metrics.adapter_request_count_total).toBe(2);
  });

  it('shows a tool with its output', async () => {
    const { agent, url } = await setUpLed();
    const { chat, result } = await createSocketClient(url);
    const sent = chat.sendMessage({ text: 'look' });
    const run = await agent.run();
    const call = { toolCallId: 'c', toolName: 'lookup' };
    run.say({ type: 'tool-input-available', ...call, input: { q: 1 } });
    run.say({ type: 'tool-output-available', toolCallId: 'c', output: { hits: 3 } });
    run.end();
    await sent;
    expect(result().message?.parts).toContainEqual(
      expect.objectContaining({ state: 'output-available', output: { hits: 3 } }),
    );
  });

  it('is the same message when it is sent once more: the turn is not run twice', async () => {
    const { agent, url } = await setUpLed();
    const raw = await openRawSocket(url);
    raw.say(sendFrame('hi', { requestId: 'r1' }));
    (await agent.run()).text('hello');
    raw.say(sendFrame('hi', { requestId: 'r2' }));
    await raw.until('chunk', 'r2');
    agent.runs[0]?.end();
    await raw.until('end', 'r1');
    await raw.until('end', 'r2');
    expect(agent.runs).toHaveLength(1);
    const numbers = raw.of('r2').flatMap(({ sequence }) => sequence ?? []);
    expect(numbers).toEqual(numbers.map((_, i) => i));
  });

  it('goes on in a turn that its socket was cut from, without a word lost or doubled', async () => {
    const { agent, port } = await setUpLed();
    const proxy = await startSocketProxy(port, () => undefined);
    onTestFinished(() => proxy.close());
    const { chat, text, result } = await createSocketClient(proxy.url);
    const sent = chat.sendMessage({ text: 'hi' });
    const run = await agent.run();
    run.delta('before ');
    await eventually(text, 'the first words');
    proxy.cutAll();
    await sent;
    expect(result().error?.message).toContain('network connection');
    run.delta('between ');
    const resumed = chat.resumeStream();
    await eventually(() => text().includes('between'), 'what was missed', text);
    run.delta('after');
    run.end();
    await resumed;
    expect([text(), result().status]).toEqual(['before between after', 'ready']);
    expect(result().messages).toHaveLength(2);
  });

  it('gets the whole of an answer that is larger than what a socket holds at once, live and in a replay', async () => {
    const { agent, url } = await setUpLed();
    const raw = await openRawSocket(url);
    raw.say(sendFrame('go', { requestId: 'live' }));
    const run = await agent.run();
    for (let i = 0; i < 100; i++) {
      run.say({ type: 'data-block', data: `${i} ${'x'.repeat(64_000)}` });
    }
    run.delta('end');
    const blocksOf = (requestId: string) =>
      raw.of(requestId).filter(({ chunk }) => (chunk as { type: string })?.type === 'data-block');
    await eventually(() => blocksOf('live').length === 100, 'all of it');
    raw.say({ type: 'resume', requestId: 'replay', id: 'c1', headers: {}, body: {} });
    await eventually(() => blocksOf('replay').length === 100, 'all of it again');
    run.end();
    await raw.until('end', 'replay');
    for (const requestId of ['live', 'replay']) {
      const numbers = raw.of(requestId).flatMap(({ sequence }) => sequence ?? []);
      expect(numbers).toEqual(numbers.map((_, i) => i));
    }
  });

  it('shows a running answer to a page that was reloaded, and nothing where no turn runs', async () => {
    const { agent, url } = await setUpLed();
    const first = await createSocketClient(url);
    await first.chat.resumeStream();
    expect(first.result()).toMatchObject({ status: 'ready', error: undefined, messages: [] });
    void first.chat.sendMessage({ text: 'hi' });
    (await agent.run()).delta('half ');
    await eventually(first.text, 'the first words');
    first.transport.close();
    const second = await createSocketClient(url);
    const resumed = second.chat.resumeStream();
    await eventually(() => second.text() === 'half ', 'the replay');
    agent.runs[0]?.delta('whole');
    agent.runs[0]?.end();
    await resumed;
    expect(second.text()).toBe('half whole');
  });

  it('reads the same turn as a viewer on SSE', async () => {
    const { agent, gateway, url } = await setUpLed();
    const { chat, text } = await createSocketClient(url);
    const sent = chat.sendMessage({ text: 'hi' });
    (await agent.run()).delta('for ');
    const sse = openSse(await createUser(gateway, 'vera').resume());
    await sse.until(() => sse.text());
    agent.runs[0]?.delta('both');
    agent.runs[0]?.end();
    await Promise.all([sent, sse.ended]);
    expect([text(), sse.text()]).toEqual(['for both', 'for both']);
  });

  it('leaves a turn with stop(): the turn is stopped after disconnectGraceMs, and the socket goes on', async () => {
    const { agent, url } = await setUpLed({ timing: { disconnectGraceMs: 100 } });
    const { chat, text, result } = await createSocketClient(url);
    const sent = chat.sendMessage({ text: 'hi' });
    (await agent.run()).delta('half');
    await eventually(text, 'the first words');
    await chat.stop();
    await sent;
    expect(agent.runs[0]?.turn.signal.aborted).toBe(false);
    await eventually(() => agent.runs[0]?.turn.signal.aborted, 'the stop');
    void chat.sendMessage({ text: 'again' });
    (await agent.run(1)).text('here');
    agent.runs[1]?.end();
    await eventually(() => result().status === 'ready' && text() === 'here', 'the next answer');
  });

  it('does not stop a turn that another viewer reads, or with x-sabir-detach', async () => {
    const { agent, gateway, url } = await setUpLed({ timing: { disconnectGraceMs: 0 } });
    const detached = { headers: { 'x-sabir-detach': '1' } };
    const { chat, text } = await createSocketClient(url, detached);
    void chat.sendMessage({ text: 'hi' });
    (await agent.run()).delta('half');
    await eventually(text, 'the first words');
    await chat.stop();
    const sse = openSse(await createUser(gateway, 'cora').resume());
    await sse.until(() => sse.text());
    const other = await createSocketClient(url);
    void other.chat.resumeStream();
    await eventually(other.text, 'the replay');
    await other.chat.stop();
    expect(agent.runs[0]?.turn.signal.aborted).toBe(false);
    agent.runs[0]?.end();
    await sse.ended;
  });

  it('is asked for an approval, answers it, and goes on in the same message', async () => {
    const agent = createApprovalAgent({ steps: [['a']] });
    const audited: AuditEvent[] = [];
    const onAudit = (event: AuditEvent) => void audited.push(event);
    const { url } = await setUp(agent.upstream, { onAudit });
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses;
    const { chat, text, result } = await createSocketClient(url, { sendAutomaticallyWhen });
    await chat.sendMessage({ text: 'go' });
    expect(result().message?.parts).toContainEqual(
      expect.objectContaining({ state: 'approval-requested' }),
    );
    await (
      chat as unknown as { addToolApprovalResponse(given: object): Promise<void> }
    ).addToolApprovalResponse({ id: 'a', approved: true });
    await eventually(() => text() && result().status === 'ready', 'the rest');
    expect(text()).toBe('Done: a true.');
    expect(agent.heard).toEqual({ a: { approved: true } });
    expect(result().messages).toHaveLength(2);
    expect(audited.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      'prompt accepted',
      'answer accepted',
    ]);
  });

  it('waits behind a running prompt of a session, and is answered when its turn comes', async () => {
    const { agent, gateway, carl } = startHosted();
    const { url } = await listenWithSockets(gateway);
    const first = openSse(await carl.post(chatBody('first')));
    const running = await eventually(() => agent.runs[0], 'the first run');
    const { chat, text } = await createSocketClient(url, { user: 'cora' });
    const sent = chat.sendMessage({ text: 'second' });
    running.say({ type: 'text-delta', delta: 'one' });
    running.end();
    await first.ended;
    const next = await eventually(() => agent.runs[1], 'the second run');
    next.say({ type: 'text-delta', delta: 'two' });
    next.end();
    await sent;
    expect(text()).toBe('two');
  });

  it('serves the chats of the contract routes, also public ones', async () => {
    const { url } = await setUp(echo, { routes: { onboarding: { public: true } } });
    const id = `chat_${'1'.repeat(32)}`;
    for (const path of ['/api/chat', '/api/onboarding']) {
      const raw = await openRawSocket(url, { path, user: path === '/api/chat' ? 'carl' : '' });
      raw.say(sendFrame('hi', { id, body: { sessionId: id } }));
      await raw.until('end');
      expect(raw.frames.at(1)).toMatchObject({ type: 'chunk', sequence: 0 });
      raw.say({ type: 'resume', requestId: 'r2', id, headers: {}, body: {} });
      await raw.until('no-active', 'r2');
    }
  });

  it('gets an error frame for a refused request, and its other requests go on', async () => {
    const { agent, url } = await setUpLed();
    const raw = await openRawSocket(url, { user: 'vera' });
    raw.say(sendFrame('hi'));
    expect(await raw.until('error')).toEqual({
      type: 'error',
      requestId: 'r-hi',
      errorText: 'There is nothing here.',
      code: 'not-found',
    });
    const { chat, result, text } = await createSocketClient(url, { user: 'carl' });
    const sent = chat.sendMessage({ text: 'x'.repeat(1_000_001) });
    await sent;
    expect(result().error?.message).toContain('larger than');
    chat.messages = [];
    void chat.sendMessage({ text: 'hi' });
    (await agent.run()).text('hello');
    await eventually(() => text() === 'hello', 'the answer');
  });
});

describe('startSessionStack', () => {
  it('serves the sockets of chats and of sessions on one port, and no page that renames this machine', async () => {
    const store = memorySessionStore();
    const stack = await startSessionStack({
      store,
      agent: () =>
        async function* ({ text }) {
          yield { type: 'text-delta', delta: `You said ${text}` };
        },
      shutdownMs: 0,
    });
    onTestFinished(async () => {
      await stack.close();
      store.close();
    });
    const { chat, text } = await createSocketClient(stack.url);
    await chat.sendMessage({ text: 'hi' });
    expect(text()).toBe('You said hi');
    expect(await knockAt(stack.url, { path: '/api/sessions/s1/ws' })).toBe(101);
    for (const path of ['/api/sessions/s1/chat', '/api/sessions/s1/ws']) {
      const headers = { host: 'evil.example', origin: 'http://evil.example' };
      expect(await knockAt(stack.url, { path, headers })).toBe(401);
    }
    expect(await knockAt(stack.url, { path: '/api/sessions/s1/other' })).toBe(404);
  });
});

describe('a socket of a chat', () => {
  it('brings its streams to an end and closes with 1001 when the gateway closes', async () => {
    const { agent, gateway, url } = await setUpLed();
    const raw = await openRawSocket(url);
    raw.say(sendFrame('hi'));
    (await agent.run()).delta('half');
    await raw.until('chunk');
    await gateway.close();
    await raw.until('end');
    expect(await raw.closed()).toEqual({ code: 1001, reason: 'shutting down' });
    const chunks = raw.frames.flatMap(({ chunk }) => (chunk as { type: string })?.type ?? []);
    expect(chunks).toContain('finish');
  });

  it('that is still being admitted when the gateway closes is closed with 1001', async () => {
    const gate = Promise.withResolvers<void>();
    const asked = vi.fn();
    const { gateway, url } = await setUp(echo, {
      async authenticate() {
        asked();
        await gate.promise;
        return { id: 'carl' };
      },
    });
    const opening = openRawSocket(url);
    await eventually(() => asked.mock.calls.length, 'the question');
    await gateway.close();
    gate.resolve();
    expect(await (await opening).closed()).toMatchObject({ code: 1001 });
  });

  it('ends its streams when access is revoked, and takes nothing more', async () => {
    let role: 'collaborator' | null = 'collaborator';
    const { agent, url } = await setUpLed({ access: () => role, timing: { accessCheckMs: 20 } });
    const { chat, text, result } = await createSocketClient(url);
    const sent = chat.sendMessage({ text: 'hi' });
    (await agent.run()).delta('half');
    await eventually(text, 'the first words');
    role = null;
    await sent;
    await chat.sendMessage({ text: 'more' });
    expect(result().error?.message).toBe('There is nothing here.');
  });

  it('ends a stream when its sign-in expires, and goes on with a newer token of a frame', async () => {
    const expiries: Record<string, number> = { carl: Date.now() + 300, cora: Date.now() + 60_000 };
    const { agent, url } = await setUpLed({
      authenticate(request) {
        const id = request.headers.get('authorization')?.slice('Bearer '.length) ?? '';
        const { [id]: expiresAt } = expiries;
        return expiresAt === undefined ? null : { id, expiresAt };
      },
    });
    const headers: Record<string, string> = {};
    const { chat, text, result } = await createSocketClient(url, { headers });
    const sent = chat.sendMessage({ text: 'hi' });
    (await agent.run()).delta('half');
    await sent;
    expect(text()).toBe('half');
    await chat.sendMessage({ text: 'expired' });
    expect(result().error?.message).toBe('You are not signed in.');
    headers.authorization = 'Bearer cora';
    void chat.sendMessage({ text: 'renewed' });
    (await agent.run(1)).text('hello');
    await eventually(() => text() === 'hello', 'the answer');
  });

  it('is closed with 4401 when its cookie has ended, and the client connects again with the new cookie', async () => {
    let valid = 'sid=1';
    const { url } = await setUp(echo, {
      authenticate: ({ headers }) => (headers.get('cookie') === valid ? { id: 'carl' } : null),
    });
    const jar = { cookie: 'sid=1' };
    const { chat, text, result } = await createSocketClient(url, { protocols: [], jar });
    await chat.sendMessage({ text: 'one' });
    expect(text()).toBe('You said one');
    [valid, jar.cookie] = ['sid=2', 'sid=2'];
    await chat.sendMessage({ text: 'two' });
    expect(result().error?.message).toBe('You are not signed in.');
    // The close is on its way.
    await vi.waitFor(async () => {
      await chat.sendMessage({ text: 'three' });
      expect(text()).toBe('You said three');
    });
  });

  it('is closed with 4403 by gateway.disconnect(userId), and others stay', async () => {
    const { gateway, url } = await setUp(echo, { routes: { onboarding: { public: true } } });
    const carl = await openRawSocket(url);
    const cora = await openRawSocket(url, { user: 'cora' });
    const stranger = await openRawSocket(url, { path: '/api/onboarding', user: '' });
    gateway.disconnect('public');
    gateway.disconnect('carl');
    expect(await carl.closed()).toMatchObject({ code: 4403 });
    for (const other of [cora, stranger]) {
      other.say(sendFrame('hi', { body: { sessionId: `chat_${'1'.repeat(32)}` } }));
      await other.until('end');
    }
  });

  it('uses headers of the upgrade that a frame cannot replace', async () => {
    const seen = vi.fn();
    const { url } = await setUp(echo, {
      authenticate({ method, headers }) {
        if (method === 'POST') seen(headers.get('authorization'), headers.get('x-user'));
        return { id: 'carl' };
      },
    });
    const raw = await openRawSocket(url, { headers: { 'x-user': 'carl' } });
    const headers = { 'X-User': 'olga', Authorization: 'Bearer olga', cookie: 'id=olga' };
    raw.say(sendFrame('hi', { headers }));
    await raw.until('end');
    expect(seen.mock.calls).toEqual([['Bearer carl', 'carl']]);
  });
});
