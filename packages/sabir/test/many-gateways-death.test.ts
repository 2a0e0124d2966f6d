/** A gateway is gone from one moment to the next: another goes on, and nobody sees a difference. */
import { describe, expect, it } from 'vitest';
import { TURN_LOST_MESSAGE } from '../src/core/errors.ts';
import { foldChunks } from '../src/core/fold.ts';
import { verifyChunks } from '../src/core/verify.ts';
import type { IoRedisClient } from '../src/turns/redis/index.ts';
import { CLOSE } from '../src/turns/redis/scripts.ts';
import { chatBody, createAgent, createUser, openSse } from './gateway-client.ts';
import { createLedAgent } from './led-agent.ts';
import {
  type FleetOptions,
  type GatewayBox,
  inTurn,
  LEASE_MS,
  openChat,
  startFleet,
  tellingOf,
  textOf,
  useRedis,
} from './many-gateways.ts';
import { CLIENTS } from './real-clients.ts';
import { IF_REDIS, send, until } from './redis-gateways.ts';
import { hasRedis } from './redis-server.ts';
import { chunksOf, numbersOf, readAll, sleep } from './turn-log-helpers.ts';

const DETACH = { headers: { 'x-sabir-detach': '1' } };
/** A lease, a look for what has none, and a busy machine. */
const SOON_MS = 4 * LEASE_MS;

