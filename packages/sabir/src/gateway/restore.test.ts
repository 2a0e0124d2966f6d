import { describe, expect, it, vi } from 'vitest';
import {
  type ApprovalStore,
  createApprovalAgent,
  createApprovalClient,
  listen,
} from '../../test/approval-agent.ts';
import {
  chatBody,
  createTestGateway,
  createUser,
  echo,
  eventually,
  openSse,
  readChunks,
  refusal,
} from '../../test/gateway-client.ts';
import { type ClientName, createClient } from '../../test/real-clients.ts';
import { SabirChatTransport } from '../clients/index.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import type { Upstream } from '../turns/upstream.ts';
import { type ChatGatewayOptions, memoryTurnLog } from './index.ts';

const SEVEN = { query: 'aiSdk=7' };

type Options = Partial<ChatGatewayOptions> & { steps?: string[][] };

/** One process: a gateway with a log of its own, and an agent whose store outlives both. */
function startProcess(store: ApprovalStore, { steps = [['a']], ...options }: Options = {}) {
  const agent = createApprovalAgent({ steps, store });
  const finished: UIMessage[] = [];
  const gateway = createTestGateway(agent.upstream, {
    onFinish: ({ message }) => void finished.push(message),
    ...options,
  });
  return { agent, gateway, finished, carl: createUser(gateway, 'carl') };
}

/** A turn that waits, and the process after the one that began it. */
async function restart(options: Options = {}) {
  const store: ApprovalStore = new Map();
  const first = startProcess(store, options);
  const message = foldChunks(await readChunks(await first.carl.post(chatBody('go'), SEVEN)));
  await first.gateway.close();
  return { first, message, ...startProcess(store, options) };
}

