/** Connections between gateway, session and runner are cut at random bytes; nothing is lost or doubled. */
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { foldChunks } from '../src/core/fold.ts';
import { verifyChunks } from '../src/core/verify.ts';
import { type Agent, Runner, sessionServerUpstream } from '../src/sessions/index.ts';
import { readWritten } from '../src/turns/read-written.ts';
import { admitGateway, gatewayToken } from './link-rig.ts';
import { scriptedAgent } from './scripted-agent.ts';
import { startSessionChain } from './session-chain.ts';
import { createRandom } from './session-child.ts';
import { type SocketProxy, startSocketProxy } from './socket-proxy.ts';
import { ann, never, promptOf, watch } from './upstream-turn.ts';

const TURNS = 30;
const WHOLE = Array.from({ length: 150 }, (_, i) => `${i + 1} `).join('');

/** A session whose runner and whose gateway are each behind a proxy that cuts. */
async function setUp(agent: Agent, cutOf: () => number | undefined) {
  const onRunnerWanted = () => undefined;
  const chain = await startSessionChain({ agent, admitGateway, onRunnerWanted });
  const proxies: SocketProxy[] = [];
  for (let i = 0; i < 2; i++) proxies.push(await startSocketProxy(chain.port, cutOf));
  const [runnerSide, gatewaySide] = proxies as [SocketProxy, SocketProxy];
  const runner = new Runner({
    url: runnerSide.url,
    sessionId: 's',
    agent,
    WebSocket,
    token: chain.RUNNER_TOKEN,
    retryMs: { least: 5, most: 20 },
  });
  runner.start();
  const { url } = gatewaySide;
  const upstream = sessionServerUpstream({ url, WebSocket, token: gatewayToken });
  onTestFinished(async () => {
    await runner.close();
    await Promise.all(proxies.map((proxy) => proxy.close()));
  });
  const open = () => upstream.open({ sessionId: 's', user: ann, role: 'owner', signal: never() });
  return { chain, runnerSide, gatewaySide, open, cuts: () => proxies.map(({ cuts }) => cuts) };
}

it('loses and doubles nothing when both its connections are cut again and again [RUN-02]', async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
  const random = createRandom(seed);
  const agent = scriptedAgent();
  const { chain, open, cuts } = await setUp(agent, () => Math.floor(600 + random() * 12_000));
  let session = await open();
  const asked: string[] = [];
  for (let i = 0; i < TURNS; i++) {
    if (session.isClosed) session = await open();
    const kind = i % 3 === 0 ? 'tool' : 'bursts 150';
    const prompt = promptOf(`${kind} ${i}`);
    asked.push(prompt.text);
    const turn = watch(session, prompt);
    const end = await turn.done;
    expect(end, `seed ${seed}, turn ${i}`).toMatchObject({ outcome: 'finished' });
    expect(verifyChunks(turn.chunks)).toEqual([]);
    expect(turn.text).toBe(kind === 'tool' ? 'Looking. 42 berths.' : WHOLE);
    expect(foldChunks(turn.chunks).id).toBe(prompt.messageId);
    expect(turn.chunks).toEqual(await readWritten(chain.sessions.sessions.log, prompt.turnId, 0));
  }
  session.close();
  expect(agent.prompts.map(({ text }) => text)).toEqual(asked);
  const messages = chain.store.open('s').messages();
  expect(messages).toHaveLength(2 * TURNS);
  const users = messages.filter(({ role }) => role === 'user');
  expect(users.map(({ parts }) => parts)).toEqual(asked.map((text) => [{ type: 'text', text }]));
  const [byRunner = 0, byGateway = 0] = cuts();
  console.log(`seed ${seed}: ${byRunner} cuts at the runner, ${byGateway} at the gateway`);
  expect(byRunner).toBeGreaterThan(5);
  expect(byGateway).toBeGreaterThan(5);
});

it('a question that is asked, answered and told across cuts counts once [RUN-03]', async () => {
  const agent = scriptedAgent();
  const { open, runnerSide, gatewaySide } = await setUp(agent, () => undefined);
  const session = await open();
  const turn = watch(session, promptOf('question'));
  await expect.poll(() => turn.chunks.some(({ type }) => type === 'data-question')).toBe(true);
  runnerSide.cutAll();
  gatewaySide.cutAll();
  turn.turn.answer({ type: 'answer', questionId: 'q1', answer: 'Yes' });
  await expect.poll(() => JSON.stringify(turn.chunks)).toContain('"answered"');
  gatewaySide.cutAll();
  expect(await turn.done).toMatchObject({ outcome: 'finished' });
  expect(turn.text).toBe('I need a decision. Answered: Yes');
  session.close();
});

it('a stop that is asked for while the connection is gone still stops', async () => {
  const agent = scriptedAgent();
  const { open, gatewaySide } = await setUp(agent, () => undefined);
  const session = await open();
  const turn = watch(session, promptOf('slow'));
  await expect.poll(() => turn.text).toBe('Half ');
  gatewaySide.cutAll();
  turn.turn.stop();
  expect(await turn.done).toMatchObject({ outcome: 'stopped' });
  await expect.poll(() => agent.prompts[0]?.signal.aborted).toBe(true);
  session.close();
});
