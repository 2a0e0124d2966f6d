/**
 * One of several gateways in front of the same agents: whichever a request comes to, it is served.
 *
 *     REDIS_URL=redis://localhost:6379 SESSIONS_URL=http://localhost:3007 \
 *     SESSIONS_SECRET=… node several-gateways/gateway.ts
 */
import { createClient } from 'redis';
import { createChatGateway } from 'sabir/gateway';
import { serve } from 'sabir/node';
import { redisTurnLog } from 'sabir/redis';
import { sessionServerUpstream } from 'sabir/session';

const { REDIS_URL = 'redis://localhost:6379', SESSIONS_URL = 'http://localhost:3007' } =
  process.env;
const { SESSIONS_SECRET = '', HOST = 'localhost', PORT = '3008', LEASE_MS = '10000' } = process.env;

const client = createClient({ url: REDIS_URL });
client.on('error', (error) => console.error(`Redis: ${error.message}`));
await client.connect();
const log = redisTurnLog({ client, leaseMs: Number(LEASE_MS) });

const gateway = createChatGateway({
  log,
  upstream: sessionServerUpstream({
    url: SESSIONS_URL,
    // The session server trusts the gateways, which name the user: so another gateway can continue a turn of theirs.
    token: ({ id }) => `${SESSIONS_SECRET}.${id}`,
  }),
  // jwtAuth({ secret }) lets in whoever has a token; here everybody is who they say they are.
  authenticate: ({ headers }) => ({ id: headers.get('x-user') ?? 'anybody' }),
  access: () => 'collaborator',
  onFinish: ({ message, outcome }) => console.log(`${outcome.status}: message ${message.id}`),
});
const server = await serve({ fetch: gateway.fetch, host: HOST, port: Number(PORT) });
console.log(`Listening on http://localhost:${server.port}`);

process.once('SIGTERM', async () => {
  await gateway.close(); // What runs here goes on elsewhere.
  await server.close();
  await log.close();
  client.destroy();
});
