import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_KINDS, type OpenClient, openClient } from '../../../test/redis-clients.ts';
import { startRedisCluster } from '../../../test/redis-cluster.ts';
import { IF_REDIS, send, useGateways } from '../../../test/redis-gateways.ts';
import { hasRedis, type RedisServer, startRedis } from '../../../test/redis-server.ts';
import {
  beginTurn,
  CLOSING,
  chunksOf,
  delta,
  FINISHED,
  OPENING,
  readAll,
} from '../../../test/turn-log-helpers.ts';
import type { TurnLog, TurnWriter } from '../log.ts';
import { redisTurnLog } from './index.ts';
import { createKeys } from './keys.ts';

const TURNS = 120;

function beginMany(log: TurnLog, count = TURNS): Promise<TurnWriter[]> {
  return Promise.all(
    Array.from({ length: count }, (_, at) => beginTurn(log, { sessionId: `session ${at}` })),
  );
}

/** How many steps Redis was asked for, and how many writes were in them. */
async function countSteps(client: OpenClient['client'], run: () => Promise<unknown>) {
  await send(client, 'CONFIG', 'RESETSTAT');
  await run();
  const stats = String(await send(client, 'INFO', 'commandstats'));
  const of = (name: string) => Number(new RegExp(`_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  return { steps: of('evalsha'), writes: of('xadd') };
}

const kinds = describe.skipIf(!hasRedis).each(CLIENT_KINDS);
kinds(`appends of many turns at once, by %s${IF_REDIS}`, (kind) => {
  let server: RedisServer;
  const gateways = useGateways(kind, () => server.port);
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  it('are few steps, and every turn has its own chunks', async () => {
    const { log, client } = await gateways.open({ leaseMs: 60_000 });
    const { log: other } = await gateways.open({ leaseMs: 60_000 });
    const writers = await beginMany(log);
    await Promise.all(writers.map((writer) => writer.append(OPENING)));
    const { steps, writes } = await countSteps(client, () =>
      Promise.all(writers.map((writer, at) => writer.append([delta(`turn ${at}`)]))),
    );
    expect(writes).toBe(TURNS);
    // At most fifty go together; some turns may have their lease renewed meanwhile.
    expect(steps).toBeLessThan(TURNS / 2);
    const reading = writers.map(({ turnId }) => readAll(other, turnId));
    await Promise.all(writers.map((writer) => writer.append(CLOSING)));
    await Promise.all(writers.map((writer) => writer.close(FINISHED)));
    for (const [at, read] of reading.entries()) {
      expect(chunksOf(await read)).toEqual([...OPENING, delta(`turn ${at}`), ...CLOSING]);
    }
  });

  it('one that is too large, or not its writer’s any more, is refused; the others are not', async () => {
    const { log, client } = await gateways.open({ leaseMs: 60_000, maxTurnBytes: 1_000 });
    const writers = await beginMany(log, 10);
    const { turn } = createKeys(gateways.prefix).ofTurn(writers[3]?.turnId as string);
    await send(client, 'HSET', turn, 'token', 'of another');
    const results = await Promise.allSettled(
      writers.map((writer, at) => writer.append([delta(at === 6 ? 'x'.repeat(2_000) : 'short')])),
    );
    const refused = results.flatMap((result, at) =>
      result.status === 'rejected' ? [[at, result.reason.code]] : [],
    );
    expect(refused).toEqual([
      [3, 'turn-fenced'],
      [6, 'turn-too-large'],
    ]);
  });

  it('one that Redis fails at does not keep the others from being written, once each', async () => {
    const { log, client } = await gateways.open({ leaseMs: 60_000 });
    const writers = await beginMany(log, 10);
    const broken = createKeys(gateways.prefix).ofTurn(writers[5]?.turnId as string);
    await send(client, 'SET', broken.chunks, 'not a stream');
    const results = await Promise.allSettled(
      writers.map((writer) => writer.append([delta('once')])),
    );
    expect(results.map(({ status }) => status === 'rejected')).toEqual(
      writers.map((_, at) => at === 5),
    );
    await Promise.all(writers.map((writer, at) => (at === 5 ? undefined : writer.close(FINISHED))));
    for (const [at, { turnId }] of writers.entries()) {
      if (at === 5) continue;
      expect(chunksOf(await readAll(log, turnId))).toEqual([delta('once')]);
    }
  });
});

describe.skipIf(!hasRedis)(`a cluster that looks like one server${IF_REDIS}`, () => {
  it('is told of each turn alone, from its first refusal on', async () => {
    const cluster = await startRedisCluster(1);
    const { client, close } = await openClient('redis', cluster.port);
    const log = redisTurnLog({ client, prefix: 'looks like one' });
    try {
      const writers = await beginMany(log, 10);
      for (const text of ['first', 'second']) {
        await Promise.all(writers.map((writer) => writer.append([delta(text)])));
      }
      await Promise.all(writers.map((writer) => writer.close(FINISHED)));
      for (const { turnId } of writers) {
        expect(chunksOf(await readAll(log, turnId))).toEqual([delta('first'), delta('second')]);
      }
    } finally {
      await log.close();
      close();
      await cluster.stop();
    }
  });
});
