import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createAgent,
  createLogSpy,
  createTestGateway,
  createUser,
  echo,
  eventually,
  isSettled,
  ORIGIN,
  openSse,
  readChunks,
  refusal,
} from '../../test/gateway-client.ts';
import { type ChatGatewayOptions, createChatGateway } from './index.ts';

const fetchAt = (path: string, method = 'GET', options: Partial<ChatGatewayOptions> = {}) =>
  createTestGateway(echo, options).fetch(
    new Request(ORIGIN + path, { method, headers: { authorization: 'Bearer carl' } }),
  );

const POSTS = [
  '/api/sessions/s1/chat',
  '/api/sessions/s1/chat/c1/stop',
  '/api/sessions/s1/chat/c1/answer',
];
const GETS = [
  '/api/sessions/s1/chat/c1/stream',
  '/api/sessions/s1/messages',
  '/api/sessions/s1/channels',
  '/healthz',
  '/readyz',
  '/metrics',
];

describe('addresses', () => {
  it.each([
    ['/', 'GET'],
    ['/api', 'GET'],
    ['/api/sessions', 'GET'],
    ['/api/sessions/', 'GET'],
    ['/api/sessions/s1', 'GET'],
    ['/api/sessions//chat', 'POST'],
    ['/api/sessions/s1/chat/c1', 'GET'],
    ['/api/sessions/s1/chat/c1/', 'GET'],
    ['/api/sessions/s1/chat//stream', 'GET'],
    ['/api/sessions/s1/chat/stream', 'GET'],
    ['/api/sessions/s1/chat/c1/restart', 'POST'],
    ['/api/sessions/s1/messages/1', 'GET'],
    ['/api/sessions/s1/channels/1', 'GET'],
    ['/api/sessions/s1/talk', 'POST'],
    ['/api/sessions/%E0%A4%A/chat', 'POST'],
    ['/api/sessions/s1/chat/%E0%A4%A/stream', 'GET'],
    ['/sessions/s1/chat', 'POST'],
    ['/apisessions/s1/chat', 'POST'],
    ['/healthz/x', 'GET'],
    ['/api/sessions/s1/talk', 'OPTIONS'],
  ])('has nothing at %s for %s, and says so', async (path, method) => {
    expect(await refusal(await fetchAt(path, method))).toMatchObject({
      status: 404,
      code: 'not-found',
    });
  });

  it.each(POSTS)('takes only POST at %s', async (path) => {
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']) {
      const response = await fetchAt(path, method);
      expect(response.headers.get('allow')).toBe('POST');
      expect(await refusal(response)).toMatchObject({ status: 405, code: 'method-not-allowed' });
    }
  });

  it.each(GETS)('takes only GET at %s', async (path) => {
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const response = await fetchAt(path, method);
      expect(response.headers.get('allow')).toBe('GET');
      expect(await refusal(response)).toMatchObject({
        status: 405,
        code: 'method-not-allowed',
        message: 'Use GET.',
      });
    }
  });

  it('answers HEAD where machines ask, and nowhere else', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      expect((await fetchAt(path, 'HEAD')).status).toBe(200);
    }
    expect((await fetchAt('/api/sessions/s1/messages', 'HEAD')).status).toBe(405);
  });

  it.each([...POSTS, ...GETS])('answers OPTIONS at %s without asking who it is', async (path) => {
    const gateway = createTestGateway(echo);
    const response = await gateway.fetch(new Request(ORIGIN + path, { method: 'OPTIONS' }));
    expect(response.status).toBe(204);
    expect(await response.text()).toBe('');
  });

  it('begins where the option says, with or without a slash at its end', async () => {
    for (const base of ['/chat/v1', '/chat/v1/', '/chat/v1//']) {
      const carl = createUser(createTestGateway(echo, { routes: { base } }), 'carl');
      const sent = await carl.send('POST', '/chat/v1/sessions/s1/chat', {}, chatBody('hi'));
      expect(sent.status).toBe(200);
      await sent.text();
      expect((await carl.post(chatBody('hi'))).status).toBe(404);
    }
    const root = createUser(createTestGateway(echo, { routes: { base: '/' } }), 'carl');
    expect((await root.send('POST', '/sessions/s1/chat', {}, chatBody('hi'))).status).toBe(200);
  });
});

