import { describe, expect, it, vi } from 'vitest';
import {
  CHAT_ID,
  contractBody,
  createContractUser,
  openEvents,
  readEvents,
  startContractTurn as startTurn,
} from '../../test/contract-client.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  refusal,
} from '../../test/gateway-client.ts';
import { scriptedUpstream } from '../../test/scripted-upstream.ts';
import type { UIMessage } from '../core/message.ts';
import {
  asUpstream,
  type ChatBody,
  type ChatGatewayOptions,
  type FinishedTurn,
  memoryTurnLog,
  type OnboardingBody,
  sessionAccess,
} from './index.ts';

const NOT_FOUND = { status: 404, code: 'not-found' };
const PUBLIC = { onboarding: { public: true } };

/** A question that waits, in the chat `chatId`. */
async function startQuestion(chatId: string, options: Partial<ChatGatewayOptions> = {}) {
  const upstream = asUpstream(async function* ({ answer }) {
    yield { type: 'data-question', id: 'q1', data: { questionId: 'q1', status: 'open' } };
    await answer('q1');
  });
  const gateway = createTestGateway(upstream, options);
  const carl = createContractUser(gateway, 'carl');
  const reader = openEvents(await carl.post(contractBody('go', { sessionId: chatId })));
  await reader.until(() => reader.types().includes('question'));
  return { gateway, carl, reader };
}

