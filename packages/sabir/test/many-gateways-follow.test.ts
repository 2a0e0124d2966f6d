/** Those who follow a chat at one gateway, and turns that begin at another, on a session server elsewhere. */
import { describe, expect, it } from 'vitest';
import { openFollow } from './follow-client.ts';
import { chatBody, createUser, openSse } from './gateway-client.ts';
import { turnOf } from './hosted-gateway.ts';
import { createLedAgent } from './led-agent.ts';
import { type GatewayBox, startFleet, useRedis } from './many-gateways.ts';
import { IF_REDIS, until } from './redis-gateways.ts';
import { hasRedis } from './redis-server.ts';

const DETACH = { headers: { 'x-sabir-detach': '1' } };

describe.skipIf(!hasRedis)(`a chat that is followed at several gateways${IF_REDIS}`, () => {
  const redis = useRedis();

  async function start(disconnectGraceMs = 5_000) {
    const agent = createLedAgent();
    const gateway = { timing: { disconnectGraceMs } };
    const fleet = await startFleet(redis(), { agent, count: 2, gateway });
    const at = (box: GatewayBox, user = 'carl') => createUser(box.remote, user);
    const follow = async (box: GatewayBox, cursor?: string) => {
      const headers: HeadersInit = cursor ? { 'last-event-id': cursor } : {};
      const follower = openFollow(await at(box, 'vera').follow('c1', { headers }));
      await follower.until(() => follower.state());
      return follower;
    };
    const answer = async (box: GatewayBox, text: string, index: number) => {
      const response = await at(box).post(chatBody(text), DETACH);
      const posted = openSse(response);
      const run = await agent.run(index);
      run.text(text);
      run.end();
      await posted.ended;
      return { turnId: turnOf(response), posted };
    };
    return { ...fleet, agent, at, follow, answer };
  }

  it('shows a turn that begins at any of them at all of them, from its first chunk', async () => {
    const { A, B, follow, answer } = await start();
    const followers = [await follow(A), await follow(B)];
    for (const [index, box] of [A, B].entries()) {
      const { turnId, posted } = await answer(box, `${index} `, index);
      const frames = posted.frames.filter(({ data }) => data !== '[DONE]');
      for (const follower of followers) {
        expect(await follower.untilEnd(index)).toMatchObject({ turnId, outcome: 'finished' });
        expect(follower.framesOf(turnId)).toEqual(frames);
      }
    }
  });

  it('lets a client that was at one come back to another with its cursor', async () => {
    const { A, B, agent, at, follow } = await start();
    const first = await follow(A);
    const response = await at(A).post(chatBody('go'), DETACH);
    const turnId = turnOf(response);
    const run = await agent.run();
    run.text('one ');
    await first.until(() => first.textOf(turnId));
    const { id } = first.framesOf(turnId).at(-1) ?? {};
    await first.leave();
    const again = await follow(B, id);
    expect(await again.untilTurn()).toMatchObject({ turnId, history: turnId });
    run.text('two');
    run.end();
    await again.untilEnd();
    expect(again.textOf(turnId)).toBe('two');
    await openSse(response).ended;
  });

  it('lets a turn be stopped that its last viewer left, though it is followed elsewhere', async () => {
    const { A, B, agent, at, follow } = await start(100);
    const follower = await follow(B);
    const posted = openSse(await at(A).post(chatBody('go')));
    const run = await agent.run();
    run.text('word');
    await posted.until(() => posted.text());
    await follower.until(() => follower.raw().includes('word'));
    await posted.leave();
    expect(await follower.untilEnd()).toMatchObject({ outcome: 'stopped' });
  });

  it('makes good for turns that began while a gateway heard nothing from Redis', async () => {
    const { A, B, follow, answer } = await start();
    const follower = await follow(A);
    A.cutRedis();
    const first = await answer(B, 'missed', 0);
    expect(await follower.untilEnd()).toMatchObject({ turnId: first.turnId });
    expect(follower.textOf(first.turnId)).toBe('missed');
    const second = await answer(B, 'heard', 1);
    expect(await follower.untilEnd(1)).toMatchObject({ turnId: second.turnId });
    await until('it is idle', async () => (await A.metric('sabir_followers')) === 1);
  });
});
