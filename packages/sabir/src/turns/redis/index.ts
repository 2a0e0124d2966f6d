export type { IoRedisClient, NodeRedisClient, NodeRedisCluster, RedisClient } from './client.ts';
export { type RedisTurnLogOptions, redisTurnLog } from './redis-log.ts';
