/** Real clients of both kinds, as their users make them. */
import Redis, { Cluster } from 'ioredis';
import { createClient, createCluster } from 'redis';
import type { RedisClient } from '../src/turns/redis/index.ts';

export const CLIENT_KINDS = ['redis', 'ioredis'] as const;
export type ClientKind = (typeof CLIENT_KINDS)[number];

export type OpenClient = { client: RedisClient; close(): void };

/** One that tries to connect again after `retryMs`. */
export async function openClient(
  kind: ClientKind,
  port: number,
  retryMs = 50,
): Promise<OpenClient> {
  if (kind === 'ioredis') {
    const client = new Redis(port, '127.0.0.1', { retryStrategy: () => retryMs });
    await new Promise((resolve) => client.once('ready', resolve));
    return { client, close: () => client.disconnect() };
  }
  const socket = { port, host: '127.0.0.1', reconnectStrategy: () => retryMs };
  const client = createClient({ socket });
  client.on('error', () => undefined);
  await client.connect();
  return { client, close: () => client.destroy() };
}

export async function openCluster(kind: ClientKind, port: number): Promise<OpenClient> {
  if (kind === 'ioredis') {
    const client = new Cluster([{ port, host: '127.0.0.1' }]);
    await new Promise((resolve) => client.once('ready', resolve));
    return { client, close: () => client.disconnect() };
  }
  const client = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] });
  client.on('error', () => undefined);
  await client.connect();
  return { client, close: () => client.destroy() };
}