describe('a chat’s id', () => {
  it('is minted where the application has none, told in meta, and opens the chat from then on', async () => {
    const agent = createAgent();
    const carl = createContractUser(createTestGateway(agent.upstream), 'carl');
    const ids = [];
    for (const [i, sessionId] of [undefined, null].entries()) {
      const reader = openEvents(await carl.post(contractBody('hi', { sessionId })));
      const run = await agent.run(i);
      run.delta('a');
      await reader.until(() => reader.said());
      const { conversationId, sessionId: told } = Object(reader.events()[0]?.data);
      expect(conversationId).toMatch(/^chat_[0-9a-z]{32,64}$/);
      expect(told).toBe(conversationId);
      const session = `chat:carl:${conversationId}`;
      expect(run.turn).toMatchObject({ sessionId: session, chatId: conversationId });
      ids.push(conversationId);
      expect((await carl.stop(conversationId)).status).toBe(202);
      await reader.ended;
    }
    expect(new Set(ids).size).toBe(2);
  });

  it('is a string of 1 to 512 characters', async () => {
    const carl = createContractUser(createTestGateway(echo), 'carl');
    for (const sessionId of ['', 'x'.repeat(513), 7, {}, ['s1'], false]) {
      const refused = await refusal(await carl.post(contractBody('hi', { sessionId })));
      expect(refused).toMatchObject({ status: 400, code: 'bad-request' });
    }
  });

  it('that was minted is its maker’s: another’s chat of the same id is another', async () => {
    const access = vi.fn(sessionAccess(() => null));
    const { agent, gateway, carl, first, run } = await startTurn({ access });
    run.delta('secret');
    await first.until(() => first.said());
    const cora = createContractUser(gateway, 'cora');
    expect((await cora.resume()).status).toBe(204);
    expect((await cora.resumeAt(first.events().at(-1)?.id ?? '')).status).toBe(204);
    expect((await cora.stop()).status).toBe(204);
    expect(await refusal(await cora.answer('q', 1))).toMatchObject(NOT_FOUND);
    // Also a message of hers that is the same to the letter.
    const hers = openEvents(await cora.post(contractBody('hi')));
    const second = await agent.run(1);
    second.text('hers');
    second.end();
    await hers.ended;
    expect(hers.said()).toBe('hers');
    run.end();
    await first.ended;
    expect(first.said()).toBe('secret');
    expect((await carl.resume('chat_0')).status).toBe(404);
    const asked = access.mock.calls.map(([{ id }, sessionId]) => `${id} ${sessionId}`);
    const own = [`carl chat:carl:${CHAT_ID}`, `cora chat:cora:${CHAT_ID}`];
    expect(new Set(asked)).toEqual(new Set([...own, 'carl chat_0']));
  });

  it('of any other form is a session’s: `access` says who may do what', async () => {
    const { gateway, reader } = await startQuestion('s1');
    const vera = createContractUser(gateway, 'vera');
    expect((await vera.resume('s1')).status).toBe(200);
    for (const response of [
      await vera.post(contractBody('hi', { sessionId: 's1' })),
      await vera.stop('s1'),
      await vera.answer('q1', 'yes', 's1'),
    ]) {
      expect(await refusal(response)).toMatchObject(NOT_FOUND);
    }
    const nobody = createContractUser(gateway, 'nina');
    for (const response of [
      await nobody.post(contractBody('hi', { sessionId: 's1' })),
      await nobody.resume('s1'),
      await nobody.stop('s1'),
      await nobody.answer('q1', 'yes', 's1'),
    ]) {
      expect(await refusal(response)).toMatchObject(NOT_FOUND);
    }
    const cora = createContractUser(gateway, 'cora');
    expect((await cora.answer('q1', 'yes', 's1')).status).toBe(202);
    await reader.ended;
    expect(reader.types().at(-1)).toBe('done');
  });

  it('names the agent’s session, which `onFinish` gets; of a minted one, together with its user', async () => {
    const upstream = scriptedUpstream();
    const onFinish = vi.fn((_: FinishedTurn) => undefined);
    const gateway = createTestGateway(upstream, { onFinish });
    const carl = createContractUser(gateway, 'carl');
    for (const [i, chatId] of [CHAT_ID, 's1'].entries()) {
      const sessionId = chatId === CHAT_ID ? `chat:carl:${CHAT_ID}` : 's1';
      const response = await carl.post(contractBody('hi', { sessionId: chatId }));
      const open = await vi.waitUntil(() => upstream.opens[i]);
      expect([open.sessionId, open.user]).toEqual([sessionId, { id: 'carl' }]);
      open.succeed();
      const turn = await vi.waitUntil(() => open.session.turns[0]);
      expect(turn.prompt).toMatchObject({ sessionId, chatId });
      turn.close({ status: 'finished' });
      await readEvents(response);
      await vi.waitUntil(() => onFinish.mock.calls[i]);
      expect(onFinish.mock.calls[i]?.[0]).toMatchObject({
        sessionId,
        chatId,
        user: { id: 'carl' },
      });
    }
  });

  it('names a history that leaves out the answer that runs in another gateway', async () => {
    const log = memoryTurnLog();
    const gate = Promise.withResolvers<void>();
    const told: UIMessage[] = [];
    const upstream = asUpstream(
      async function* ({ messageId }) {
        told.push({ id: messageId, role: 'assistant', parts: [] });
        yield { type: 'text-delta', id: '1', delta: 'half' };
        await gate.promise;
      },
      { history: () => told },
    );
    const reader = openEvents(
      await createContractUser(createTestGateway(upstream, { log }), 'carl').post(
        contractBody('hi'),
      ),
    );
    await reader.until(() => reader.said());
    const other = createTestGateway(upstream, { log });
    const askBySession = (user: string) =>
      createUser(other, user, `chat:carl:${CHAT_ID}`).messages();
    const askByChat = (user: string) => createContractUser(other, user).messages();
    for (const ask of [askBySession, askByChat]) {
      expect(await (await ask('carl')).json()).toEqual([]);
    }
    gate.resolve();
    await reader.ended;
    for (const ask of [askBySession, askByChat]) {
      await expect.poll(async () => (await ask('carl')).json()).toEqual(told);
    }
    expect((await askBySession('cora')).status).toBe(404);
  });

  it('opens the history of its owner’s chat, on each route that of its own agent', async () => {
    const upstreamOf = (name: string) =>
      asUpstream(
        async function* () {
          yield { type: 'text-delta', id: '1', delta: name };
        },
        {
          history: ({ sessionId }) => [
            { id: '1', role: 'assistant', parts: [{ type: 'text', text: `${name} ${sessionId}` }] },
          ],
        },
      );
    const gateway = createTestGateway(upstreamOf('main'), {
      routes: { onboarding: { public: true, upstream: upstreamOf('onboarding') } },
    });
    const textOf = async (response: Response) => (await response.json())[0].parts[0].text;
    const read = (user: string | undefined, route?: 'onboarding') =>
      createContractUser(gateway, user, route).messages();
    expect(await textOf(await read('carl'))).toBe(`main chat:carl:${CHAT_ID}`);
    expect(await textOf(await read('cora'))).toBe(`main chat:cora:${CHAT_ID}`);
    expect(await textOf(await read(undefined, 'onboarding'))).toBe(
      `onboarding onboarding::${CHAT_ID}`,
    );
    expect((await read(undefined)).status).toBe(401);
  });

  it('can be switched off, minted or not', async () => {
    const enabled = vi.fn(() => false);
    const gateway = createTestGateway(echo, { enabled, routes: PUBLIC });
    const carl = createContractUser(gateway, 'carl');
    const anybody = createContractUser(gateway, undefined, 'onboarding');
    for (const response of [
      await carl.post(contractBody('hi')),
      await carl.post(contractBody('hi', { sessionId: 's1' })),
      await carl.resume(),
      await anybody.post(contractBody('hi')),
    ]) {
      expect(await refusal(response)).toMatchObject(NOT_FOUND);
    }
    expect(enabled.mock.calls).toEqual([
      [{ id: 'carl' }, `chat:carl:${CHAT_ID}`],
      [{ id: 'carl' }, 's1'],
      [{ id: 'carl' }, `chat:carl:${CHAT_ID}`],
      [{ id: 'public' }, `onboarding::${CHAT_ID}`],
    ]);
  });
});

