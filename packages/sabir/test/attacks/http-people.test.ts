/** Attacks of one user on another: reading, writing and ids that might collide. */
import { describe, expect, it } from 'vitest';
import { asUpstream, type Role } from '../../src/gateway/index.ts';
import { CHAT_ID, contractBody, openEvents } from '../contract-client.ts';
import { chatBody, createAgent, echo, openSse, refusal } from '../gateway-client.ts';
import { startAttacked } from './attacked.ts';

const PUBLIC = { onboarding: { public: true } };

/** Asks, and says whether it got an answer. */
const asking = asUpstream(async function* ({ chatId, answer }) {
  const question = { questionId: 'q1', status: 'open', answerBy: { role: 'owner' } };
  const open = { questionId: 'q2', status: 'open' };
  yield { type: 'data-question', id: 'q1', data: chatId === 'owners' ? question : open };
  yield { type: 'text-delta', id: '1', delta: `answered: ${await answer('q1')}` };
});

async function start(options = {}) {
  const agent = createAgent();
  return { agent, ...(await startAttacked(agent.upstream, { routes: PUBLIC, ...options })) };
}

describe('a cursor', () => {
  it('of one chat shows nothing of its turn in another chat, another session or another route', async () => {
    const { agent, user, stranger, contractUser } = await start();
    const carl = user('carl');
    const secret = openSse(await carl.post(chatBody('a', { id: 'secret' })));
    (await agent.run()).delta('the plan');
    await secret.until(() => secret.text());
    const cursor = secret.frames.at(-1)?.id ?? '';
    expect(cursor).toMatch(/:\d+$/);
    await stranger.post(contractBody('a'));
    (await agent.run(1)).delta('hello');
    const elsewhere = [
      await user('vera').resumeAt(cursor, 'c1'),
      await user('vera', 's2').resumeAt(cursor, 'secret'),
      await contractUser('carl').resumeAt(cursor),
      await contractUser('carl').resumeAt(cursor, 's1'),
    ];
    for (const response of elsewhere) expect(response.status).toBe(204);
    const own = openEvents(await stranger.resumeAt(cursor));
    await own.until(() => own.said());
    expect(own.raw()).not.toContain('plan');
    await Promise.all([own.leave(), secret.leave()]);
  });

  it.each([
    '',
    ':',
    '::',
    'x',
    '%',
    'x:-1',
    'x:1e99',
    'x:NaN',
    `${'x'.repeat(90)}:1`,
    '__proto__:1',
  ])('that says %j is not a way to another turn, nor a 500', async (cursor) => {
    const { user } = await start();
    expect((await user('carl').resumeAt(cursor)).status).toBe(204);
  });
});

describe('an answer', () => {
  it('to a question of another chat, session or route is a 404, and the question stays open', async () => {
    const { user, contractUser } = await startAttacked(asking);
    const carl = user('carl');
    const asked = openSse(await carl.post(chatBody('a', { id: 'c1' })));
    await asked.until(() => asked.chunks().length > 1);
    await carl.post(chatBody('a', { id: 'c2' }));
    expect((await user('carl').answer('q1', 'x', 'c3')).status).toBe(404);
    expect((await user('carl', 's2').answer('q1', 'x', 'c1')).status).toBe(404);
    expect((await contractUser('carl').answer('q1', 'x', 's1')).status).toBe(404);
    expect((await carl.answer('q1', 'mine', 'c1')).status).toBe(202);
    await asked.ended;
    expect(asked.text()).toBe('answered: mine');
  });

  it('that names an owner in its body is still its sender’s', async () => {
    const { user } = await startAttacked(asking);
    const sse = openSse(await user('carl').post(chatBody('a', { id: 'owners' })));
    await sse.until(() => sse.chunks().length > 1);
    const by = { userId: 'olga', role: 'owner' };
    const forged = { questionId: 'q1', answer: 'yes', by, user: { id: 'olga' }, role: 'owner' };
    const response = await user('carl').answerWith(forged, 'owners');
    expect(await refusal(response)).toMatchObject({ status: 403, code: 'may-not-answer' });
    expect((await user('olga').answerWith(forged, 'owners')).status).toBe(202);
  });

  it('of somebody who has lost the role since the question was asked is a 404', async () => {
    const roles: Record<string, Role | null> = { carl: 'collaborator' };
    const attacked = await startAttacked(asking, { access: ({ id }) => roles[id] ?? null });
    const carl = attacked.user('carl');
    const sse = openSse(await carl.post(chatBody('a')));
    await sse.until(() => sse.chunks().length > 1);
    roles.carl = 'viewer';
    expect((await carl.answer('q1', 'x')).status).toBe(404);
    roles.carl = null;
    expect((await carl.answer('q1', 'x')).status).toBe(404);
    expect((await carl.stop()).status).toBe(404);
    expect(sse.text()).toBe('');
    await sse.leave();
  });

  it('by a hundred people at once is taken once', async () => {
    const answers: unknown[] = [];
    const agent = asUpstream(async function* ({ answer }) {
      yield { type: 'data-question', id: 'q1', data: { questionId: 'q1', status: 'open' } };
      answers.push(await answer('q1'));
    });
    const { user } = await startAttacked(agent);
    const sse = openSse(await user('carl').post(chatBody('a')));
    await sse.until(() => sse.chunks().length > 1);
    const given = Array.from({ length: 100 }, (_, i) => user('cora').answer('q1', i));
    const statuses = (await Promise.all(given)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 202)).toHaveLength(1);
    expect(new Set(statuses)).toEqual(new Set([202, 409]));
    expect(answers).toHaveLength(1);
  });
});

