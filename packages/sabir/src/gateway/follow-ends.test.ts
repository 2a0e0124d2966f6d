import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openFollow } from '../../test/follow-client.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  eventually,
  isSettled,
  openSse,
  refusal,
} from '../../test/gateway-client.ts';
import { serve } from '../platforms/node/serve.ts';
import type { ChatGatewayOptions, Role } from './index.ts';

function start(options: Partial<ChatGatewayOptions> = {}) {
  const agent = createAgent();
  const gateway = createTestGateway(agent.upstream, options);
  const user = (name: string) => createUser(gateway, name);
  const follow = async (name = 'vera') => {
    const follower = openFollow(await user(name).follow());
    await follower.until(() => follower.state());
    return follower;
  };
  return { agent, gateway, carl: user('carl'), vera: user('vera'), user, follow };
}

const aWhile = () => new Promise((resolve) => setTimeout(resolve, 80));

describe('A follower', () => {
  it('does not keep a turn whose last viewer has left', async () => {
    const { agent, carl, follow } = start({ timing: { disconnectGraceMs: 20 } });
    const follower = await follow('olga');
    const posted = openSse(await carl.post(chatBody('hi')));
    const run = await agent.run();
    run.delta('a');
    await follower.until(() => follower.raw().includes('text-delta'));
    await posted.leave();
    await eventually(() => run.turn.signal.aborted);
    expect(await follower.untilEnd()).toMatchObject({ outcome: 'stopped' });
  });

  it('does not stop a turn by leaving', async () => {
    const { agent, carl, follow } = start({ timing: { disconnectGraceMs: 0 } });
    const follower = await follow('olga');
    const posted = openSse(await carl.post(chatBody('hi'), { headers: { 'x-sabir-detach': '1' } }));
    const run = await agent.run();
    run.delta('a');
    await follower.until(() => follower.raw().includes('text-delta'));
    await posted.leave();
    await follower.leave();
    await aWhile();
    expect(run.turn.signal.aborted).toBe(false);
  });

  it('is let go when its access is revoked, idle or not, and gets a status when it comes back', async () => {
    const roles: Record<string, Role | null> = { carl: 'owner', vera: 'viewer' };
    const { agent, carl, vera, follow } = start({
      access: ({ id }) => roles[id] ?? null,
      timing: { accessCheckMs: 10 },
    });
    const idle = await follow();
    const posted = openSse(await carl.post(chatBody('hi')));
    (await agent.run()).delta('a');
    await idle.until(() => idle.raw().includes('text-delta'));
    const other = await follow('carl');
    roles.vera = null;
    await idle.ended;
    expect(idle.raw()).not.toContain('"error"');
    expect(await refusal(await vera.follow())).toMatchObject({ status: 404 });
    (await agent.run()).end();
    await Promise.all([posted.ended, other.untilEnd()]);
  });

  it('is let go by `disconnect`, and when its sign-in expires', async () => {
    const expiring = { id: 'cora', expiresAt: Date.now() + 150 };
    const { gateway, follow } = start({
      authenticate: ({ headers }) =>
        headers.get('authorization') === 'Bearer cora' ? expiring : { id: 'vera' },
    });
    const [vera, cora] = [await follow(), await follow('cora')];
    gateway.disconnect('vera');
    await vera.ended;
    expect(await isSettled(cora.ended)).toBe(false);
    await cora.ended;
    expect(Date.now()).toBeGreaterThanOrEqual(expiring.expiresAt);
  });

  it('is let go when the gateway closes, after the end of the turn that runs', async () => {
    const { agent, gateway, carl, vera, follow } = start({ timing: { shutdownMs: 2_000 } });
    const follower = await follow();
    const posted = openSse(await carl.post(chatBody('hi')));
    const run = await agent.run();
    run.delta('a');
    await follower.until(() => follower.raw().includes('text-delta'));
    const closing = gateway.close();
    expect(await refusal(await vera.follow())).toMatchObject({ status: 503 });
    run.end();
    await Promise.all([closing, follower.ended, posted.ended]);
    expect(follower.controls('end')).toMatchObject([{ outcome: 'finished' }]);
  });

  it('counts among the viewers, for the limits and the metrics', async () => {
    const { carl, vera, follow } = start({ limits: { viewersPerUser: 2, viewersPerTurn: 3 } });
    const followers = [await follow(), await follow()];
    expect(await refusal(await vera.follow())).toMatchObject({ status: 429 });
    const others = [await follow('cora')];
    expect(await refusal(await carl.follow())).toMatchObject({ status: 429 });
    const counts = { sabir_followers: 3, sabir_viewers: 3 };
    expect(await carl.metrics()).toMatchObject(counts);
    for (const follower of [...followers, ...others]) await follower.leave();
    await expect.poll(() => carl.metrics()).toMatchObject({ sabir_followers: 0, sabir_viewers: 0 });
    expect(await carl.metrics()).toMatchObject({ 'sabir_limit_use{limit="viewersPerTurn"}': 0 });
    expect((await carl.follow()).status).toBe(200);
  });

  it('is sent comments while nothing happens', async () => {
    const { follow } = start({ timing: { keepAliveMs: 10 } });
    const follower = await follow();
    await follower.until(() => follower.raw().split(': keep-alive\n\n').length > 3);
  });

  it('that takes nothing is let go, and the others get all of a turn', async () => {
    const { agent, gateway, carl, follow } = start({ limits: { viewerBacklogBytes: 100_000 } });
    const { port, close } = await serve({ fetch: gateway.fetch });
    onTestFinished(close);
    const slow = connect({ port, host: '127.0.0.1' });
    slow.write(
      'GET /api/sessions/s1/chat/c1/follow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer vera\r\n\r\n',
    );
    await once(slow, 'data');
    slow.pause();
    const other = await follow('cora');
    const posted = openSse(await carl.post(chatBody('hi')));
    const run = await agent.run();
    // Different kinds of chunks, so that they cannot be merged to less.
    for (let at = 0; at < 400; at++) {
      run.say({ type: 'data-block', id: `${at}`, data: `${at} ${'x'.repeat(30_000)}` });
      if (at % 10 === 0) await other.until(() => other.raw().includes(`"${at} x`));
    }
    run.end();
    await Promise.all([posted.ended, other.untilEnd()]);
    expect(other.chunksOf(String(other.controls('turn')[0]?.turnId))).toEqual(posted.chunks());
    slow.resume();
    await expect
      .poll(() => carl.metrics())
      .toMatchObject({ sabir_slow_viewers_total: 1, sabir_followers: 1 });
    slow.destroy();
  });
});