describe('a turn that waits when its process ends', () => {
  it('is there for whoever comes back, under the same message, and goes on when answered', async () => {
    const { agent, gateway, carl, message, finished } = await restart();
    // Who may only watch may find it, and not answer it.
    const vera = createUser(gateway, 'vera');
    const watching = openSse(await vera.resume());
    await watching.until(() => watching.raw().includes('Pay for a?'));
    expect((await vera.answer('a', true)).status).toBe(404);
    expect(watching.chunks()[0]).toEqual({ type: 'start', messageId: message.id });
    expect((await carl.answer('a', { approved: true })).status).toBe(202);
    await watching.ended;
    expect(watching.text()).toBe('Done: a true.');
    await vi.waitFor(() => expect(finished).toMatchObject([{ id: message.id }]));
    expect(agent.turns).toMatchObject([
      {
        isRestored: true,
        messageId: message.id,
        chatId: 'c1',
        sessionId: 's1',
        text: '',
        messages: [],
        attachments: [],
        body: {},
        chatKey: '["s1","c1"]',
      },
    ]);
    expect((await carl.resume()).status).toBe(204);
  });

  it('can be answered before anybody has come back', async () => {
    const { agent, carl, finished } = await restart({ steps: [['a'], ['b']] });
    expect((await carl.answer('a', true)).status).toBe(202);
    expect((await carl.answer('b', { approved: false, reason: '!' })).status).toBe(202);
    await eventually(() => finished[0], 'its end');
    expect(agent.heard).toEqual({ a: true, b: { approved: false, reason: '!' } });
    expect(agent.turns).toHaveLength(1);
  });

  it('ends at its approval for AI SDK 6 and 7', async () => {
    const { carl, message } = await restart();
    const told = await readChunks(await carl.resume('c1', SEVEN));
    expect(told.at(-1)).toMatchObject({ type: 'finish' });
    expect(foldChunks(told)).toEqual(message);
  });

  it('is one turn, however many ask for it at once', async () => {
    const { agent, carl, finished } = await restart();
    const resumed = await Promise.all(Array.from({ length: 5 }, () => carl.resume()));
    const statuses = await Promise.all(
      Array.from({ length: 5 }, async (_, i) => (await carl.answer('a', i % 2 === 0)).status),
    );
    await Promise.all(resumed.map((response) => openSse(response).ended));
    expect(new Set(resumed.map(({ headers }) => headers.get('x-sabir-turn'))).size).toBe(1);
    expect(statuses.toSorted()).toEqual([202, 409, 409, 409, 409]);
    expect([agent.turns.length, finished.length]).toEqual([1, 1]);
  });

  it('goes on also where its log has outlived it, and more than once', async () => {
    const log = memoryTurnLog();
    const { carl, message, gateway, agent: second } = await restart({ log });
    const told = openSse(await carl.resume());
    await told.until(() => told.raw().includes('Pay for a?'));
    await gateway.close();
    await told.ended;
    const third = startProcess(second.store, { log });
    const cursor = told.frames.findLast(({ id }) => id)?.id as string;
    const again = openSse(await third.carl.resumeAt(cursor));
    await again.until(() => again.raw().includes('Pay for a?'));
    expect(again.chunks()[0]).toEqual({ type: 'start', messageId: message.id });
    expect((await third.carl.answer('a', true)).status).toBe(202);
    await again.ended;
    expect(again.text()).toBe('Done: a true.');
  });

  it('may come to wait again under the same message', async () => {
    const { agent, carl } = await restart();
    const kept = structuredClone([...agent.store]);
    expect((await carl.answer('a', true)).status).toBe(202);
    await eventually(() => agent.store.size === 0, 'its end');
    await expect.poll(async () => (await carl.resume()).status).toBe(204);
    for (const [chatKey, waiting] of kept) agent.store.set(chatKey, waiting);
    const again = openSse(await carl.resume());
    expect((await carl.answer('a', false)).status).toBe(202);
    await again.ended;
    expect(agent.turns.map(({ isRestored }) => isRestored)).toEqual([true, true]);
  });

  it('is found on a route of the contract too, by whose it is', async () => {
    const id = `chat_${'0'.repeat(32)}`;
    const store: ApprovalStore = new Map();
    const messages = [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] }];
    const first = startProcess(store);
    const begun = openSse(
      await first.carl.send('POST', '/api/chat', {}, { messages, sessionId: id }),
    );
    await begun.until(() => begun.raw().includes('Pay for a?'));
    await first.gateway.close();
    const { agent, gateway, carl } = startProcess(store);
    const cora = createUser(gateway, 'cora');
    expect((await cora.send('GET', `/api/chat/${id}/stream`)).status).toBe(204);
    const answer = { questionId: 'a', answer: true };
    expect((await cora.send('POST', `/api/chat/${id}/answer`, {}, answer)).status).toBe(404);
    const sse = openSse(await carl.send('GET', `/api/chat/${id}/stream`));
    await sse.until(() => sse.raw().includes('Pay for a?'));
    expect((await carl.send('POST', `/api/chat/${id}/answer`, {}, answer)).status).toBe(202);
    await sse.ended;
    expect(sse.frames.at(-1)?.event).toBe('done');
    expect(agent.turns).toHaveLength(1);
  });

  it('is not looked for while a turn of the chat runs', async () => {
    const store: ApprovalStore = new Map();
    const { agent, carl } = startProcess(store);
    await readChunks(await carl.post(chatBody('go'), SEVEN));
    await readChunks(await carl.resume('c1', SEVEN));
    expect((await carl.answer('a', true)).status).toBe(202);
    expect(agent.turns.map(({ isRestored }) => isRestored)).toEqual([false]);
  });
});

