import { afterAll, beforeAll, describe } from 'vitest';
import { CLIENT_KINDS, type OpenClient, openClient } from '../../../test/redis-clients.ts';
import { hasRedis, type RedisServer, startRedis } from '../../../test/redis-server.ts';
import { describeTurnLog } from '../../../test/turn-log-conformance.ts';
import { redisTurnLog } from './index.ts';

describe.skipIf(!hasRedis).each(CLIENT_KINDS)('with %s [RED-01]', (kind) => {
  let server: RedisServer;
  let opened: OpenClient;
  let logs = 0;

  beforeAll(async () => {
    server = await startRedis();
    opened = await openClient(kind, server.port);
  });
  afterAll(async () => {
    opened?.close();
    await server?.stop();
  });

  describeTurnLog(
    kind,
    (options) => redisTurnLog({ client: opened.client, prefix: `log ${++logs}`, ...options }),
    { shortMs: 250 },
  );
});