describe('a public route', () => {
  it('asks nobody who they are; the minted id opens the chat, and only there', async () => {
    const agent = createAgent();
    const authenticate = vi.fn(() => null);
    const gateway = createTestGateway(agent.upstream, { authenticate, routes: PUBLIC });
    const anybody = createContractUser(gateway, undefined, 'onboarding');
    const first = openEvents(await anybody.post(contractBody('hi', { sessionId: undefined })));
    const run = await agent.run();
    expect(run.turn.user).toEqual({ id: 'public' });
    run.delta('a');
    await first.until(() => first.said());
    const { conversationId, endpoint } = Object(first.events()[0]?.data);
    expect(endpoint).toBe('/api/onboarding');
    const second = openEvents(await anybody.resume(conversationId));
    await second.until(() => second.said());
    expect((await anybody.stop(conversationId)).status).toBe(202);
    await Promise.all([first.ended, second.ended]);
    expect(authenticate).not.toHaveBeenCalled();
    const elsewhere = createContractUser(gateway, undefined);
    expect((await elsewhere.resume(conversationId)).status).toBe(401);
    expect((await elsewhere.post(contractBody('hi'))).status).toBe(401);
  });

  it('takes no other ids, whoever asks', async () => {
    const access = vi.fn(() => 'owner' as const);
    const gateway = createTestGateway(echo, { access, routes: PUBLIC });
    const carl = createContractUser(gateway, 'carl', 'onboarding');
    const ids = ['s1', 'chat_1', CHAT_ID.toUpperCase(), `${CHAT_ID}\n`, ` ${CHAT_ID}`];
    for (const sessionId of ids) {
      for (const response of [
        await carl.post(contractBody('hi', { sessionId })),
        await carl.resume(sessionId),
        await carl.stop(sessionId),
        await carl.answer('q', 1, sessionId),
      ]) {
        expect(await refusal(response)).toMatchObject(NOT_FOUND);
      }
    }
    expect(access).not.toHaveBeenCalled();
  });

  it('is not open to everybody’s pages', async () => {
    const gateway = createTestGateway(echo, { routes: PUBLIC });
    const anybody = createContractUser(gateway, undefined, 'onboarding');
    const headers = { origin: 'https://evil.test', cookie: 'a=b' };
    expect(await refusal(await anybody.post(contractBody('hi'), { headers }))).toMatchObject({
      status: 403,
      code: 'origin-refused',
    });
  });

  it('keeps its chats apart from those of a user who is called the same', async () => {
    const agent = createAgent();
    const routes = { ...PUBLIC, chat: { upstream: echo } };
    const gateway = createTestGateway(agent.upstream, { routes });
    const anybody = createContractUser(gateway, undefined, 'onboarding');
    const first = openEvents(await anybody.post(contractBody('hi')));
    (await agent.run()).delta('a');
    await first.until(() => first.said());
    const namesake = createContractUser(gateway, 'public');
    expect((await namesake.resume()).status).toBe(204);
  });
});

