/** What only a compiler can prove about clients of Redis. Checked by `vitest --typecheck`; nothing here runs. */

import Redis, { Cluster, type RedisOptions } from 'ioredis';
import {
  createClient,
  createCluster,
  type RedisClientType,
  type RedisClusterType,
  type RedisDefaultModules,
} from 'redis';
import { describe, expectTypeOf, it } from 'vitest';
import type { TurnLog } from '../src/turns/log.ts';
import { type RedisTurnLogOptions, redisTurnLog } from '../src/turns/redis/index.ts';

type Client = RedisTurnLogOptions['client'];

describe('a client of redis', () => {
  it('fits as it is made', () => {
    const client = createClient({ url: 'redis://localhost' });
    expectTypeOf(client).toExtend<Client>();
    expectTypeOf(client.connect()).resolves.toExtend<Client>();
    expectTypeOf<RedisClientType>().toExtend<Client>();
    expectTypeOf<RedisClientType<RedisDefaultModules>>().toExtend<Client>();
    expectTypeOf(createClient({ RESP: 2 })).toExtend<Client>();
    expectTypeOf(createClient({ RESP: 3 })).toExtend<Client>();
  });

  it('fits as a cluster', () => {
    const cluster = createCluster({ rootNodes: [{ url: 'redis://localhost' }] });
    expectTypeOf(cluster).toExtend<Client>();
    expectTypeOf(cluster.connect()).resolves.toExtend<Client>();
    expectTypeOf<RedisClusterType>().toExtend<Client>();
    expectTypeOf<RedisClusterType<RedisDefaultModules>>().toExtend<Client>();
  });
});

describe('a client of ioredis', () => {
  it('fits, and so does its cluster', () => {
    expectTypeOf<Redis>().toExtend<Client>();
    expectTypeOf<Cluster>().toExtend<Client>();
    const options: RedisOptions = { lazyConnect: true };
    expectTypeOf(new Redis(options)).toExtend<Client>();
    expectTypeOf(new Cluster([])).toExtend<Client>();
  });
});

describe('what is none', () => {
  it('does not fit', () => {
    expectTypeOf<string>().not.toExtend<Client>();
    expectTypeOf<RedisOptions>().not.toExtend<Client>();
    expectTypeOf<typeof createClient>().not.toExtend<Client>();
    expectTypeOf<Promise<Redis>>().not.toExtend<Client>();
    // @ts-expect-error a client is needed
    redisTurnLog({ prefix: 'mine' });
  });
});

describe('a log in Redis', () => {
  it('is a log like any other, which is closed', () => {
    const log = redisTurnLog({ client: new Redis() });
    expectTypeOf(log).toExtend<TurnLog>();
    expectTypeOf(log.close()).toEqualTypeOf<Promise<void>>();
  });
});
