/** A gateway that still has its agent, and neither hears of Redis nor is heard there for long. */
import { describe, expect, it } from 'vitest';
import { asUpstream } from '../src/gateway/index.ts';
import { createKeys } from '../src/turns/redis/keys.ts';
import { chatBody, createUser, openSse } from './gateway-client.ts';
import { createLedAgent } from './led-agent.ts';
import {
  type FleetOptions,
  type GatewayBox,
  LEASE_MS,
  startFleet,
  useRedis,
} from './many-gateways.ts';
import { IF_REDIS, send, until } from './redis-gateways.ts';
import { hasRedis } from './redis-server.ts';
import { sleep } from './turn-log-helpers.ts';

const OUTAGE_MS = 2 * LEASE_MS;

describe.skipIf(!hasRedis)(`a gateway that is cut off from Redis${IF_REDIS}`, () => {
  const redis = useRedis();
  const at = (box: GatewayBox) => createUser(box.remote, 'carl');

  /** A turn of A's that B shows. */
  async function start(log: FleetOptions['log'], gateway: FleetOptions['gateway'] = {}) {
    const agent = createLedAgent();
    const fleet = await startFleet(redis(), { count: 2, agent, log, gateway });
    const { A, B } = fleet;
    const sent = openSse(await at(A).post(chatBody('go')));
    sent.ended.catch(() => undefined);
    const run = await agent.run();
    run.text('One ');
    const viewer = openSse(await at(B).resume());
    await viewer.until(() => viewer.text());
    return { ...fleet, agent, run, sent, viewer };
  }

  it.each([
    ['gives up what it would write', {}],
    ['holds more than it may', { limits: { queueBytes: 2_000 } }],
  ])('and %s does not stop what another has gone on with', async (_what, gateway) => {
    const times = { outageMs: OUTAGE_MS, answerMs: 200 };
    const { A, B, run, viewer, finishes } = await start(times, gateway);
    A.hold();
    run.text('two ');
    await until('another has it', () => viewer.text() === 'One two ');
    // One text at a time: what is held is counted as it comes.
    for (let n = 0; n < 30; n++) {
      run.text('x'.repeat(100));
      await sleep(OUTAGE_MS / 20);
    }
    await until('it has given up', async () => (await A.metric('sabir_live_turns')) === 0);
    expect(run.isAborted).toBe(false);
    run.text(' three.');
    run.end();
    await viewer.ended;
    expect(viewer.text()).toBe(`One two ${'x'.repeat(3_000)} three.`);
    A.letGo();
    await sleep(LEASE_MS);
    expect(finishes.map(({ at: name, outcome }) => [name, outcome.status])).toEqual([
      ['B', 'finished'],
    ]);
    expect(await B.metric('sabir_takeovers_total')).toBe(1);
  });

  it('until its turn has ended elsewhere and is forgotten tells of nothing', async () => {
    const times = { retentionMs: 200, outageMs: 20_000 };
    const { A, B, run, viewer, finishes, prefix } = await start(times);
    const { turnId } = (await B.log.latest('s1', 'c1')) as { turnId: string };
    A.hold();
    run.text('two.');
    run.end();
    await viewer.ended;
    expect(viewer.text()).toBe('One two.');
    // As its time does, a while later.
    const { turn, chunks } = createKeys(prefix).ofTurn(turnId);
    await until('it is told of', () => finishes.length > 0);
    await send(B.client, 'DEL', turn);
    await send(B.client, 'DEL', chunks);
    A.letGo();
    await until('it knows', async () => (await A.metric('sabir_live_turns')) === 0);
    await sleep(LEASE_MS);
    expect(finishes.map(({ at: name, outcome }) => [name, outcome.status])).toEqual([
      ['B', 'finished'],
    ]);
  });

  it('and dies leaves a turn whose words Redis has dropped: it ends, once', async () => {
    const agent = createLedAgent();
    const { A, B, finishes, prefix } = await startFleet(redis(), {
      count: 2,
      agent,
    });
    const sent = openSse(await at(A).post(chatBody('go')));
    sent.ended.catch(() => undefined);
    const run = await agent.run();
    run.text('One ');
    await sent.until(() => sent.text());
    const { turnId } = (await B.log.latest('s1', 'c1')) as { turnId: string };
    await send(B.client, 'DEL', createKeys(prefix).ofTurn(turnId).chunks);
    A.kill();
    await until('it is told of', () => finishes.length > 0);
    await sleep(2 * LEASE_MS);
    expect(finishes).toMatchObject([
      { at: 'B', outcome: { status: 'failed', code: 'log-failed' } },
    ]);
    expect(await B.metric('sabir_takeovers_total')).toBe(1);
    expect(await B.log.get(turnId)).toMatchObject({ outcome: { status: 'failed' } });
  });

  it('past its lease stops an agent that nobody else can ask for the rest', async () => {
    const stopped = Promise.withResolvers<unknown>();
    const upstream = asUpstream(async function* ({ signal }) {
      signal.addEventListener('abort', () => stopped.resolve(signal.reason));
      yield { type: 'text-delta', id: 't', delta: 'One ' };
      await sleep(20_000);
    });
    const { A, B, finishes } = await startFleet(redis(), { count: 2, upstream: () => upstream });
    const sent = openSse(await at(A).post(chatBody('go')));
    sent.ended.catch(() => undefined);
    await sent.until(() => sent.text());
    const viewer = openSse(await at(B).resume());
    A.hold();
    await viewer.ended;
    await until('it is told of', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ at: 'B', outcome: { status: 'lost' } }]);
    A.letGo();
    expect(await stopped.promise).toMatchObject({ code: 'turn-fenced' });
  });

  it('that has just slept does not ask again what was asked and stopped meanwhile', async () => {
    const agent = createLedAgent();
    const { A, B } = await startFleet(redis(), { count: 2, agent });
    const sent = openSse(await at(B).post(chatBody('go')));
    const run = await agent.run();
    run.text('One ');
    await sent.until(() => sent.text());
    expect((await at(B).stop()).status).toBe(202);
    await sent.ended;
    // Nothing runs here for as long, as if the process was suspended.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_700);
    const late = openSse(await at(A).post(chatBody('go')));
    await late.ended;
    expect(late.text()).toBe('One ');
    expect(agent.runs).toHaveLength(1);
  });
});
