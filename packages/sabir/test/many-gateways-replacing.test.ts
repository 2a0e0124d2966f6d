/** A regenerate or an edit that comes to another gateway than the turn that it replaces. */
import { describe, expect, it } from 'vitest';
import type { FinishedTurn } from '../src/gateway/index.ts';
import { chatBody, createAgent, createUser, openSse, regenerateBody } from './gateway-client.ts';
import { startFleet, useRedis } from './many-gateways.ts';
import { IF_REDIS, until } from './redis-gateways.ts';
import { hasRedis } from './redis-server.ts';

describe.skipIf(!hasRedis)(`gateways on one Redis, without sessions${IF_REDIS}`, () => {
  const redis = useRedis();

  it('stop the turn that a regenerate replaces, and begin the next one after its onFinish', async () => {
    const agent = createAgent();
    const stored: string[] = [];
    const hold = Promise.withResolvers<void>();
    const onFinish = async ({ outcome }: FinishedTurn) => {
      if (outcome.status === 'stopped') await hold.promise;
      stored.push(outcome.status);
    };
    const { A, B, C } = await startFleet(redis(), {
      upstream: () => agent.upstream,
      gateway: { onFinish },
    });
    const carl = (at: typeof A) => createUser(at.remote, 'carl');
    const first = openSse(await carl(A).post(chatBody('one')));
    const run = await agent.run();
    run.delta('Half');
    await first.until(() => first.text());
    await first.leave();
    // The same request comes to two gateways.
    const asking = [carl(B).post(regenerateBody('one')), carl(C).post(regenerateBody('one'))];
    await until('the turn is stopped', () => run.turn.signal.aborted);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(agent.runs).toHaveLength(1);
    hold.resolve();
    const next = await agent.run(1);
    next.delta('Whole');
    next.end();
    for (const sse of (await Promise.all(asking)).map(openSse)) {
      await sse.ended;
      expect(sse.text()).toBe('Whole');
    }
    await until('both are stored', () => stored.length === 2);
    expect(stored).toEqual(['stopped', 'finished']);
    expect(agent.runs).toHaveLength(2);
  });
});