describe.each<ClientName>(['ai@6.0.9', 'ai@6', 'ai@7'])(
  '%s, when the process ends meanwhile',
  (name) => {
    it('answers, and goes on in the same message', async () => {
      const store: ApprovalStore = new Map();
      const first = startProcess(store, { steps: [['a', 'b'], ['c']] });
      let url = await listen(first.gateway);
      const client = await createApprovalClient(name, () => url);
      await client.chat.sendMessage({ text: 'go' });
      await first.gateway.close();
      const second = startProcess(store, { steps: [['a', 'b'], ['c']] });
      url = await listen(second.gateway);
      await client.approve('a');
      await client.approve('b', false);
      await eventually(() => client.tool('c')?.state === 'approval-requested', 'the next');
      await eventually(() => client.result().status === 'ready', 'its end');
      await client.approve('c');
      await eventually(() => second.finished[0] && client.result().status === 'ready', 'its end');
      expect(client.text()).toBe('Done: a true, b false, c true.');
      expect(client.result().messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
      const states = client.result().message?.parts.map((part) => {
        const { type, state } = part as { type: string; state?: string };
        return state ?? type;
      });
      expect(states).toEqual([
        ...['step-start', 'output-available', 'data-question', 'output-denied', 'data-question'],
        ...['step-start', 'output-available', 'data-question', 'step-start', 'done'],
      ]);
      expect(client.posts()).toBe(3);
    });

    it('answers after a reload', async () => {
      const { gateway, finished } = await restart();
      const url = await listen(gateway);
      const client = await createApprovalClient(name, () => url);
      await client.chat.resumeStream();
      expect(client.tool('a')?.state).toBe('approval-requested');
      await client.approve('a');
      await eventually(() => finished[0] && client.result().status === 'ready', 'its end');
      expect(client.text()).toBe('Done: a true.');
      expect(client.result().messages).toHaveLength(1);
    });
  },
);

it('SabirChatTransport goes on in the same message too', async () => {
  const { gateway, finished } = await restart({ steps: [['a'], ['b']] });
  const url = await listen(gateway);
  const transport = new SabirChatTransport({
    api: `${url}/api/sessions/s1/chat`,
    aiSdk: 7,
    headers: { authorization: 'Bearer carl' },
  });
  const { lastAssistantMessageIsCompleteWithApprovalResponses: isComplete } = await import('ai-v7');
  const init = { id: 'c1', sendAutomaticallyWhen: isComplete };
  const { chat, result } = await createClient('ai@7', transport, init);
  const answer = (chat as unknown as { addToolApprovalResponse(given: object): Promise<void> })
    .addToolApprovalResponse;
  await chat.resumeStream();
  for (const id of ['a', 'b']) {
    await eventually(() => JSON.stringify(result().message).includes(`"approval":{"id":"${id}"}`));
    await eventually(() => chat.status === 'ready', 'its end');
    await answer({ id, approved: true });
  }
  await eventually(() => finished[0] && chat.status === 'ready', 'the end');
  expect(result().message?.parts.filter(({ type }) => type === 'tool-pay')).toMatchObject([
    { state: 'output-available' },
    { state: 'output-available' },
  ]);
  expect(result().messages).toHaveLength(1);
});

describe('an agent that cannot be asked what waits', () => {
  it('is not: no session is opened for it', async () => {
    const open = vi.fn(echo.open);
    const upstream = vi.fn(() => ({ ...echo, open }));
    const carl = createUser(createTestGateway(upstream), 'carl');
    expect((await carl.resume()).status).toBe(204);
    expect((await carl.answer('q', 1)).status).toBe(404);
    expect(open).not.toHaveBeenCalled();
  });

  it('as nobody knows where it is, is away', async () => {
    const upstream = () => Promise.reject(new Error('no such session'));
    const carl = createUser(createTestGateway(upstream), 'carl');
    expect((await carl.resume()).status).toBe(204);
    expect((await carl.answer('q', 1)).status).toBe(502);
  });

  it.each<[string, () => Promise<undefined>]>([
    ['fails', () => Promise.reject(new Error('secret'))],
    ['says nothing', () => new Promise(() => undefined)],
  ])('for now, as it %s: nothing to see, and no answer taken', async (_, waiting) => {
    const upstream: Upstream = {
      canWait: true,
      open: async (where) => ({ ...(await echo.open(where)), isClosed: false, waiting }),
    };
    const logger = { warn: vi.fn(), error: vi.fn() };
    const timing = { connectMs: 50 };
    const carl = createUser(createTestGateway(upstream, { logger, timing }), 'carl');
    expect((await carl.resume()).status).toBe(204);
    expect(logger.warn).toHaveBeenCalledOnce();
    expect(await refusal(await carl.answer('q', 1))).toMatchObject({
      status: 502,
      code: 'upstream-unreachable',
    });
    expect(JSON.stringify([logger.warn.mock.calls, logger.error.mock.calls])).not.toContain(
      'secret',
    );
  });

  it.each([{}, { messageId: '' }, { messageId: 7 }, null])('gives %j: nothing', async (found) => {
    const upstream: Upstream = {
      canWait: true,
      open: async (where) => ({
        ...(await echo.open(where)),
        isClosed: false,
        waiting: async () => found as never,
      }),
    };
    const carl = createUser(createTestGateway(upstream), 'carl');
    expect((await carl.resume()).status).toBe(204);
  });
});
