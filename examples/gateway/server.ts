/**
 * An async generator behind the gateway: any AI SDK client can talk to it, reload in the middle of
 * an answer, watch from a second tab, and stop it.
 *
 *     node gateway/server.ts
 */
import { setTimeout } from 'node:timers/promises';
import { asUpstream, createChatGateway } from 'sabir/gateway';
import { serve } from 'sabir/node';

const upstream = asUpstream(async function* ({ text, signal }) {
  yield { type: 'text-start', id: '1' };
  for (const word of `You wrote “${text}”.`.split(/(?<= )/)) {
    yield { type: 'text-delta', id: '1', delta: word };
    await setTimeout(50, undefined, { signal });
  }
});

const gateway = createChatGateway({
  upstream,
  authenticate: () => ({ id: 'anybody' }), // jwtAuth({ secret }) lets in whoever has a token
  access: () => 'owner',
  onFinish: ({ message, outcome }) => console.log(`${outcome.status}: message ${message.id}`),
});

const server = await serve({ fetch: gateway.fetch, port: Number(process.env.PORT ?? 3003) });
console.log(`Listening on http://localhost:${server.port}`);
