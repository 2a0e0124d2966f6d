export type { IoRedisClient, NodeRedisClient, NodeRedisCluster, RedisClient } from './client.ts';
export type { RedisTurnLogOptions } from './options.ts';
export { redisTurnLog } from './redis-log.ts';
