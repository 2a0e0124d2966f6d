/**
 * A gateway in a process of its own that shares its turns with others. What the agent says is in
 * the prompt: `answer` all of the long one at once; `paced-COUNT-EVERY`, when it is told to go.
 * Either ends when it is told to.
 */
import { setTimeout } from 'node:timers/promises';
import { createClient } from 'redis';
import { asUpstream, createChatGateway } from 'sabir/gateway';
import { serve } from 'sabir/node';
import { redisTurnLog } from 'sabir/redis';
import { answerDeltas } from './answer.ts';

const [url = '', part = 'text-1', cut = 'tokens'] = process.argv.slice(2);
const client = createClient({ url });
client.on('error', (error) => console.error(error));
await client.connect();

let going = Promise.withResolvers<void>();
let ending = Promise.withResolvers<void>();
process.on('message', (told) => {
  if (told === 'go') going.resolve();
  if (told === 'end') {
    ending.resolve();
    going = Promise.withResolvers();
    ending = Promise.withResolvers();
  }
  if (told === 'memory') {
    for (let n = 0; n < 4; n++) gc?.();
    process.send?.(process.memoryUsage());
  }
});
process.on('disconnect', () => process.exit());

const upstream = asUpstream(async function* ({ text }) {
  const [kind, ...numbers] = text.split('-');
  const [count = 0, everyMs = 0] = numbers.map(Number);
  const ended = ending.promise;
  const say = (delta: string) => ({ type: 'text-delta', id: part, delta }) as const;
  yield { type: 'text-start', id: part };
  if (kind === 'answer') {
    for (const delta of answerDeltas(cut)) yield say(delta);
  } else {
    await going.promise;
    const begin = performance.now();
    for (let i = 0; i < count; i++) {
      await setTimeout(Math.max(0, begin + i * everyMs - performance.now()));
      yield say(`${i} `);
    }
  }
  await ended;
});
const gateway = createChatGateway({
  upstream,
  log: redisTurnLog({ client, prefix: 'gateways' }),
  authenticate: () => ({ id: 'user' }),
  access: () => 'owner',
  limits: { liveTurnsPerUser: Infinity, viewersPerUser: Infinity, bodiesPerUser: Infinity },
});
const { port } = await serve({ fetch: gateway.fetch });
process.send?.({ port });
