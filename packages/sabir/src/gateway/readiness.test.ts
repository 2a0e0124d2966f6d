import { describe, expect, it, onTestFinished } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  ORIGIN,
  openSse,
} from '../../test/gateway-client.ts';
import { openClient } from '../../test/redis-clients.ts';
import { IF_REDIS } from '../../test/redis-gateways.ts';
import { hasRedis, startRedis } from '../../test/redis-server.ts';
import { redisTurnLog } from '../turns/redis/index.ts';
import { type ChatGateway, memoryTurnLog } from './index.ts';

const NEVER = new Promise<never>(() => undefined);

async function ask(gateway: ChatGateway, method = 'GET') {
  const response = await gateway.fetch(new Request(`${ORIGIN}/readyz`, { method }));
  const body = response.status === 401 ? undefined : await response.json();
  return { status: response.status, body };
}

const notReady = (...reasons: string[]) => ({
  status: 503,
  body: { status: 'not-ready', reasons },
});

describe('/readyz', () => {
  it('is 200 for anybody while the gateway can serve, to GET and HEAD', async () => {
    const gateway = createTestGateway(echo);
    expect(await ask(gateway)).toEqual({ status: 200, body: { status: 'ready' } });
    expect((await ask(gateway, 'HEAD')).status).toBe(200);
  });

  it('is 503 with the reason as soon as the gateway closes', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream);
    await gateway.close();
    expect(await ask(gateway)).toEqual(notReady('closing'));
  });

  it('is 503 within a second when the log does not answer, and asks it once for many requests', async () => {
    let asked = 0;
    const latest = () => {
      asked++;
      return NEVER;
    };
    const gateway = createTestGateway(echo, { log: { ...memoryTurnLog(), latest } });
    const before = performance.now();
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(gateway)));
    expect(answers).toEqual(answers.map(() => notReady('log-unavailable')));
    expect(performance.now() - before).toBeLessThan(2_000);
    expect(asked).toBe(1);
  });

  it.skipIf(!hasRedis)(
    `is 503 while Redis is away, and 200 again after it${IF_REDIS}`,
    async () => {
      const server = await startRedis();
      const { client, close } = await openClient('redis', server.port);
      const log = redisTurnLog({ client });
      onTestFinished(async () => {
        await log.close();
        close();
        await server.stop();
      });
      const gateway = createTestGateway(echo, { log });
      expect((await ask(gateway)).status).toBe(200);
      await server.kill();
      await expect
        .poll(() => ask(gateway), { timeout: 5_000 })
        .toEqual(notReady('log-unavailable'));
      await server.start();
      await expect.poll(async () => (await ask(gateway)).status, { timeout: 5_000 }).toBe(200);
    },
  );

  it('is 503 while a global limit is reached', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { limits: { liveTurns: 1 } });
    const sse = openSse(await createUser(gateway, 'carl').post(chatBody('hi')));
    const run = await agent.run();
    expect(await ask(gateway)).toEqual(notReady('limit-reached: liveTurns'));
    run.end();
    await sse.ended;
    await expect.poll(async () => (await ask(gateway)).status).toBe(200);
  });

  it("gives the application's own reasons, and never the words of an error", async () => {
    const models = createTestGateway(echo, { ready: () => ['models-away'] });
    expect(await ask(models)).toEqual(notReady('models-away'));
    const ready = () => Promise.reject(new Error('postgres://admin:hunter2@db'));
    expect(await ask(createTestGateway(echo, { ready }))).toEqual(notReady('check-failed'));
  });
});
