/** What the RFC asks of speed, as a check that nothing is badly wrong; `bench/` measures properly. */
import { expect, it, onTestFinished } from 'vitest';
import { createSseDecoder } from '../src/core/sse.ts';
import { createChatGateway } from '../src/gateway/index.ts';
import { serve } from '../src/platforms/node/serve.ts';
import { agentOpsUpstream } from '../src/sources/agent-ops/index.ts';
import { aborted, type Script } from './agent-ops-script.ts';
import { startAgentOpsServer } from './agent-ops-server.ts';

const REQUESTS = 300;
const AT_ONCE = 10;
const FRAMES = 200;

async function setUp(script?: Script) {
  const agent = await startAgentOpsServer(script && { script: () => script });
  const gateway = createChatGateway({
    upstream: agentOpsUpstream({ url: agent.url }),
    authenticate: () => ({ id: 'anybody' }),
    access: () => 'owner',
  });
  const server = await serve({ fetch: gateway.fetch });
  onTestFinished(async () => {
    await gateway.close();
    await server.close();
    await agent.close();
  });
  return { agent, post: (session: string, chat: string) => post(server.url, session, chat) };
}

function post(url: string, session: string, id: string): Promise<Response> {
  const messages = [{ id, role: 'user', parts: [{ type: 'text', text: 'hello' }] }];
  return fetch(`${url}/api/sessions/${session}/chat`, {
    method: 'POST',
    body: JSON.stringify({ id, messages, trigger: 'submit-message' }),
  });
}

/** A busy machine may spoil a try; a slow gateway spoils all of them. */
async function bestOf(tries: number, limit: number, measure: () => Promise<number>) {
  let best = Infinity;
  for (let i = 0; i < tries && best > limit; i++) best = Math.min(best, await measure());
  return best;
}

const percentile = (values: number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Infinity;

it('[RFC-INT-7.4] sends the first byte within 200 ms, at the 99th percentile, ten at once', async () => {
  const { post } = await setUp();
  let sent = 0;
  const p99 = await bestOf(3, 200, async () => {
    const times: number[] = [];
    await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, worker) => {
        for (let i = 0; i < REQUESTS / AT_ONCE; i++) {
          const start = performance.now();
          const { body } = await post(`s${worker}`, `c${++sent}`);
          const reader = body?.getReader();
          await reader?.read();
          times.push(performance.now() - start);
          while (!(await reader?.read())?.done);
        }
      }),
    );
    expect(times).toHaveLength(REQUESTS);
    return percentile(times, 0.99);
  });
  expect(p99).toBeLessThan(200);
});

it('[RFC-INT-7.1] adds less than 5 ms to a frame, in the middle', async () => {
  const sentAt = new Map<string, number>();
  const script: Script = async function* ({ signal, number }) {
    for (let i = 0; i < FRAMES && !signal.aborted; i++) {
      await Promise.race([new Promise((resolve) => setTimeout(resolve, 2)), aborted(signal)]);
      const text = `${number}-${i} `;
      sentAt.set(text, performance.now());
      yield { say: text };
    }
  };
  const { post } = await setUp(script);
  let turns = 0;
  const p50 = await bestOf(3, 5, async () => {
    const times: number[] = [];
    const decoder = createSseDecoder({
      frame({ data }) {
        if (!data.includes('"text-delta"')) return;
        const { delta } = JSON.parse(data) as { delta: string };
        times.push(performance.now() - (sentAt.get(delta) ?? 0));
      },
    });
    const { body } = await post('s', `c${++turns}`);
    for await (const bytes of body ?? []) decoder.push(bytes);
    expect(times).toHaveLength(FRAMES);
    return percentile(times, 0.5);
  });
  expect(p50).toBeLessThan(5);
});
