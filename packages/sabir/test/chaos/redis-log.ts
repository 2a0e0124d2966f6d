/** The shared log of the gateways, over either of the two clients. */
import type { Logger } from '../../src/core/translator.ts';
import type { TurnLog } from '../../src/turns/log.ts';
import { type RedisClient, redisTurnLog } from '../../src/turns/redis/index.ts';

export type RedisLogOptions = {
  redisUrl: string;
  client: 'redis' | 'ioredis';
  leaseMs: number;
  retentionMs: number;
  logger?: Logger;
};

export async function openRedisLog({ redisUrl, client, ...options }: RedisLogOptions) {
  const connected = client === 'redis' ? await openRedis(redisUrl) : await openIoRedis(redisUrl);
  const log: TurnLog = redisTurnLog({ client: connected, ...options });
  return log;
}

/** Comes back soon after Redis does; waits for it also when it is not there yet. */
async function openRedis(url: string): Promise<RedisClient> {
  const { createClient } = await import('redis');
  const client = createClient({ url, socket: { reconnectStrategy: () => 50 } });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

async function openIoRedis(url: string): Promise<RedisClient> {
  const { Redis } = await import('ioredis');
  const client = new Redis(url, { retryStrategy: () => 50 });
  client.on('error', () => undefined);
  return client;
}
