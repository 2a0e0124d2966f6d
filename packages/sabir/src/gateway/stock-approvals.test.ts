import { describe, expect, it } from 'vitest';
import { createApprovalAgent, createApprovalClient, listen } from '../../test/approval-agent.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  eventually,
  openSse,
} from '../../test/gateway-client.ts';
import type { ClientName } from '../../test/real-clients.ts';
import type { UIMessage } from '../core/message.ts';
import { type ChatGatewayOptions, memoryTurnLog } from './index.ts';

const NAMES: ClientName[] = ['ai@6.0.9', 'ai@6', 'ai@7'];

type Rig = { steps?: string[][]; question?: object; options?: Partial<ChatGatewayOptions> };

async function setUp(name: ClientName, rig?: Rig) {
  const { sent, ...begun } = await begin(name, rig);
  await sent;
  return begun;
}

async function begin(name: ClientName, { steps = [['a']], question, options = {} }: Rig = {}) {
  const agent = createApprovalAgent({ steps, ...(question && { question }) });
  const finished: UIMessage[] = [];
  const gateway = createTestGateway(agent.upstream, {
    onFinish: ({ message }) => void finished.push(message),
    ...options,
  });
  const url = await listen(gateway);
  const client = await createApprovalClient(name, () => url);
  const sent = client.chat.sendMessage({ text: 'go' });
  return { agent, gateway, client, finished, sent };
}

/** What a message tells, without what only some releases keep. */
const tellingOf = (message: UIMessage | undefined) =>
  message?.parts.map((part) => {
    const { type, state, output, text, data } = part as Record<string, unknown>;
    return { type, state, output, text, data };
  });

