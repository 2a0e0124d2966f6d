/** A runner on a socket of its own that sends whatever a test has it send. */
import { onTestFinished, vi } from 'vitest';
import { WebSocket } from 'ws';
import type { RunnerFrame } from '../src/sessions/index.ts';
import { scriptedAgent } from './scripted-agent.ts';
import { type ChainOptions, joinSession, startSessionChain } from './session-chain.ts';

type Command = { type: string; [field: string]: unknown };
type RunnerPlace = { url: string; RUNNER_TOKEN: string };
type Hello = Partial<Extract<RunnerFrame, { type: 'hello' }>>;

/** With an id it is a runner of ours, which speaks chunks; without one (null) a deployed runner, which speaks V2. */
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
  const send = (frame: object | string) =>
    socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  const runner = {
    socket,
    commands,
    closed,
    send,
    hello: (hello: Hello = {}) => send({ type: 'hello', turnId: null, known: [], ...hello }),
    /** One frame of a turn. Its fields may be anything. */
    chunks: (turnId: unknown, seq: unknown, chunks: unknown) =>
      send({ type: 'chunks', turnId, seq, chunks }),
    of: (type: string) => commands.filter((command) => command.type === type),
    /** The first command like this, as soon as there is one. */
    until: (type: string, is: (command: Command) => unknown = () => true) =>
      vi.waitFor(
        () => {
          const found = commands.find((command) => command.type === type && is(command));
          if (!found) throw new Error(`Not among ${commands.map((one) => one.type).join(', ')}`);
          return found;
        },
        { timeout: 10_000, interval: 5 },
      ),
    /** The session has read every frame that was sent before this. */
    async settled(): Promise<void> {
      const count = runner.of('pong').length;
      send({ type: 'ping' });
      await vi.waitUntil(() => runner.of('pong').length > count, { interval: 5 });
    },
  };
  await new Promise((resolve) => socket.once('open', resolve));
  if (runnerId !== null) runner.hello();
  return runner;
}

export type HostileTurn = Awaited<ReturnType<typeof startHostileTurn>>;
type HostileTurnOptions = Partial<ChainOptions> & { runnerId?: string | null };

/** A session whose only runner is hostile, and has been given the turn that Ann asked for: `t` in V2. */
export async function startHostileTurn({ runnerId, ...options }: HostileTurnOptions = {}) {
  const chain = await startSessionChain({
    agent: scriptedAgent(),
    onRunnerWanted: () => undefined,
    ...options,
  });
  const runner = await connectRunner(chain, runnerId === undefined ? {} : { runnerId });
  const ann = await joinSession(chain, { query: '&dialect=v2' });
  ann.send({ type: 'prompt', content: 'Go', promptId: 'p', turnId: 't' });
  const { prompt } = await runner.until('prompt');
  /** The id of the turn in the log, which a runner of ours names in its frames. */
  const turnId = runnerId === null ? undefined : String(Object(prompt).turnId);
  let seq = 0;
  /** The next frame of the turn: chunks, or an event of V2 each. */
  const say = (...events: object[]) => {
    if (turnId !== undefined) runner.chunks(turnId, ++seq, events);
    else for (const event of events) runner.send({ turnId: 't', ...event });
  };
  say(turnId === undefined ? { type: 'message.create' } : { type: 'start' });
  const finish = async () => {
    say(
      turnId === undefined
        ? { type: 'message.finalize', reason: 'end_turn' }
        : { type: 'finish', finishReason: 'stop' },
    );
    return ann.until(({ type }) => type === 'message.finalize');
  };
  return { chain, runner, ann, say, finish, turnId };
}