describe('ids in addresses', () => {
  const odd = ['a/b', 'a/b/stream', 'stop', 'chat', 'ü ñ 😀', 'a?b#c', 'a%2Fb', '100%', ' '];

  it.each(odd)('finds the chat %j by its encoded id', async (chatId) => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const first = openSse(await carl.post(chatBody('hi', { id: chatId })));
    (await agent.run()).delta('on its way');
    await first.until(() => first.text());
    const second = openSse(await carl.resume(chatId));
    await second.until(() => second.text() === 'on its way');
    expect((await carl.stop(chatId)).status).toBe(202);
    await second.ended;
  });

  it.each(['a/b', 'a/b/stream', 'ü ñ', 'a:b@c', 'a+b'])(
    'finds the chat %j by the id as 6.0.9 writes it, not encoded',
    async (chatId) => {
      const agent = createAgent();
      const carl = createUser(createTestGateway(agent.upstream), 'carl');
      const first = openSse(await carl.post(chatBody('hi', { id: chatId })));
      (await agent.run()).delta('on its way');
      await first.until(() => first.text());
      const response = await carl.send('GET', `/api/sessions/s1/chat/${chatId}/stream`);
      const second = openSse(response);
      await second.until(() => second.text() === 'on its way');
    },
  );

  it('passes a session id on as it was before it was encoded', async () => {
    const seen: string[] = [];
    const carl = createUser(
      createTestGateway(echo, {
        access: (_, sessionId) => {
          seen.push(sessionId);
          return 'owner';
        },
      }),
      'carl',
      'team/7 ü?',
    );
    expect((await carl.post(chatBody('hi'))).status).toBe(200);
    expect(seen).toEqual(['team/7 ü?']);
  });
});

describe('what machines ask', () => {
  it('says at /healthz that it is well, to anybody', async () => {
    const response = await createTestGateway(echo).fetch(new Request(`${ORIGIN}/healthz`));
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
  });

  it('shows its metrics to whom the option says', async () => {
    const show = async (metrics: boolean | ((request: Request) => boolean)) =>
      (await fetchAt('/metrics', 'GET', { routes: { metrics } })).status;
    expect(await show(true)).toBe(200);
    expect(await show(false)).toBe(404);
    expect(await show((request) => request.headers.has('authorization'))).toBe(200);
    expect(await show((request) => request.headers.has('x-scraper'))).toBe(404);
    const response = await fetchAt('/metrics');
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await response.text()).toContain('# TYPE sabir_live_turns gauge\nsabir_live_turns 0\n');
  });

  it('lists the channels that the upstream has seen, and none where it knows of none [RFC-CHANNEL-02]', async () => {
    const channels = [{ channelType: 'slack', channelId: 'C1' }];
    const knows = createTestGateway({
      open: async (where) => ({
        ...(await echo.open(where)),
        isClosed: false,
        channels: () => channels,
      }),
    });
    expect(await (await createUser(knows, 'carl').channels()).json()).toEqual(channels);
    expect(await (await createUser(createTestGateway(echo), 'carl').channels()).json()).toEqual([]);
  });
});

describe('when something breaks', () => {
  it('answers 500 without a word of what happened, and logs it', async () => {
    const { lines, logger } = createLogSpy();
    const response = await fetchAt('/api/sessions/s1/channels', 'GET', {
      access: () => {
        throw new Error('password of the database: hunter2');
      },
      logger,
    });
    expect(await refusal(response)).toMatchObject({ status: 500, code: 'internal-error' });
    expect(lines).toMatchObject([
      {
        level: 'error',
        details: {
          requestId: expect.any(String),
          path: '/api/sessions/s1/channels',
          error: { message: 'password of the database: hunter2' },
        },
      },
    ]);
    const again = await fetchAt('/api/sessions/s1/channels', 'GET', {
      access: () => Promise.reject(new Error('hunter2')),
    });
    expect(await again.text()).not.toContain('hunter2');
  });

  it.each(['/api/sessions/s1/channels', '/api/sessions/s1/messages'])(
    'says at %s that the agent cannot be reached',
    async (path) => {
      const gateway = createTestGateway({ open: () => Promise.reject(new Error('ECONNREFUSED')) });
      const carl = createUser(gateway, 'carl');
      expect(await refusal(await carl.send('GET', path))).toMatchObject({
        status: 502,
        code: 'upstream-unreachable',
      });
      expect(await carl.metrics()).toMatchObject({ adapter_ws_open_failures_total: 1 });
    },
  );
});

