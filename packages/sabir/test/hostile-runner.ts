/** A runner on a socket of its own that says whatever a test has it say. */
import { onTestFinished, vi } from 'vitest';
import { WebSocket } from 'ws';
import { scriptedAgent } from './scripted-agent.ts';
import { type ChainOptions, joinSession, startSessionChain } from './session-chain.ts';

type Command = { type: string; [field: string]: unknown };
type RunnerPlace = { url: string; RUNNER_TOKEN: string };

export async function connectRunner(
  { url, RUNNER_TOKEN }: RunnerPlace,
  { sessionId = 's', runnerId = 'hostile' as string | null } = {},
) {
  const name = runnerId === null ? '' : `&runnerId=${runnerId}`;
  const socket = new WebSocket(
    `${url.replace('http', 'ws')}/api/sessions/${sessionId}/ws?role=runner${name}`,
    { headers: { authorization: `Bearer ${RUNNER_TOKEN}` } },
  );
  const commands: Command[] = [];
  socket.on('message', (data) => commands.push(JSON.parse(String(data))));
  socket.on('error', () => undefined);
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  onTestFinished(() => socket.terminate());
  const say = (event: object | string) =>
    socket.send(typeof event === 'string' ? event : JSON.stringify(event));
  const until = (type: string) =>
    vi.waitFor(
      () => {
        const found = commands.find((command) => command.type === type);
        if (!found) throw new Error(`Not among ${commands.map((one) => one.type).join(', ')}`);
        return found;
      },
      { timeout: 10_000, interval: 5 },
    );
  await new Promise((resolve) => socket.once('open', resolve));
  if (runnerId !== null) say({ type: 'runner.hello', turnId: null, known: [] });
  return { socket, commands, closed, say, until };
}

/** A session whose only runner is hostile, and has been given the turn `t`, which Ann asked for. */
export async function startHostileTurn(options: Partial<ChainOptions> = {}) {
  const chain = await startSessionChain({
    agent: scriptedAgent(),
    onRunnerWanted: () => undefined,
    ...options,
  });
  const runner = await connectRunner(chain);
  const ann = await joinSession(chain, { query: '&dialect=v2' });
  ann.send({ type: 'prompt', content: 'Go', promptId: 'p', turnId: 't' });
  await runner.until('prompt');
  runner.say({ type: 'message.create', turnId: 't' });
  const say = (event: object) => runner.say({ turnId: 't', ...event });
  const finish = async () => {
    say({ type: 'message.finalize', reason: 'end_turn' });
    return ann.until(({ type }) => type === 'message.finalize');
  };
  return { chain, runner, ann, say, finish };
}
