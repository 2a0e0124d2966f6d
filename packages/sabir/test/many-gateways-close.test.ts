/** A gateway is closed, as for a new release: what it runs goes on in another, at once. */
import { describe, expect, it } from 'vitest';
import { SHUTTING_DOWN } from '../src/core/errors.ts';
import { foldChunks } from '../src/core/fold.ts';
import { verifyChunks } from '../src/core/verify.ts';
import { chatBody, createAgent, createUser, openSse, refusal } from './gateway-client.ts';
import { createLedAgent } from './led-agent.ts';
import {
  type FleetOptions,
  type GatewayBox,
  openChat,
  startFleet,
  tellingOf,
  textOf,
  useRedis,
} from './many-gateways.ts';
import { IF_REDIS, until } from './redis-gateways.ts';
import { hasRedis } from './redis-server.ts';
import { sleep } from './turn-log-helpers.ts';

/** Nobody could wait for a lease to run out. */
const LONG_LEASE = { leaseMs: 60_000 };
const SHUTDOWN_MS = 3_000;

describe.skipIf(!hasRedis)(`a gateway that is closed${IF_REDIS}`, () => {
  const redis = useRedis();
  const at = (box: GatewayBox, user = 'carl') => createUser(box.remote, user);
  const within = async (ms: number, doing: Promise<unknown>) => {
    const before = Date.now();
    await doing;
    expect(Date.now() - before).toBeLessThan(ms);
  };

  async function start({ gateway, ...options }: FleetOptions = {}) {
    const agent = createLedAgent();
    const fleet = await startFleet(redis(), {
      agent,
      log: LONG_LEASE,
      gateway: { ...gateway, timing: { shutdownMs: SHUTDOWN_MS, ...gateway?.timing } },
      ...options,
    });
    // They listen for what is given up as soon as Redis has heard of it.
    await sleep(100);
    return { ...fleet, agent };
  }

  it('hands its turns over, and its viewers see them to their end [GWS-06]', async () => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    const stock = await openChat('ai@7', () => A);
    const sent = stock.chat.sendMessage({ text: 'go' });
    const run = await agent.run();
    run.text('One ');
    await until('it is seen', () => stock.text() === 'One ');
    const atA = openSse(await at(A).resume());
    const atB = openSse(await at(B).resume());
    await Promise.all([atA, atB].map((sse) => sse.until(() => sse.text())));
    await within(SHUTDOWN_MS - 500, A.gateway.close());
    await until('the other has it', () =>
      B.lines.some(({ message }) => message === 'turn taken over'),
    );
    run.text('two ');
    await Promise.all([atA, atB].map((sse) => sse.until(() => sse.text() === 'One two ')));
    const refused = await at(A).post(chatBody('more', { id: 'c2' }));
    expect(await refusal(refused)).toMatchObject({ status: 503, code: SHUTTING_DOWN.code });
    run.text('three.');
    run.end();
    await Promise.all([sent, atA.ended, atB.ended]);
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([
      { at: 'B', outcome: { status: 'finished' }, user: { id: 'carl', team: 'blue' } },
    ]);
    const stored = tellingOf(finishes[0]?.message);
    expect(textOf(finishes[0]?.message)).toBe('One two three.');
    expect(tellingOf(stock.result().message)).toEqual(stored);
    expect(stock.result()).toMatchObject({ status: 'ready', error: undefined });
    for (const { chunks } of [atA, atB]) {
      expect(tellingOf(foldChunks(chunks()))).toEqual(stored);
      expect(verifyChunks(chunks())).toEqual([]);
    }
    expect(agent.runs).toHaveLength(1);
    expect(run.isAborted).toBe(false);
    const counts = await Promise.all(
      [A, B].map(async ({ metric }) => [
        await metric('sabir_handovers_total'),
        await metric('sabir_takeovers_total'),
        await metric('sabir_live_turns'),
      ]),
    );
    expect(counts).toEqual([
      [1, 0, 0],
      [0, 1, 0],
    ]);
  });

  it('and whose log is closed lets its viewers go, and they go on elsewhere', async () => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    let box = A;
    const ours = await openChat('sabir', () => box);
    const sent = ours.chat.sendMessage({ text: 'go' });
    const run = await agent.run();
    run.text('One ');
    const stock = await openChat('ai@7', () => A);
    const resumed = stock.chat.resumeStream();
    await until('it is seen', () => ours.text() === 'One ' && stock.text() === 'One ');
    box = B;
    await A.gateway.close();
    await A.log.close();
    await resumed;
    expect(stock.result()).toMatchObject({
      status: 'error',
      error: { message: SHUTTING_DOWN.userMessage },
    });
    const again = await openChat('ai@7', () => B);
    const more = again.chat.resumeStream();
    run.text('two.');
    run.end();
    await Promise.all([sent, more]);
    await until('it is stored', () => finishes.length > 0);
    for (const { result } of [ours, again]) {
      expect(result()).toMatchObject({ status: 'ready', error: undefined });
      expect(tellingOf(result().message)).toEqual(tellingOf(finishes[0]?.message));
    }
    expect(textOf(finishes[0]?.message)).toBe('One two.');
    expect(finishes.map((finish) => finish.at)).toEqual(['B']);
    expect(agent.runs).toHaveLength(1);
  });

  it('under many turns hands over all of them, those that wait and those that ask as well', async () => {
    const { A, B, C, agent, finishes } = await start();
    const chats = ['c1', 'c2', 'c3', 'c4'];
    const viewers: ReturnType<typeof openSse>[] = [];
    for (const id of chats) {
      const sessionId = id === 'c4' ? 's2' : 's1';
      viewers.push(
        openSse(await createUser(A.remote, 'carl', sessionId).post(chatBody(`go ${id}`, { id }))),
      );
      await sleep(20);
    }
    const [first, other] = [await agent.run(0), await agent.run(1)];
    first.text('First.');
    other.text('Other: ');
    const heard = other.prompt.ask({ questionId: 'q', text: 'Deploy?' });
    await viewers[3]?.until(() => viewers[3]?.raw().includes('Deploy?'));
    await within(SHUTDOWN_MS - 500, A.gateway.close());
    const answered = await createUser(C.remote, 'carl', 's2').answer('q', 'Yes', 'c4');
    expect(answered.status).toBe(202);
    expect(await heard).toEqual({ status: 'answered', answer: 'Yes' });
    other.text('Yes.');
    other.end();
    first.end();
    for (const [index, said] of ['Second.', 'Third.'].entries()) {
      const run = await agent.run(index + 2);
      run.text(said);
      run.end();
    }
    await Promise.all(viewers.map(({ ended }) => ended));
    expect(viewers.map(({ text }) => text())).toEqual([
      ...['First.', 'Second.', 'Third.', 'Other: Yes.'],
    ]);
    await until('all are stored', () => finishes.length === 4);
    expect(finishes.map(({ outcome }) => outcome.status)).toEqual(finishes.map(() => 'finished'));
    expect(finishes.filter((finish) => finish.at === 'A')).toEqual([]);
    expect(agent.runs.map(({ prompt }) => prompt.text).sort()).toEqual(
      chats.map((id) => `go ${id}`),
    );
    const taken = await Promise.all([B, C].map(({ metric }) => metric('sabir_takeovers_total')));
    expect((taken[0] ?? 0) + (taken[1] ?? 0)).toBe(4);
    expect(await A.metric('sabir_handovers_total')).toBe(4);
  });

  it('hands over also what has not reached the agent yet, when it does', async () => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    A.holdAgent();
    const atA = openSse(await at(A).post(chatBody('go')));
    const closing = A.gateway.close();
    await sleep(200);
    A.letGoAgent();
    await within(SHUTDOWN_MS, closing);
    const run = await agent.run();
    run.text('Here.');
    const atB = openSse(await at(B).resume());
    await atB.until(() => atB.text());
    run.end();
    await Promise.all([atA.ended, atB.ended]);
    expect([atA.text(), atB.text()]).toEqual(['Here.', 'Here.']);
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ at: 'B', outcome: { status: 'finished' } }]);
    expect(agent.runs).toHaveLength(1);
  });

  it('and whose process ends right then has handed over all the same', async () => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    const viewers = await Promise.all(
      ['s1', 's2', 's3'].map(async (sessionId) => {
        const sender = openSse(await createUser(A.remote, 'carl', sessionId).post(chatBody('go')));
        sender.ended.catch(() => undefined);
        return openSse(await createUser(B.remote, 'carl', sessionId).resume());
      }),
    );
    await agent.run(2);
    for (const run of agent.runs) run.text('One ');
    await Promise.all(viewers.map((sse) => sse.until(() => sse.text())));
    await A.gateway.close();
    A.kill();
    for (const run of agent.runs) {
      run.text('two.');
      run.end();
    }
    await Promise.all(viewers.map(({ ended }) => ended));
    for (const { text } of viewers) expect(text()).toBe('One two.');
    await until('all are stored', () => finishes.length === 3);
    expect(finishes.map((finish) => finish.at)).toEqual(['B', 'B', 'B']);
  });

  it('and was the last there is leaves its turns to whoever comes', async () => {
    const { A, agent, finishes, add } = await start({ count: 1 });
    const atA = openSse(await at(A).post(chatBody('go')));
    atA.ended.catch(() => undefined);
    const run = await agent.run();
    run.text('One ');
    await atA.until(() => atA.text());
    await A.gateway.close();
    await A.log.close();
    await atA.ended;
    // It was given up, and is there for whoever comes: at once, also for one that has only just found
    // Redis (again), and takes from nobody yet what they may hold.
    const next = await add();
    next.cutRedis();
    await until('it is back', () =>
      next.log.latest('s1', 'c1').then(
        (turn) => turn !== undefined,
        () => false,
      ),
    );
    const atNext = openSse(await at(next).resume());
    run.text('two.');
    run.end();
    await atNext.ended;
    expect(atNext.text()).toBe('One two.');
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ at: 'B', outcome: { status: 'finished' } }]);
    expect(agent.runs).toHaveLength(1);
  });

  it('waits for turns that nobody can go on with, and ends those that take too long', async () => {
    const agent = createAgent();
    const { A, B, finishes } = await start({
      count: 2,
      upstream: () => agent.upstream,
      gateway: { timing: { shutdownMs: 500 } },
    });
    const [short, long] = await Promise.all(
      ['c1', 'c2'].map(async (id) => openSse(await at(A).post(chatBody(`go ${id}`, { id })))),
    );
    if (!short || !long) throw new Error('unreachable');
    await agent.run(1);
    const runOf = (text: string) => agent.runs.find(({ turn }) => turn.text === text);
    runOf('go c1')?.delta('Short ');
    runOf('go c2')?.delta('Long ');
    await Promise.all([short, long].map((sse) => sse.until(() => sse.text())));
    const atB = openSse(await at(B).resume('c2'));
    await atB.until(() => atB.text());
    const closing = A.gateway.close();
    runOf('go c1')?.delta('and whole.');
    runOf('go c1')?.end();
    await Promise.all([closing, short.ended, long.ended, atB.ended]);
    expect(short.text()).toBe('Short and whole.');
    for (const { text, chunks } of [long, atB]) {
      expect(text()).toBe('Long ');
      expect(chunks()).toContainEqual({ type: 'error', errorText: SHUTTING_DOWN.userMessage });
      expect(verifyChunks(chunks())).toEqual([]);
    }
    expect(finishes.map(({ at: name, outcome }) => [name, outcome.status])).toEqual([
      ['A', 'finished'],
      ['A', 'failed'],
    ]);
    expect(await B.metric('sabir_takeovers_total')).toBe(0);
    expect(await A.metric('sabir_handovers_total')).toBe(0);
  });
});