describe.each(NAMES)('%s', (name) => {
  it('is let go at an approval, and goes on in the same message when it has answered', async () => {
    const { agent, client, finished } = await setUp(name);
    expect(client.result()).toMatchObject({ status: 'ready', error: undefined });
    expect(client.tool('a')).toMatchObject({ state: 'approval-requested', approval: { id: 'a' } });
    expect(agent.turns[0]?.signal.aborted).toBe(false);
    await client.approve('a');
    await eventually(() => client.text(), 'the rest');
    await eventually(() => finished[0] && client.result().status === 'ready', 'its end');
    expect(agent.heard).toEqual({ a: { approved: true } });
    expect(client.tool('a')).toMatchObject({ state: 'output-available', output: 'paid a' });
    expect(client.text()).toBe('Done: a true.');
    expect(client.result().error).toBeUndefined();
    expect(client.result().messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(client.result().message?.id).toBe(finished[0]?.id);
    // Nothing doubled and nothing lost: what it shows is what was stored.
    expect(tellingOf(client.result().message)).toEqual(tellingOf(finished[0]));
    expect(client.posts()).toBe(2);
  });

  it('answers once what nobody knows of any more, and does not send for ever', async () => {
    const log = memoryTurnLog({ retentionMs: 0 });
    const { gateway, client, finished } = await setUp(name, { options: { log } });
    expect((await createUser(gateway, 'carl').answer('a', true)).status).toBe(202);
    await eventually(() => finished[0], 'its end');
    await client.approve('a');
    await eventually(() => client.posts() === 2, 'its answer');
    await eventually(() => client.result().status === 'ready', 'its end');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(client.posts()).toBe(2);
    expect(client.result().error).toBeUndefined();
    expect(client.tool('a')).toMatchObject({
      state: 'output-error',
      errorText: 'The question is no longer open.',
    });
  });

  it('answers once what a turn has left open that nobody goes on with', async () => {
    const log = memoryTurnLog();
    const { agent, gateway, client } = await setUp(name, { options: { log } });
    await gateway.close();
    agent.store.clear();
    const next = createTestGateway(agent.upstream, { log });
    const url = await listen(next);
    const turn = await log.latest('s1', 'c1');
    expect(turn?.outcome).toEqual({ status: 'paused' });
    const { messages } = client.result();
    const again = await createApprovalClient(name, () => url, { messages });
    await again.approve('a');
    await eventually(() => again.posts() === 1 && again.result().status === 'ready', 'its end');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([again.posts(), again.result().error]).toEqual([1, undefined]);
    expect(again.tool('a')).toMatchObject({
      state: 'output-error',
      errorText: 'The question is no longer open.',
    });
  });

  it('denies, and says why', async () => {
    const { agent, client, finished } = await setUp(name);
    await client.approve('a', false, ' as it is too much');
    await eventually(() => finished[0] && client.result().status === 'ready', 'its end');
    expect(agent.heard).toEqual({ a: { approved: false, reason: ' as it is too much' } });
    expect(client.tool('a')?.state).toBe('output-denied');
    expect(client.text()).toBe('Done: a false as it is too much.');
    expect(tellingOf(client.result().message)).toEqual(tellingOf(finished[0]));
    expect(client.posts()).toBe(2);
  });

  it('answers two approvals of one step at once', async () => {
    const { agent, client, finished } = await setUp(name, { steps: [['a', 'b']] });
    await client.approve('a');
    expect([agent.heard, client.posts()]).toEqual([{}, 1]);
    await client.approve('b', false);
    await eventually(() => finished[0] && client.result().status === 'ready', 'its end');
    expect(agent.heard).toEqual({ a: { approved: true }, b: { approved: false } });
    expect(tellingOf(client.result().message)).toEqual(tellingOf(finished[0]));
    expect(client.posts()).toBe(2);
  });

  it('answers an approval after an approval', async () => {
    const { client, finished } = await setUp(name, { steps: [['a'], ['b', 'c'], ['d']] });
    for (const ids of [['a'], ['b', 'c'], ['d']]) {
      const isAsked = () => ids.every((id) => client.tool(id)?.state === 'approval-requested');
      await eventually(() => isAsked() && client.result().status === 'ready', ids.join());
      for (const id of ids) await client.approve(id);
    }
    await eventually(() => finished[0] && client.result().status === 'ready', 'its end');
    expect(client.text()).toBe('Done: a true, b true, c true, d true.');
    expect(tellingOf(client.result().message)).toEqual(tellingOf(finished[0]));
    expect(client.posts()).toBe(4);
  });

  it('is told after a reload what it has to answer, and goes on likewise', async () => {
    const { gateway, finished } = await setUp(name);
    const url = await listen(gateway);
    const client = await createApprovalClient(name, () => url);
    await client.chat.resumeStream();
    expect(client.result()).toMatchObject({ status: 'ready', error: undefined });
    expect(client.tool('a')?.state).toBe('approval-requested');
    await client.approve('a');
    await eventually(() => finished[0] && client.result().status === 'ready', 'its end');
    expect(tellingOf(client.result().message)).toEqual(tellingOf(finished[0]));
  });

  it('sees what really happened where somebody was faster', async () => {
    const { agent, gateway, client, finished } = await setUp(name);
    const cora = createUser(gateway, 'cora');
    expect((await cora.answer('a', false)).status).toBe(202);
    await eventually(() => finished[0], 'its end');
    await client.approve('a');
    await eventually(() => client.text() && client.result().status === 'ready', 'the rest');
    expect(agent.heard).toEqual({ a: false });
    expect(client.tool('a')?.state).toBe('output-denied');
    expect(tellingOf(client.result().message)).toEqual(tellingOf(finished[0]));
    expect(client.posts()).toBe(2);
  });

  it('shows the denial of another stock tab when it approves afterwards', async () => {
    const { agent, gateway, client, finished } = await setUp(name);
    const url = await listen(gateway);
    const other = await createApprovalClient(name, () => url, { user: 'cora' });
    await other.chat.resumeStream();
    await other.approve('a', false);
    await eventually(() => finished[0], 'its end');
    // Its response ended with the question: it still shows the buttons.
    expect(client.tool('a')?.state).toBe('approval-requested');
    await client.approve('a');
    await eventually(() => client.text() && client.result().status === 'ready', 'the rest');
    expect(agent.heard).toEqual({ a: { approved: false } });
    expect(client.tool('a')?.state).toBe('output-denied');
    expect(tellingOf(client.result().message)).toEqual(tellingOf(finished[0]));
  });

  it('sees that it was too late', async () => {
    const { agent, client, finished } = await setUp(name, {
      question: { expiresAt: Date.now() + 60 },
      options: { timing: { idleMs: 40 } },
    });
    await eventually(() => finished[0], 'its end');
    await client.approve('a');
    await eventually(() => client.result().status === 'error', 'the rest');
    expect(agent.heard).toEqual({});
    expect(client.tool('a')?.state).toBe('output-error');
    expect(client.posts()).toBe(2);
  });

  it('stays where the question is for somebody else, and sees who answered', async () => {
    const question = { answerBy: { role: 'owner' } };
    const { agent, gateway, client, finished, sent } = await begin(name, { question });
    await eventually(() => client.tool('a')?.state === 'approval-requested', 'the approval');
    expect(client.result().status).toBe('streaming');
    // It has nothing to send while its stream goes on.
    await client.approve('a');
    expect([client.posts(), agent.heard]).toEqual([1, {}]);
    expect((await createUser(gateway, 'olga').answer('a', true)).status).toBe(202);
    await sent;
    expect(client.result()).toMatchObject({ status: 'ready', error: undefined });
    expect(tellingOf(client.result().message)).toEqual(tellingOf(finished[0]));
  });

  it.each([0, 50])('does not stop the turn by going to answer: %i ms of grace', async (ms) => {
    const timing = { disconnectGraceMs: ms };
    const { agent, gateway, client, finished } = await setUp(name, { options: { timing } });
    // Nor does somebody else's leaving while the answer is expected.
    const cora = openSse(await createUser(gateway, 'cora').resume());
    await cora.until(() => cora.raw().includes('Pay for'));
    await cora.leave();
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect([agent.turns[0]?.signal.aborted, finished]).toEqual([false, []]);
    await client.approve('a');
    await eventually(() => finished[0], 'its end');
    await eventually(() => client.text() === 'Done: a true.', 'the rest');
  });
});

describe('other viewers of a turn that asks for an approval', () => {
  it('stay, and see all of it', async () => {
    const { gateway, client, finished } = await setUp('ai@7', { steps: [['a'], ['b']] });
    const cora = createUser(gateway, 'cora');
    const portable = openSse(await cora.resume());
    const contract = openSse(await cora.resume('c1', { query: 'wire=contract' }));
    for (const id of ['a', 'b']) {
      await eventually(() => client.tool(id)?.state === 'approval-requested', id);
      await eventually(() => client.result().status === 'ready');
      await client.approve(id);
    }
    await Promise.all([portable.ended, contract.ended]);
    expect(portable.text()).toBe('Done: a true, b true.');
    expect(portable.chunks().filter(({ type }) => type === 'finish')).toHaveLength(1);
    expect(contract.frames.at(-1)?.event).toBe('done');
    expect(finished).toHaveLength(1);
  });

  it('answer at their own address: the one that was let go sees it when it sends', async () => {
    const { agent, gateway, client } = await setUp('ai@6');
    const cora = createUser(gateway, 'cora');
    const answers = [
      cora.answer('a', { approved: true, reason: 'fine' }),
      client.approve('a', false),
    ];
    await Promise.all(answers);
    await eventually(() => client.text() && client.result().status === 'ready', 'the rest');
    expect(Object.keys(agent.heard)).toEqual(['a']);
    const { approved } = agent.heard.a as { approved: boolean };
    expect(client.tool('a')?.state).toBe(approved ? 'output-available' : 'output-denied');
  });

  it.each([{ answerBy: { role: 'owner' } }, {}])('leave it to whom it asks: %j', async (more) => {
    const agent = createApprovalAgent({ steps: [['a']], question: more });
    const { canWait: _, ...forgetful } = agent.upstream;
    const gateway = createTestGateway(
      {
        ...forgetful,
        open: async (where) => {
          const { waiting: __, ...session } = await agent.upstream.open(where);
          return session;
        },
      },
      { timing: { disconnectGraceMs: 0 } },
    );
    // A client without approvals of its own is never let go to answer.
    const carl = openSse(await createUser(gateway, 'carl').post(chatBody('go')));
    await carl.until(() => carl.raw().includes('finish-step'));
    await carl.leave();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(agent.turns[0]?.signal.aborted).toBe(false);
    expect((await createUser(gateway, 'olga').answer('a', true)).status).toBe(202);
    await eventually(() => agent.heard.a, 'the answer');
  });

  it('stop the turn by leaving where it has said nothing, at once', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { timing: { disconnectGraceMs: 0 } });
    const sse = openSse(await createUser(gateway, 'carl').post(chatBody('go')));
    const run = await agent.run();
    await sse.leave();
    const leftAt = Date.now();
    await eventually(() => run.turn.signal.aborted, 'the stop');
    expect(Date.now() - leftAt).toBeLessThan(1_000);
  });

  it('stop the turn by leaving once the answer has come', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { timing: { disconnectGraceMs: 0 } });
    const answering = createUser(gateway, 'carl').post(chatBody('go'), { query: 'aiSdk=7' });
    const run = await agent.run();
    run.say(
      { type: 'tool-input-available', toolCallId: 'c', toolName: 'pay', input: {} },
      { type: 'data-question', id: 'a', data: { questionId: 'a', status: 'open' } },
      { type: 'tool-approval-request', toolCallId: 'c', approvalId: 'a' },
      { type: 'finish-step' },
    );
    await openSse(await answering).ended;
    const cora = createUser(gateway, 'cora');
    const sse = openSse(await cora.resume());
    expect((await cora.answer('a', true)).status).toBe(202);
    expect(run.turn.signal.aborted).toBe(false);
    await sse.leave();
    await eventually(() => run.turn.signal.aborted, 'the stop');
  });
});
