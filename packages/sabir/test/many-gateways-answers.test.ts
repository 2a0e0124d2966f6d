/** Whoever answers, and wherever: the first answer counts, and the agent gets it. */
import { describe, expect, it } from 'vitest';
import type { UIMessage } from '../src/core/message.ts';
import type { SteeringMessage } from '../src/turns/agent.ts';
import { createApprovalAgent, createApprovalClient } from './approval-agent.ts';
import { chatBody, createUser, eventually, openSse } from './gateway-client.ts';
import { createLedAgent } from './led-agent.ts';
import { type GatewayBox, startFleet, tellingOf, textOf, useRedis } from './many-gateways.ts';
import type { ClientName } from './real-clients.ts';
import { IF_REDIS, until } from './redis-gateways.ts';
import { hasRedis } from './redis-server.ts';

const ROUNDS = 8;

describe.skipIf(!hasRedis)(`answers to gateways without sticky sessions${IF_REDIS}`, () => {
  const redis = useRedis();
  const at = (box: GatewayBox, user = 'carl') => createUser(box.remote, user);

  it('reach the agent from any of them, the first one only [GWS-03]', async () => {
    const agent = createLedAgent();
    const { A, B, C, finishes } = await startFleet(redis(), { agent });
    const sender = openSse(await at(A).post(chatBody('go')));
    const watcher = openSse(await at(C).resume());
    const run = await agent.run();
    const answer = run.prompt.ask({ questionId: 'q', text: 'Deploy?', options: ['Yes', 'No'] });
    await watcher.until(() => watcher.raw().includes('Deploy?'));
    expect((await at(B).answer('q', 'Yes')).status).toBe(202);
    expect(await answer).toMatchObject({ status: 'answered', answer: 'Yes' });
    for (const box of [A, B, C]) {
      const late = await at(box, 'cora').answer('q', 'No');
      expect([late.status, await late.json()]).toEqual([
        ...[409, expect.objectContaining({ code: 'question-answered', answer: 'Yes' })],
      ]);
    }
    expect((await at(B).answer('another', 'No')).status).toBe(404);
    run.text('Done.');
    run.end();
    await Promise.all([sender.ended, watcher.ended]);
    for (const { text, raw } of [sender, watcher]) {
      expect(text()).toBe('Done.');
      expect(raw()).toContain('"status":"answered"');
    }
    await until('it is stored', () => finishes.length === 1);
  });

  it('reach the agent as messages for its turn, each once, and the queue where it takes none', async () => {
    const agent = createLedAgent();
    const taken: string[] = [];
    const steer = ({ id, user }: SteeringMessage) => taken.push(`${id} of ${user.id}`) < 3;
    const { A, B, C } = await startFleet(redis(), { agent: { ...agent, steer } });
    const query = 'aiSdk=7';
    const sender = openSse(await at(A).post(chatBody('go'), { query }));
    const watcher = openSse(await at(C).resume('c1', { query }));
    const run = await agent.run();
    const steered = async (box: GatewayBox, id: string, user?: string) => {
      const response = await at(box, user).steer({ text: `Message ${id}`, id });
      return [response.status, await response.json()];
    };
    const { turnId } = run.prompt;
    const delivered = [202, { turnId, delivered: true }];
    expect(await steered(B, 'm1', 'cora')).toEqual(delivered);
    expect(await Promise.all([A, B, C].map((box) => steered(box, 'm2')))).toEqual(
      Array(3).fill(delivered),
    );
    const [status, { turnId: next, delivered: isDelivered }] = await steered(C, 'm3');
    expect([status, isDelivered]).toEqual([202, false]);
    run.end();
    await Promise.all([sender.ended, watcher.ended]);
    for (const viewer of [sender, watcher]) {
      const shown = viewer.chunks().flatMap((chunk) => ('id' in chunk ? [chunk.id] : []));
      expect(shown.filter((id) => /^m\d/.test(id ?? ''))).toEqual(['m1', 'm2', 'm3']);
    }
    expect(taken).toEqual(['m1 of cora', 'm2 of carl', 'm3 of carl']);
    const queued = await agent.run(1);
    expect(queued.prompt).toMatchObject({ turnId: next, text: 'Message m3' });
    queued.end();
  });

  it('count once, however many are given at the same moment', async () => {
    const agent = createLedAgent();
    const { A, B, C } = await startFleet(redis(), { agent });
    const sender = openSse(await at(A).post(chatBody('go')));
    const run = await agent.run();
    for (let round = 0; round < ROUNDS; round++) {
      const questionId = `q${round}`;
      const heard = run.prompt.ask({ questionId, text: `Which, ${round}?` });
      await sender.until(() => sender.raw().includes(`Which, ${round}?`));
      const given = [A, B, C, B, C];
      const answers = await Promise.all(
        given.map(async (box, index) => {
          const response = await at(box, `user${index}`).answer(questionId, `by ${index}`);
          return { index, status: response.status, body: await response.json() };
        }),
      );
      const winners = answers.filter(({ status }) => status === 202);
      expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409, 409]);
      expect(await heard).toEqual({ status: 'answered', answer: `by ${winners[0]?.index}` });
      for (const { status, body } of answers) {
        if (status === 409) expect(body.answer).toBe(`by ${winners[0]?.index}`);
      }
    }
    run.end();
    await sender.ended;
  });

  it('that come too late are too late everywhere', async () => {
    const agent = createLedAgent();
    const { A, B, C } = await startFleet(redis(), { agent });
    const sender = openSse(await at(A).post(chatBody('go')));
    const run = await agent.run();
    const answer = run.prompt.ask({ questionId: 'q', text: 'Deploy?', expiresInMs: 300 });
    expect(await answer).toEqual({ status: 'expired' });
    await sender.until(() => sender.raw().includes('"status":"expired"'));
    for (const box of [B, C, A]) {
      const late = await at(box).answer('q', 'Yes');
      expect([late.status, (await late.json()).code]).toEqual([410, 'question-expired']);
    }
    run.text('Nobody.');
    run.end();
    await sender.ended;
    expect((await at(B).answer('q', 'Yes')).status).toBe(410);
  });

  it.each<ClientName>(['ai@6.0.9', 'ai@6', 'ai@7'])(
    'to approvals are given by %s to any of them, which goes on in its message',
    async (name) => {
      const agent = createApprovalAgent({ steps: [['a'], ['b', 'c']] });
      const { A, B, C, finishes } = await startFleet(redis(), { upstream: () => agent.upstream });
      let box = A;
      const client = await createApprovalClient(name, () => box.url);
      const isAsked = (...ids: string[]) =>
        ids.every((id) => client.tool(id)?.state === 'approval-requested') &&
        client.result().status === 'ready';
      await client.chat.sendMessage({ text: 'go' });
      await eventually(() => isAsked('a'), 'the first question');
      box = B;
      await client.approve('a');
      await eventually(() => isAsked('b', 'c'), 'the others');
      box = C;
      await client.approve('b');
      await client.approve('c', false);
      await eventually(() => finishes[0] && client.result().status === 'ready', 'its end');
      expect(agent.heard).toEqual({
        a: { approved: true },
        b: { approved: true },
        c: { approved: false },
      });
      expect(agent.turns).toHaveLength(1);
      expect(client.result().error).toBeUndefined();
      expect(tellingOf(client.result().message)).toEqual(tellingOf(finishes[0]?.message));
      expect(client.posts()).toBe(3);
      expect(finishes.map(({ at: name }) => name)).toEqual(['A']);
    },
  );

  it('to approvals count once when two pages of two gateways give them at the same moment', async () => {
    for (let round = 0; round < 4; round++) {
      const agent = createApprovalAgent({ steps: [['a']] });
      const { A, B, C, finishes } = await startFleet(redis(), { upstream: () => agent.upstream });
      const first = await createApprovalClient('ai@7', () => B.url);
      const poster = await createApprovalClient('ai@7', () => A.url);
      await poster.chat.sendMessage({ text: 'go' });
      await first.chat.resumeStream();
      const second = await createApprovalClient('ai@6', () => C.url);
      await second.chat.resumeStream();
      expect([first, second].map((client) => client.tool('a')?.state)).toEqual([
        ...['approval-requested', 'approval-requested'],
      ]);
      await Promise.all([first.approve('a', true), second.approve('a', false)]);
      const clients = [first, second];
      await eventually(
        () => finishes[0] && clients.every((client) => client.text() !== ''),
        'both see the end',
      );
      const { approved } = agent.heard.a as { approved: boolean };
      const stored = finishes[0]?.message as UIMessage;
      expect(textOf(stored)).toBe(`Done: a ${approved}.`);
      for (const client of clients) expect(client.text()).toBe(`Done: a ${approved}.`);
      expect(agent.turns).toHaveLength(1);
    }
  });
});