describe('close', () => {
  it('takes nothing new, and says when to come again', async () => {
    const gateway = createTestGateway(echo);
    const carl = createUser(gateway, 'carl');
    await gateway.close();
    for (const response of [await carl.post(chatBody('hi')), await carl.resume()]) {
      expect(response.headers.get('retry-after')).toBe('1');
      expect(await refusal(response)).toMatchObject({ status: 503, code: 'shutting-down' });
    }
    const health = await carl.send('GET', '/healthz');
    expect([health.status, await health.json()]).toEqual([503, { status: 'closing' }]);
    expect((await carl.send('GET', '/metrics')).status).toBe(200);
    await gateway.close();
  });

  it('lets a running turn come to its own end', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { timing: { shutdownMs: 10_000 } });
    const carl = createUser(gateway, 'carl');
    const sse = openSse(await carl.post(chatBody('hi')));
    const run = await agent.run();
    const closing = gateway.close();
    expect((await carl.post(chatBody('too late'))).status).toBe(503);
    run.text('just in time');
    run.end();
    await closing;
    await sse.ended;
    expect(sse.chunks().at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' });
    expect(sse.text()).toBe('just in time');
  });

  it('ends what still runs after its time, and tells the viewers why', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { timing: { shutdownMs: 30 } });
    const sse = openSse(await createUser(gateway, 'carl').post(chatBody('hi')));
    (await agent.run()).delta('half a');
    await sse.until(() => sse.text());
    await gateway.close();
    await sse.ended;
    expect(sse.chunks().slice(-4)).toEqual([
      { type: 'text-end', id: 'open' },
      {
        type: 'message-metadata',
        messageMetadata: { outcome: 'failed', code: 'shutting-down' },
      },
      { type: 'error', errorText: 'The server is restarting.' },
      { type: 'finish', finishReason: 'error' },
    ]);
    expect(sse.frames.at(-1)?.data).toBe('[DONE]');
    expect(agent.runs[0]?.turn.signal.aborted).toBe(true);
  });

  it('waits for what is being stored of a turn that has ended', async () => {
    const storing = Promise.withResolvers<void>();
    let isCalled = false;
    const gateway = createTestGateway(echo, {
      timing: { shutdownMs: 10_000 },
      onFinish: () => {
        isCalled = true;
        return storing.promise;
      },
    });
    await readChunks(await createUser(gateway, 'carl').post(chatBody('hi')));
    await eventually(() => isCalled);
    const closing = gateway.close();
    expect(await isSettled(closing)).toBe(false);
    storing.resolve();
    await closing;
  });

  it('does not wait for ever for a hook that never comes back', async () => {
    const gateway = createTestGateway(createAgent().upstream, {
      timing: { shutdownMs: 10 },
      onFinish: () => new Promise(() => undefined),
    });
    await createUser(gateway, 'carl').post(chatBody('hi'));
    await gateway.close();
  });
});

describe('createChatGateway', () => {
  it.each([
    ['upstream', 'upstream or sessions'],
    ['authenticate', 'authenticate'],
    ['access', 'access'],
  ])('says without %s that it needs %s', (name, needed) => {
    const whole = { upstream: echo, authenticate: () => null, access: () => null };
    const options = { ...whole, [name]: undefined } as unknown as ChatGatewayOptions;
    expect(() => createChatGateway(options)).toThrow(
      new TypeError(`createChatGateway needs ${needed}.`),
    );
  });

  it('says so too when it is given nothing', () => {
    expect(() => createChatGateway(undefined as unknown as ChatGatewayOptions)).toThrow(TypeError);
  });

  it('can have another upstream for every session', async () => {
    const gateway = createTestGateway(async (sessionId) => ({
      open: async (where) => {
        const session = await echo.open(where);
        return {
          isClosed: false,
          close: () => session.close(),
          prompt: (prompt, sink) =>
            session.prompt({ ...prompt, text: `${prompt.text} in ${sessionId}` }, sink),
        };
      },
    }));
    for (const id of ['s1', 's2']) {
      const sse = openSse(await createUser(gateway, 'carl', id).post(chatBody('hi')));
      await sse.ended;
      expect(sse.text()).toBe(`You said hi in ${id}`);
    }
  });
});