describe('a message', () => {
  it('that names another user, session, role or turn in its body is still its sender’s, in the address’ session', async () => {
    const { agent, user } = await start();
    const forged = {
      user: { id: 'olga' },
      userId: 'olga',
      role: 'owner',
      sessionId: 's2',
      chatKey: 'x',
      turnId: 't',
      isRestored: true,
      requestId: 'r',
      __proto__: null,
    };
    await user('carl').post(chatBody('a', forged));
    const { turn } = await agent.run();
    expect(turn).toMatchObject({ user: { id: 'carl' }, sessionId: 's1', chatId: 'c1' });
    expect(turn.isRestored).toBe(false);
    expect(turn.turnId).not.toBe('t');
  });

  it('that is the same as another user’s is a turn of its own', async () => {
    const { agent, user } = await start();
    await user('carl').post(chatBody('a'));
    await user('cora').post(chatBody('a'));
    await user('carl', 's2').post(chatBody('a'));
    await agent.run(2);
    expect(agent.runs.map(({ turn }) => `${turn.user.id} ${turn.sessionId}`)).toEqual([
      'carl s1',
      'cora s1',
      'carl s2',
    ]);
  });

  it('with line breaks in its channel and chat id reaches the agent as it is, and forges no frame', async () => {
    const { agent, user } = await start();
    const id = 'c1\r\n\r\ndata: {"type":"finish"}\n\n';
    const query = `channelType=${encodeURIComponent('web\r\nX: y')}&wire=contract`;
    const sse = openSse(await user('carl').post(chatBody('a', { id }), { query }));
    const run = await agent.run();
    expect(run.turn.chatId).toBe(id);
    run.text('hi');
    run.end();
    await sse.ended;
    expect(sse.frames.map(({ event }) => event)).not.toContain(undefined);
    expect(sse.raw()).not.toMatch(/^data: \{"type":"finish"\}$/m);
  });
});

describe('a chat id', () => {
  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', '["a","b"]', '*'])(
    'of %j is a chat like any other',
    async (id) => {
      const { agent, user } = await start();
      expect((await user('carl').resume(id)).status).toBe(204);
      await user('carl').post(chatBody('a', { id }));
      (await agent.run()).delta('hello');
      expect((await user('carl').resume('x')).status).toBe(204);
      expect((await user('carl').stop(id)).status).toBe(202);
    },
  );

  it('that only looks the same in another normal form is another chat', async () => {
    const { user, agent } = await start();
    await user('carl').post(chatBody('a', { id: 'caf\u00e9' }));
    await agent.run();
    expect((await user('carl').resume('cafe\u0301')).status).toBe(204);
    expect((await user('carl').resume('caf\u00e9')).status).toBe(200);
  });

  it.each([
    CHAT_ID.toUpperCase(),
    CHAT_ID.slice(0, -1),
    `${CHAT_ID}${'a'.repeat(33)}`,
    `${CHAT_ID}\n`,
    ` ${CHAT_ID}`,
    `onboarding::${CHAT_ID}`,
    CHAT_ID.replace('c', '\u0441'),
  ])('of %j opens nothing on a public route', async (id) => {
    const { agent, stranger } = await start();
    await stranger.post(contractBody('a'));
    await agent.run();
    for (const response of [
      await stranger.resume(id),
      await stranger.stop(id),
      await stranger.answer('q1', 'x', id),
      await stranger.post(contractBody('b', { sessionId: id })),
    ]) {
      expect(await refusal(response)).toMatchObject({ status: 404 });
    }
    expect(agent.runs).toHaveLength(1);
  });
});

describe('a user id', () => {
  const IDS = [
    'a:b',
    'a%3Ab',
    'a',
    'b',
    'public',
    'user',
    '["chat"]',
    'a\u0000',
    'A',
    ' a',
    'a/../b',
  ];
  const ODD = [
    ...IDS,
    '\u00e9',
    'e\u0301',
    '__proto__',
    'constructor',
    '%',
    '%25',
    'x'.repeat(5_000),
  ];

  it('with any separator in it shares no chat with another, though both use the same minted id', async () => {
    const authenticate = (request: Request) => ({
      id: decodeURIComponent(request.headers.get('x-user') ?? ''),
    });
    const { agent, contractUser } = await start({ authenticate });
    const client = contractUser('any');
    const headersOf = (id: string) => ({ 'x-user': encodeURIComponent(id) });
    for (const [i, id] of ODD.entries()) {
      const response = await client.post(contractBody('a'), { headers: headersOf(id) });
      expect(response.status).toBe(200);
      (await agent.run(i)).delta(`for ${i}.`);
    }
    const sessions = new Set(agent.runs.map(({ turn }) => turn.sessionId));
    const keys = new Set(agent.runs.map(({ turn }) => turn.chatKey));
    expect([sessions.size, keys.size]).toEqual([ODD.length, ODD.length]);
    for (const [i, id] of ODD.entries()) {
      const sse = openEvents(await client.resume(CHAT_ID, { headers: headersOf(id) }));
      await sse.until(() => sse.said());
      expect(sse.said()).toBe(`for ${i}.`);
      await sse.leave();
    }
  });
});

