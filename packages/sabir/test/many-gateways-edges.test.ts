/** What may come together with a gateway's death or its closing, each by itself rare. */
import { describe, expect, it } from 'vitest';
import { asUpstream } from '../src/gateway/index.ts';
import { contractBody, createContractUser, openEvents } from './contract-client.ts';
import { chatBody, createUser, openSse } from './gateway-client.ts';
import { createLedAgent } from './led-agent.ts';
import {
  type FleetOptions,
  type GatewayBox,
  LEASE_MS,
  openChat,
  startFleet,
  textOf,
  useRedis,
} from './many-gateways.ts';
import { openClient } from './redis-clients.ts';
import { IF_REDIS, send, until } from './redis-gateways.ts';
import { hasRedis } from './redis-server.ts';
import { sleep } from './turn-log-helpers.ts';

/** More than is kept of a prompt for whoever goes on with it. */
const LARGE_FILE = { type: 'file', mediaType: 'text/plain', url: `data:,${'x'.repeat(1_500_000)}` };
const largeBody = (text: string) =>
  chatBody(text, {
    messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text }, LARGE_FILE] }],
  });

describe.skipIf(!hasRedis)(`gateways that share turns${IF_REDIS}`, () => {
  const redis = useRedis();
  const at = (box: GatewayBox, user = 'carl') => createUser(box.remote, user);

  async function start(options: FleetOptions = {}) {
    const agent = createLedAgent();
    const fleet = await startFleet(redis(), { agent, ...options });
    return { ...fleet, agent };
  }

  async function sendTo(box: GatewayBox, body: object) {
    const sse = openSse(await at(box).post(body));
    sse.ended.catch(() => undefined);
    return sse;
  }

  it.each([
    ['while its lease runs', 0],
    ['when its lease has run out', 1.2 * LEASE_MS],
  ])('ask once what is sent again to another after a death, %s', async (_when, waitMs) => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    await sendTo(A, chatBody('go'));
    const run = await agent.run();
    run.text('One ');
    A.kill();
    await sleep(waitMs);
    const again = await sendTo(B, chatBody('go'));
    run.text('two.');
    run.end();
    await again.ended;
    expect(again.text()).toBe('One two.');
    expect(agent.runs).toHaveLength(1);
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ at: 'B', outcome: { status: 'finished' } }]);
  });

  it('send once what a client sends that hears nothing of its first gateway', async () => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    let box = A;
    const { chat, text, requests } = await openChat('sabir', () => box);
    A.holdAgent();
    const sent = chat.sendMessage({ text: 'go' });
    await until('it is there', async () => (await B.log.latest('s1', 'c1')) !== undefined);
    box = B;
    A.kill();
    const run = await agent.run();
    run.text('Here.');
    run.end();
    await sent;
    expect(text()).toBe('Here.');
    expect(requests.map(({ at: name }) => name)).toEqual([
      'A',
      ...requests.slice(1).map(() => 'B'),
    ]);
    await until('it is stored', () => finishes.length > 0);
    expect(agent.runs).toHaveLength(1);
  });

  it('stop what is said, and not what waits behind it', async () => {
    const { A, B, C, agent } = await start();
    const first = await sendTo(A, chatBody('first'));
    const run = await agent.run();
    run.text('First ');
    await first.until(() => first.text());
    const second = await sendTo(A, chatBody('second'));
    await second.until(() => second.raw().includes('waiting'));
    const resumed = openSse(await at(C).resume());
    await resumed.until(() => resumed.text() === 'First ');
    expect((await at(B).stop()).status).toBe(202);
    await Promise.all([first.ended, resumed.ended]);
    expect(run.isAborted).toBe(true);
    const next = await agent.run(1);
    next.text('Second.');
    next.end();
    await second.ended;
    expect(second.text()).toBe('Second.');
    expect(agent.runs).toHaveLength(2);
  });

  it('go on with a turn though its agent is away at that moment', async () => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    await sendTo(A, chatBody('go'));
    const run = await agent.run();
    run.text('One ');
    const viewer = openSse(await at(B).resume());
    await viewer.until(() => viewer.text());
    B.holdAgent();
    A.kill();
    await until('it is taken', () => B.lines.some(({ message }) => message === 'turn taken over'));
    // For longer than a lease, which is kept meanwhile.
    await sleep(1.5 * LEASE_MS);
    run.text('two.');
    run.end();
    B.letGoAgent();
    await viewer.ended;
    expect(viewer.text()).toBe('One two.');
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ at: 'B', outcome: { status: 'finished' } }]);
    expect(await B.metric('sabir_takeovers_total')).toBe(1);
  });

  it.each([
    ['while its agent speaks', true],
    ['while its agent is silent', false],
  ])('tell of a turn that Redis has lost, once, and stop its agent: %s', async (_when, speaks) => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    const sent = await sendTo(A, chatBody('go'));
    const run = await agent.run();
    run.text('One ');
    await sent.until(() => sent.text());
    const { client, close } = await openClient('redis', redis().port);
    await send(client, 'FLUSHALL');
    close();
    if (speaks) run.text('two.');
    await until('it is told of', () => finishes.length > 0);
    await sent.ended;
    expect(sent.raw()).toContain('log-failed');
    await until('its agent is stopped', () => run.isAborted);
    await sleep(1.5 * LEASE_MS);
    expect(finishes).toMatchObject([
      { at: 'A', outcome: { status: 'failed', code: 'log-failed' } },
    ]);
    const again = await sendTo(B, chatBody('again'));
    const next = await agent.run(1);
    next.text('Here.');
    next.end();
    await again.ended;
    expect(again.text()).toBe('Here.');
  });

  it('go on with a turn of another route, by the agent of that route', async () => {
    const agent = createLedAgent();
    const other = asUpstream(async function* () {
      yield { type: 'text-start', id: '1' };
      yield { type: 'text-delta', id: '1', delta: 'Not mine.' };
    });
    const { A, B, C, finishes } = await startFleet(redis(), {
      agent,
      gatewayWith: (upstream) => ({ upstream: other, routes: { chat: { upstream } } }),
    });
    const to = (box: GatewayBox) => createContractUser(box.remote, 'carl');
    const first = openEvents(await to(A).post(contractBody('go')));
    first.ended.catch(() => undefined);
    const run = await agent.run();
    run.text('One ');
    await first.until(() => first.said());
    const watcher = openEvents(await to(B).resume());
    const seen = first.events();
    A.kill();
    run.text('two ');
    const resumed = openEvents(await to(C).resumeAt(seen.at(-1)?.id ?? ''));
    await resumed.until(() => resumed.said() === 'two ');
    run.text('three.');
    run.end();
    await Promise.all([resumed.ended, watcher.ended]);
    expect(resumed.said()).toBe('two three.');
    expect(watcher.said()).toBe('One two three.');
    expect(resumed.types().at(-1)).toBe(watcher.types().at(-1));
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ user: { id: 'carl', team: 'blue' } }]);
    expect(textOf(finishes[0]?.message)).toBe('One two three.');
    expect(agent.runs).toHaveLength(1);
  });

  it('see a turn to its end whose prompt is too large to be kept, when they are closed', async () => {
    const { A, B, agent, finishes } = await start({
      count: 2,
      gateway: { timing: { shutdownMs: 5_000 } },
    });
    const sender = await sendTo(A, largeBody('go'));
    const run = await agent.run();
    expect(run.prompt.attachments).toHaveLength(1);
    run.text('One ');
    const viewer = openSse(await at(B).resume());
    await viewer.until(() => viewer.text());
    const closing = A.gateway.close();
    // Another would have taken it by now.
    await sleep(300);
    run.text('two.');
    run.end();
    await Promise.all([closing, sender.ended, viewer.ended]);
    expect([sender.text(), viewer.text()]).toEqual(['One two.', 'One two.']);
    expect(finishes).toMatchObject([{ at: 'A', outcome: { status: 'finished' } }]);
    expect(agent.runs).toHaveLength(1);
  });

  it('lose a turn whose prompt is too large to be kept and never arrived', async () => {
    const { A, B, agent, finishes } = await start({ count: 2 });
    A.holdAgent();
    await sendTo(A, largeBody('go'));
    A.kill();
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ at: 'B', outcome: { status: 'lost' } }]);
    expect(agent.runs).toEqual([]);
    // It is whole again when it is sent again.
    const again = await sendTo(B, largeBody('go'));
    const run = await agent.run();
    expect(run.prompt.attachments).toHaveLength(1);
    run.end();
    await again.ended;
  });
});