describe('the routes', () => {
  it('never open each other’s turns, whatever the ids', async () => {
    const agent = createAgent();
    const log = memoryTurnLog();
    const begin = vi.spyOn(log, 'begin');
    const gateway = createTestGateway(agent.upstream, { log, access: () => 'owner' });
    const chat = createContractUser(gateway, 'carl');
    const onboarding = createContractUser(gateway, 'carl', 'onboarding');
    for (const sessionId of [CHAT_ID, 's1']) {
      for (const user of [chat, onboarding]) {
        await user.post(contractBody('hi', { sessionId }));
        await agent.run(begin.mock.calls.length - 1);
      }
    }
    await createUser(gateway, 'carl', 's1').post(chatBody('hi', { id: 's1' }));
    await agent.run(4);
    const kept = begin.mock.calls.map(([{ sessionId, chatId }]) => ({ sessionId, chatId }));
    expect(new Set(kept.map((place) => JSON.stringify(place))).size).toBe(5);
    // Not even by the name under which another route keeps them.
    for (const { sessionId, chatId } of kept.slice(0, 4)) {
      const intruder = createUser(gateway, 'carl', sessionId);
      expect((await intruder.resume(chatId)).status).toBe(204);
      expect((await intruder.stop(chatId)).status).toBe(204);
      for (const route of [chat, onboarding]) {
        expect((await route.resume(sessionId)).status).toBe(204);
      }
    }
    for (const [i, { sessionId, chatId }] of kept.entries()) {
      const latest = await log.latest(sessionId, chatId);
      for (const [user, own] of [
        [chat, [0, 2]],
        [onboarding, [1, 3]],
      ] as const) {
        for (const id of [CHAT_ID, 's1']) {
          const response = await user.resumeAt(`${latest?.turnId}:0`, id);
          const isOwn = own.includes(i as never) && chatId === id;
          expect(response.headers.get('x-sabir-turn') === latest?.turnId).toBe(isOwn);
        }
      }
    }
    expect(agent.runs.every(({ turn }) => !turn.signal.aborted)).toBe(true);
  });

  it('exist unless they are turned off, under the base, each with its own agent', async () => {
    const upstream = asUpstream(async function* ({ body }) {
      yield { type: 'text-delta', id: '1', delta: `mine, ${JSON.stringify(body)}` };
    });
    const routes = { base: '/v1', chat: { upstream }, onboarding: false as const };
    const gateway = createTestGateway(echo, { routes });
    const { send } = createContractUser(gateway, 'carl');
    const reader = openEvents(await send('POST', '/v1/chat', {}, contractBody('hi', { a: 1 })));
    await reader.ended;
    expect(reader.said()).toBe(`mine, ${JSON.stringify({ sessionId: CHAT_ID, a: 1 })}`);
    expect(Object(reader.events()[0]?.data).endpoint).toBe('/v1/chat');
    for (const path of ['/v1/onboarding', '/api/chat', '/v1/chat/', '/v1/chat/x', '/v1/chats']) {
      expect(await refusal(await send('POST', path, {}, contractBody('hi')))).toMatchObject(
        NOT_FOUND,
      );
    }
    const refused = await send('GET', '/v1/chat');
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'POST']);
  });

  it('[CT-REQ-1] [CT-REQ-2] give the application’s own fields to its agent, typed', async () => {
    const bodies: unknown[] = [];
    const chat = asUpstream<ChatBody>(async function* ({ body, text, user }) {
      const projectId: string | undefined = body.projectId;
      bodies.push([projectId, body.sessionId, body.toolChoice, text, user.id]);
      yield { type: 'text-delta', id: '1', delta: 'x' };
    });
    const onboarding = asUpstream<OnboardingBody>(async function* ({ body }) {
      bodies.push(body);
      yield { type: 'text-delta', id: '1', delta: 'x' };
    });
    const routes = { chat: { upstream: chat }, onboarding: { upstream: onboarding } };
    const gateway = createTestGateway(echo, { routes });
    const sent = { projectId: 'p1', toolChoice: { type: 'auto' }, trigger: 'submit-message' };
    await readEvents(await createContractUser(gateway, 'carl').post(contractBody('hi', sent)));
    const { messages } = contractBody('hi');
    const selectedBusiness = { name: 'Smith Masonry' };
    const carl = createContractUser(gateway, 'carl', 'onboarding');
    await readEvents(await carl.post({ messages, selectedBusiness, id: 'x', messageId: 'm' }));
    expect(bodies).toEqual([['p1', CHAT_ID, { type: 'auto' }, 'hi', 'carl'], { selectedBusiness }]);
  });

  it('refuse what they cannot serve before the first byte, as JSON', async () => {
    const gateway = createTestGateway(echo, { limits: { bodyBytes: 2_000, attachmentBytes: 100 } });
    const carl = createContractUser(gateway, 'carl');
    const file = { type: 'file', mediaType: 'image/png', url: `data:,${'x'.repeat(200)}` };
    const cases: [unknown, number, string][] = [
      ['not JSON', 400, 'bad-request'],
      [[], 400, 'bad-request'],
      [{ sessionId: CHAT_ID }, 400, 'bad-request'],
      [{ messages: [] }, 400, 'no-user-message'],
      [contractBody('x'.repeat(2_000)), 413, 'body-too-large'],
      [{ messages: [{ role: 'user', parts: [file] }] }, 413, 'attachments-too-large'],
    ];
    for (const [body, status, code] of cases) {
      expect(await refusal(await carl.post(body))).toMatchObject({ status, code });
    }
    // Who it is comes before what they say.
    const nobody = createContractUser(gateway, undefined);
    expect((await refusal(await nobody.post('not JSON'))).status).toBe(401);
    const headers = { origin: 'https://evil.test' };
    const foreign = await nobody.post(contractBody('hi'), { headers });
    expect((await refusal(foreign)).code).toBe('origin-refused');
  });
});