describe.skipIf(!hasRedis)(`a gateway that dies${IF_REDIS}`, () => {
  const redis = useRedis();
  const at = (box: GatewayBox, user = 'carl') => createUser(box.remote, user);
  const sumOf = async (boxes: GatewayBox[], metric: string) => {
    const values = await Promise.all(boxes.map((box) => box.metric(metric)));
    return values.reduce<number>((all, value) => all + (value ?? 0), 0);
  };

  async function start(options: FleetOptions = {}) {
    const agent = createLedAgent();
    const fleet = await startFleet(redis(), { agent, ...options });
    return { ...fleet, agent };
  }

  it('leaves its turn to another, and every viewer with the same message [GWS-04]', async () => {
    const { A, B, C, boxes, agent, finishes, prefix } = await start();
    const where = inTurn(A, B, C);
    const ours = await openChat('sabir', where);
    const sent = ours.chat.sendMessage({ text: 'go' });
    const run = await agent.run();
    run.say({ type: 'reasoning-delta', delta: 'Let me see. ' });
    const toolCallId = 'k';
    const input = { port: 'Oran' };
    run.say({ type: 'tool-input-available', toolCallId, toolName: 'lookup', input });
    run.text('One ', 'two ');
    const stockAtA = await openChat('ai@7', () => A);
    const cut = stockAtA.chat.resumeStream();
    const watching = await Promise.all(CLIENTS.map(({ name }) => openChat(name, () => C)));
    const resuming = watching.map(({ chat }) => chat.resumeStream());
    const all = [ours, stockAtA, ...watching];
    await until('all see it', () => all.every((chat) => chat.text().includes('two')));
    const kept = await everythingIn(C, prefix);
    expect(kept).toContain('"team":"blue"');
    expect(kept).not.toContain('secret of carl');
    A.kill();
    await cut;
    expect(stockAtA.chat.status).toBe('error');
    // The page is loaded again, somewhere else; meanwhile the agent goes on.
    run.text('three ');
    const again = await openChat('ai@7', () => B);
    const resumed = again.chat.resumeStream();
    run.say({ type: 'tool-output-available', toolCallId, output: 3 });
    await until('it goes on', () => again.text().includes('three'), SOON_MS);
    run.text('four.');
    run.end();
    await Promise.all([sent, resumed, ...resuming]);
    await until('it is stored', () => finishes.length > 0);
    const [stored] = finishes;
    expect(textOf(stored?.message)).toBe('Let me see. One two three four.');
    for (const { result } of [ours, again, ...watching]) {
      const { status, error, message } = result();
      expect([status, error]).toEqual(['ready', undefined]);
      expect(tellingOf(message)).toEqual(tellingOf(stored?.message));
    }
    expect(agent.runs).toHaveLength(1);
    expect(run.isAborted).toBe(false);
    expect(finishes).toMatchObject([
      { outcome: { status: 'finished' }, user: { id: 'carl', team: 'blue' }, chatId: 'c1' },
    ]);
    expect(stored?.user).toEqual({ id: 'carl', team: 'blue' });
    expect(stored?.trigger).toBe('submit-message');
    expect(stored?.userMessage).toEqual(ours.result().messages[0]);
    expect(stored?.at).not.toBe('A');
    const living = boxes.filter(({ isDead }) => !isDead());
    expect(await sumOf(living, 'sabir_takeovers_total')).toBe(1);
    expect(await sumOf(living, 'sabir_handovers_total')).toBe(0);
    expect(await sumOf(living, 'sabir_live_turns')).toBe(0);
  });

  async function everythingIn({ client }: GatewayBox, prefix: string): Promise<string> {
    const keys = (await send(client, 'KEYS', `${prefix}:*`)) as string[];
    const hashes = keys.filter((key) => key.includes(':turn:'));
    const kept = await Promise.all(hashes.map((key) => send(client, 'HGETALL', key)));
    return kept.map((hash) => JSON.stringify(hash).replaceAll('\\"', '"')).join('\n');
  }

  it('twice, leaves it to the last', async () => {
    const { A, B, C, agent, finishes } = await start();
    const { chat, text, result } = await openChat('sabir', inTurn(A, B, C));
    const sent = chat.sendMessage({ text: 'go' });
    const run = await agent.run();
    run.text('One ');
    await until('it is seen', () => text() === 'One ');
    A.kill();
    run.text('two ');
    await until('it goes on', () => text() === 'One two ', SOON_MS);
    const [holder] = [B, C].filter(({ lines }) =>
      lines.some(({ message }) => message === 'turn taken over'),
    ) as [GatewayBox];
    holder.kill();
    run.text('three.');
    run.end();
    await sent;
    expect(text()).toBe('One two three.');
    expect(result()).toMatchObject({ status: 'ready', error: undefined });
    await until('it is stored', () => finishes.length > 0);
    expect(finishes.map(({ at: name }) => name)).toEqual([holder === B ? 'C' : 'B']);
    expect(agent.runs).toHaveLength(1);
  });

  it.each([
    ['before another has its turn', 0],
    ['when another has its turn', 2.5 * LEASE_MS],
  ])('with a question open: the answer %s reaches the agent', async (_when, waitMs) => {
    const { A, B, C, agent, finishes } = await start();
    openSse(await at(A).post(chatBody('go'))).ended.catch(() => undefined);
    const run = await agent.run();
    run.text('I ask. ');
    const heard = run.prompt.ask({ questionId: 'q', text: 'Deploy?' });
    const viewer = openSse(await at(B).resume());
    await viewer.until(() => viewer.raw().includes('Deploy?'));
    A.kill();
    await sleep(waitMs);
    expect((await at(C).answer('q', 'Yes')).status).toBe(202);
    expect(await heard).toEqual({ status: 'answered', answer: 'Yes' });
    const late = await at(B).answer('q', 'No');
    expect([late.status, (await late.json()).answer]).toEqual([409, 'Yes']);
    run.text('Done.');
    run.end();
    await viewer.ended;
    expect(viewer.text()).toBe('I ask. Done.');
    expect(verifyChunks(viewer.chunks())).toEqual([]);
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ outcome: { status: 'finished' } }]);
  });

  it('is stopped from another though nobody has taken its turn yet', async () => {
    const { A, B, C, agent, finishes } = await start();
    openSse(await at(A).post(chatBody('go'))).ended.catch(() => undefined);
    const run = await agent.run();
    run.text('Half ');
    const viewer = openSse(await at(B).resume());
    await viewer.until(() => viewer.text());
    A.kill();
    expect((await at(C).stop()).status).toBe(202);
    await viewer.ended;
    await until('it is stopped', () => run.isAborted);
    expect(foldChunks(viewer.chunks()).metadata).toMatchObject({ outcome: 'stopped' });
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ outcome: { status: 'stopped' } }]);
  });

  it('leaves what waits behind another turn, too', async () => {
    const { A, B, C, agent, finishes } = await start();
    for (const id of ['c1', 'c2', 'c3']) {
      openSse(await at(A).post(chatBody(`go ${id}`, { id }))).ended.catch(() => undefined);
    }
    const run = await agent.run();
    run.text('First.');
    const viewers = [
      openSse(await at(B).resume('c1')),
      openSse(await at(C).resume('c2')),
      openSse(await at(B).resume('c3')),
    ];
    await viewers[0]?.until(() => viewers[0]?.text());
    A.kill();
    await sleep(100);
    run.end();
    for (const [index, said] of ['Second.', 'Third.'].entries()) {
      await until('the next is asked', () => agent.runs.length === index + 2);
      agent.runs[index + 1]?.text(said);
      agent.runs[index + 1]?.end();
    }
    await Promise.all(viewers.map(({ ended }) => ended));
    expect(viewers.map(({ text }) => text())).toEqual(['First.', 'Second.', 'Third.']);
    expect(agent.runs.map(({ prompt }) => prompt.text)).toEqual(['go c1', 'go c2', 'go c3']);
    await until('all are stored', () => finishes.length === 3);
    expect(finishes.map(({ outcome }) => outcome.status)).toEqual(finishes.map(() => 'finished'));
  });

  it('before it has asked the agent: it is asked, once', async () => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    A.holdAgent();
    openSse(await at(A).post(chatBody('go'))).ended.catch(() => undefined);
    A.kill();
    const viewer = openSse(await at(B).resume());
    const run = await agent.run();
    run.text('Here.');
    run.end();
    await viewer.ended;
    expect(viewer.text()).toBe('Here.');
    expect(agent.runs.map(({ prompt }) => prompt.text)).toEqual(['go']);
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ at: 'B', outcome: { status: 'finished' } }]);
  });

  it('when all is written but the end: that is what follows', async () => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    const client = A.client as IoRedisClient;
    const call = client.call.bind(client);
    client.call = (command, ...args) =>
      args.includes(CLOSE.sha as string) ? new Promise(() => undefined) : call(command, ...args);
    openSse(await at(A).post(chatBody('go'))).ended.catch(() => undefined);
    const viewer = openSse(await at(B).resume());
    const run = await agent.run();
    run.text('All of it.');
    run.end();
    await viewer.until(() => viewer.raw().includes('"type":"finish"'));
    A.kill();
    await until('it is stored', () => finishes.length > 0, SOON_MS);
    await viewer.ended;
    expect(finishes).toMatchObject([{ at: 'B', outcome: { status: 'finished' } }]);
    expect(foldChunks(viewer.chunks())).toEqual(finishes[0]?.message);
    expect(viewer.text()).toBe('All of it.');
    expect(verifyChunks(viewer.chunks())).toEqual([]);
    expect(agent.runs).toHaveLength(1);
  });

  it('with an agent that nobody can go on with: viewers are told soon, anywhere [GWS-05]', async () => {
    const agents = new Map<string, ReturnType<typeof createAgent>>();
    const { A, B, C, finishes, boxes } = await start({
      upstream: (name) => {
        const agent = createAgent();
        agents.set(name, agent);
        return agent.upstream;
      },
    });
    const ours = await openChat('sabir', inTurn(A, B, C));
    const sent = ours.chat.sendMessage({ text: 'go' });
    const run = await agents.get('A')?.run();
    run?.delta('Half ');
    const stock = await openChat('ai@7', () => C);
    const resumed = stock.chat.resumeStream();
    const viewer = openSse(await at(B).resume());
    await viewer.until(() => viewer.text());
    await until('all see it', () => ours.text() === 'Half ' && stock.text() === 'Half ');
    const before = Date.now();
    A.kill();
    await Promise.all([viewer.ended, resumed, sent]);
    expect(Date.now() - before).toBeLessThan(SOON_MS);
    expect(verifyChunks(viewer.chunks())).toEqual([]);
    expect(foldChunks(viewer.chunks()).metadata).toMatchObject({ outcome: 'lost' });
    expect(viewer.chunks()).toContainEqual({ type: 'error', errorText: TURN_LOST_MESSAGE });
    for (const { chat, text } of [ours, stock]) {
      expect([chat.status, chat.error?.message]).toEqual(['error', TURN_LOST_MESSAGE]);
      expect(text()).toBe('Half ');
    }
    await until('it is stored', () => finishes.length > 0);
    await sleep(LEASE_MS);
    expect(finishes).toMatchObject([
      { outcome: { status: 'lost' }, user: { id: 'carl', team: 'blue' } },
    ]);
    expect(textOf(finishes[0]?.message)).toBe('Half ');
    expect(finishes[0]?.at).not.toBe('A');
    expect([...agents.values()].map(({ runs }) => runs.length)).toEqual([1, 0, 0]);
    expect(await sumOf(boxes.slice(1), 'sabir_takeovers_total')).toBe(1);
    // It can be asked again, at once.
    const again = openSse(await at(B).post(chatBody('go')));
    const next = await agents.get('B')?.run();
    next?.text('Whole.');
    next?.end();
    await again.ended;
    expect(again.text()).toBe('Whole.');
  });

  it('with such an agent and without a viewer: it is stored as lost all the same', async () => {
    const { A, B, finishes } = await start({ count: 2, upstream: () => createAgent().upstream });
    const sender = openSse(await at(A).post(chatBody('go'), DETACH));
    sender.ended.catch(() => undefined);
    await sender.leave();
    A.kill();
    await until('it is stored', () => finishes.length > 0, SOON_MS);
    expect(finishes).toMatchObject([{ at: 'B', outcome: { status: 'lost' } }]);
    expect((await at(B).resume()).status).toBe(204);
  });

  it('only seemingly, since it was paused: writes nothing more, stops nothing, stores nothing [RED-02]', async () => {
    const { A, B, C, agent, finishes } = await start();
    const atA = openSse(await at(A).post(chatBody('go')));
    const run = await agent.run();
    run.text('One ');
    const atB = openSse(await at(B).resume());
    await atB.until(() => atB.text());
    const turnId = (await C.log.latest('s1', 'c1'))?.turnId as string;
    A.hold();
    run.text('two ');
    await until('another has it', () => atB.text() === 'One two ', SOON_MS);
    A.letGo();
    await until('it knows', async () => (await A.metric('sabir_handovers_total')) === 1);
    run.text('three ');
    await Promise.all([atA, atB].map((sse) => sse.until(() => sse.text() === 'One two three ')));
    expect(run.isAborted).toBe(false);
    run.end();
    await Promise.all([atA.ended, atB.ended]);
    await sleep(200);
    expect(finishes).toMatchObject([{ outcome: { status: 'finished' } }]);
    expect(finishes[0]?.at).not.toBe('A');
    const kept = await readAll(C.log, turnId);
    expect(numbersOf(kept)).toEqual(kept.map((_, index) => index + 1));
    expect(verifyChunks(chunksOf(kept))).toEqual([]);
    expect(textOf(foldChunks(chunksOf(kept)))).toBe('One two three ');
    expect(tellingOf(foldChunks(atA.chunks()))).toEqual(tellingOf(foldChunks(atB.chunks())));
    expect(await A.metric('sabir_live_turns')).toBe(0);
    expect(agent.runs).toHaveLength(1);
  });

  it('only seemingly, until its turn has ended elsewhere: that is how it ends', async () => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    const atA = openSse(await at(A).post(chatBody('go')));
    const run = await agent.run();
    run.text('One ');
    const atB = openSse(await at(B).resume());
    await atB.until(() => atB.text());
    A.hold();
    run.text('two.');
    run.end();
    await atB.ended;
    expect(atB.text()).toBe('One two.');
    A.letGo();
    await atA.ended;
    expect(atA.text()).toBe('One two.');
    await until('it knows', async () => (await A.metric('sabir_live_turns')) === 0);
    await sleep(200);
    expect(finishes.map(({ at: name, outcome }) => [name, outcome.status])).toEqual([
      ['B', 'finished'],
    ]);
  });

  it('only seemingly, with an agent that nobody can go on with: it is lost, once', async () => {
    const agent = createAgent();
    const { A, B, finishes } = await start({ count: 2, upstream: () => agent.upstream });
    const atA = openSse(await at(A).post(chatBody('go')));
    const run = await agent.run();
    run.delta('Half ');
    const atB = openSse(await at(B).resume());
    await atB.until(() => atB.text());
    A.hold();
    run.delta('and more ');
    await atB.ended;
    A.letGo();
    await atA.ended;
    for (const { text, chunks } of [atA, atB]) {
      expect(text()).toBe('Half ');
      expect(foldChunks(chunks()).metadata).toMatchObject({ outcome: 'lost' });
    }
    await until('it knows', async () => (await A.metric('sabir_live_turns')) === 0);
    await sleep(200);
    expect(finishes.map(({ at: name, outcome }) => [name, outcome.status])).toEqual([
      ['B', 'lost'],
    ]);
  });
});
