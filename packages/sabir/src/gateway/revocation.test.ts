/** People who lose access, or are disconnected, while their streams are open. */
import { describe, expect, it, vi } from 'vitest';
import {
  CHAT_ID,
  contractBody,
  createContractUser,
  openEvents,
} from '../../test/contract-client.ts';
import {
  chatBody,
  createAgent,
  createLogSpy,
  createTestGateway,
  createUser,
  eventually,
  openSse,
} from '../../test/gateway-client.ts';
import { scriptedUpstream } from '../../test/scripted-upstream.ts';
import type { ChatGatewayOptions, Role } from './index.ts';

async function start(options: Partial<ChatGatewayOptions> = {}) {
  const agent = createAgent();
  const gateway = createTestGateway(agent.upstream, {
    ...options,
    timing: { accessCheckMs: 20, ...options.timing },
  });
  const carl = createUser(gateway, 'carl');
  const cora = createUser(gateway, 'cora');
  const asker = openSse(await carl.post(chatBody('hi')));
  const run = await agent.run();
  run.delta('a');
  await asker.until(() => asker.text());
  const watch = async (user = cora, headers = {}) => {
    const sse = openSse(await user.resume('c1', { headers }));
    await sse.until(() => sse.text());
    return sse;
  };
  return { agent, gateway, carl, cora, asker, run, watch };
}

const errorOf = (sse: ReturnType<typeof openSse>) =>
  Object(sse.chunks().find(({ type }) => type === 'error')).errorText;

describe('access that is revoked', () => {
  it('ends that person’s open streams with an error; the turn and the others go on', async () => {
    const roles: Record<string, Role | null> = { carl: 'owner', cora: 'viewer' };
    const access = vi.fn(({ id }: { id: string }) => roles[id] ?? null);
    const { cora, asker, run, watch } = await start({ access });
    const streams = [await watch(), await watch(), await watch()];
    const resuming = await watch(cora, { 'x-sabir-resume': '0' });
    await eventually(() => access.mock.calls.length > 10, 'a few checks');
    const before = access.mock.calls.filter(([{ id }]) => id === 'cora').length;
    const asked = access.mock.calls.length;
    expect(before).toBeLessThan(asked);
    roles.cora = null;
    await Promise.all([...streams, resuming].map(({ ended }) => ended));
    expect(streams.map(errorOf)).toEqual(Array(3).fill('You may not see this any more.'));
    // A client that comes back by itself is told when it does.
    expect(errorOf(resuming)).toBeUndefined();
    expect((await cora.resume()).status).toBe(404);
    run.delta('b');
    run.end();
    await asker.ended;
    expect(asker.text()).toBe('ab');
  });

  it('is asked for once per person and session, not once per stream', async () => {
    const access = vi.fn(() => 'owner' as const);
    const { watch } = await start({ access, timing: { accessCheckMs: 30 } });
    for (let i = 0; i < 5; i++) await watch();
    access.mockClear();
    await eventually(() => access.mock.calls.length >= 4);
    const ids = access.mock.calls.map((call) => Object(call)[0].id);
    expect(ids.slice(0, 4).toSorted()).toEqual(['carl', 'carl', 'cora', 'cora']);
  });

  it('is not what a hook says that throws or times out', async () => {
    let isBroken = false;
    const { lines, logger } = createLogSpy();
    const access = vi.fn((): Promise<Role> | Role => {
      if (!isBroken) return 'owner';
      if (access.mock.calls.length % 2) throw new Error('the database is away');
      return new Promise(() => undefined);
    });
    const { asker, run, watch } = await start({ access, logger, timing: { hookMs: 10 } });
    const watching = await watch();
    isBroken = true;
    const failed = () => lines.filter(({ message }) => /could not be checked/.test(message));
    await eventually(() => failed().length > 4, 'failed checks');
    run.delta('b');
    run.end();
    await Promise.all([asker.ended, watching.ended]);
    expect([asker.text(), watching.text()]).toEqual(['ab', 'ab']);
  });

  it('also by enabled, on a public route', async () => {
    let isOn = true;
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, {
      enabled: () => isOn,
      routes: { onboarding: { public: true } },
      timing: { accessCheckMs: 10 },
    });
    const anybody = createContractUser(gateway, undefined, 'onboarding');
    const reader = openEvents(await anybody.post(contractBody('hi', { sessionId: CHAT_ID })));
    (await agent.run()).delta('a');
    await reader.until(() => reader.said());
    isOn = false;
    await reader.ended;
    expect(reader.events().at(-1)).toMatchObject({
      type: 'error',
      data: { code: 'access-revoked' },
    });
  });
});

describe('gateway.disconnect', () => {
  it('ends a person’s streams at once and nobody else’s; the turn goes on, and they may come back', async () => {
    const { gateway, asker, run, watch } = await start({ timing: { accessCheckMs: Infinity } });
    const watching = await watch();
    gateway.disconnect('carl');
    await asker.ended;
    expect(errorOf(asker)).toBe('You were disconnected.');
    const back = await watch(createUser(gateway, 'carl'));
    run.delta('b');
    run.end();
    await Promise.all([watching.ended, back.ended]);
    expect([watching.text(), back.text()]).toEqual(['ab', 'ab']);
  });

  it('lets nothing new use their connections to the agent', async () => {
    const upstream = scriptedUpstream();
    const gateway = createTestGateway(upstream);
    const carl = createUser(gateway, 'carl');
    const first = openSse(await carl.post(chatBody('one', { id: 'c1' })));
    const [open] = await vi.waitUntil(() => upstream.opens.length > 0 && upstream.opens);
    open?.succeed();
    const turn = await vi.waitUntil(() => open?.session.turns[0]);
    gateway.disconnect('carl');
    await first.ended;
    openSse(await carl.post(chatBody('two', { id: 'c2' })));
    const again = await vi.waitUntil(() => upstream.opens[1]);
    again.succeed();
    await vi.waitUntil(() => again.session.turns[0]);
    // The first one is kept for its turn, and closed with it.
    expect(open?.session.isClosed).toBe(false);
    turn?.close({ status: 'finished' });
    await vi.waitUntil(() => open?.session.isClosed);
    expect(again.session.isClosed).toBe(false);
  });
});