describe('what is not there and what is not allowed', () => {
  it('look the same to a user, in every byte but the date', async () => {
    const { say, user } = await start();
    await user('olga').post(chatBody('a'));
    const ask = async (method: string, path: string) => {
      const socket = say([
        `${method} ${path} HTTP/1.1`,
        'Authorization: Bearer mallory',
        'Connection: close',
      ]);
      await new Promise((resolve) => socket.once('close', resolve));
      return socket.heard().replace(/^date: .*$/im, '');
    };
    for (const [method, path] of [
      ['GET', 'messages'],
      ['GET', 'channels'],
      ['GET', 'chat/c1/stream'],
      ['POST', 'chat'],
      ['POST', 'chat/c1/stop'],
      ['POST', 'chat/c1/answer'],
    ] as const) {
      const there = await ask(method, `/api/sessions/s1/${path}`);
      expect(there).toContain(' 404 ');
      expect(there).toBe(await ask(method, `/api/sessions/none/${path}`));
    }
  });
});

describe('somebody who is disconnected', () => {
  it('and has lost access does not come back by any way that was open', async () => {
    const roles: Record<string, Role | null> = { carl: 'collaborator', olga: 'owner' };
    const agent = createAgent();
    const attacked = await startAttacked(agent.upstream, { access: ({ id }) => roles[id] ?? null });
    const carl = attacked.user('carl');
    const sse = openSse(await carl.post(chatBody('a')));
    (await agent.run()).delta('before');
    const cursor = (await sse.until(() => sse.frames.at(-1)))?.id ?? '';
    roles.carl = null;
    attacked.gateway.disconnect('carl');
    await sse.ended;
    for (const response of [
      await carl.resume(),
      await carl.resumeAt(cursor, 'c1', { headers: { 'x-sabir-resume': '1' } }),
      await carl.post(chatBody('a'), { headers: { 'x-sabir-resume': '1' } }),
      await carl.messages(),
      await carl.stop(),
    ]) {
      expect(response.status).toBe(404);
    }
    expect((await attacked.user('olga').resume()).status).toBe(200);
    expect(await attacked.use('viewersPerUser')).toBe(1);
  });
});

describe('admit', () => {
  it('is asked for every way to send a message, and a refused one prompts nobody', async () => {
    let asked = 0;
    const admit = () => ++asked < 0;
    const { agent, user, stranger, contractUser } = await start({ admit });
    const carl = user('carl');
    for (const response of [
      await carl.post(chatBody('a')),
      await carl.post(chatBody('a', { trigger: 'regenerate-message' })),
      await carl.post(chatBody('a'), { headers: { 'x-sabir-resume': '1', 'x-sabir-detach': '1' } }),
      await carl.post(chatBody('a'), { query: 'wire=contract' }),
      await contractUser('carl').post(contractBody('a')),
      await stranger.post(contractBody('a')),
    ]) {
      expect(response.status).toBe(429);
    }
    expect(asked).toBe(6);
    for (const path of [
      '/api/sessions/s1/chat/',
      '/api//sessions/s1/chat',
      '/api/Chat',
      '/api/chat/',
    ]) {
      expect((await carl.send('POST', path, {}, chatBody('a'))).status).toBe(404);
    }
    expect(agent.runs).toEqual([]);
  });
});

describe('an echo of what was sent', () => {
  it('with duplicate keys, numbers past all bounds and __proto__ changes no other object', async () => {
    const bodies: unknown[] = [];
    const agent = asUpstream(async function* ({ body }) {
      bodies.push(body);
      yield { type: 'text-delta', id: '1', delta: 'ok' };
    });
    const { user } = await startAttacked(agent);
    const { messages } = chatBody('a');
    const odd = '"n":1e400,"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}';
    const text = `{"id":"other","id":"c1","messages":[],"messages":${JSON.stringify(messages)},${odd}}`;
    const sse = openSse(await user('carl').post(text));
    await sse.ended;
    expect(sse.text()).toBe('ok');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect((bodies[0] as Record<string, unknown>).polluted).toBeUndefined();
    expect((await user('carl').resume('other')).status).toBe(204);
  });

  it('nested as deep as is allowed is taken; one level more is a 400', async () => {
    const { user } = await startAttacked(echo);
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const { messages } = chatBody('a');
    const post = (depth: number) =>
      user('carl').post(`{"messages":${JSON.stringify(messages)},"x":${nested(depth)}}`);
    expect((await post(199)).status).toBe(200);
    expect((await post(200)).status).toBe(400);
  });
});
