/**
 * What a session costs: from its agent to a viewer against a bare pipe, SQLite against memory, and what a session holds
 * while it is idle. The stack is one process, this is its client.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { readSse } from './gateway/client.ts';
import { atMost, interleaveAsync, median, type Report, ratio, sized } from './report.ts';

const ROUNDS = 7;
const BURST = sized(20_000, 500);
const PACED = sized(1_000, 50);
const PER_SECOND = 500;
/** Idle sessions with one past turn each, and the turns that warm the process up before they are counted. */
const IDLE = sized(3_000, 10);
const WARM = sized(1_500, 10);
const AT_ONCE = sized(100, 10);
/** Before sessions kept their turns in the log: with a runner, and through two loopback sockets. */
const OLD = { residentKb: '132 to 210', addedMs: 0.31 };

type Stack = { child: ChildProcess; port: number; pipePort: number };
type OnDelta = (delta: string) => void;
type Latency = { p50: number; p99: number };

async function start(file?: string): Promise<Stack> {
  const script = fileURLToPath(new URL('./session/stack.ts', import.meta.url));
  const child = fork(script, file ? [file] : [], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [ports] = (await once(child, 'message')) as [Omit<Stack, 'child'>];
  return { child, ...ports };
}

async function memoryOf({ child }: Stack): Promise<NodeJS.MemoryUsage> {
  const answer = once(child, 'message');
  child.send('memory');
  return (await answer)[0];
}

/** One turn in each of so many sessions. */
async function visit(stack: Stack, sessions: string[]): Promise<void> {
  for (let at = 0; at < sessions.length; at += AT_ONCE) {
    const some = sessions.slice(at, at + AT_ONCE);
    await Promise.all(
      some.map((name) => readThroughGateway(stack, 'burst-10', () => undefined, name)),
    );
  }
}

/** From the agent with nothing in between. */
function readPipe({ pipePort }: Stack, content: string, onDelta: OnDelta): Promise<void> {
  return readSse(pipePort, '/', ({ delta }) => onDelta(delta ?? ''), content);
}

/** On the session's V2 socket. */
async function readDirectly({ port }: Stack, content: string, onDelta: OnDelta): Promise<void> {
  const url = `ws://127.0.0.1:${port}/api/sessions/direct/ws?role=client&dialect=v2&messages=0`;
  const socket = new WebSocket(url, { perMessageDeflate: false });
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on('open', () => socket.send(JSON.stringify({ type: 'prompt', content })));
  socket.on('message', (data) => {
    const event = JSON.parse(String(data));
    if (event.type === 'message.part.text-delta') onDelta(event.delta);
    if (event.type === 'message.finalize') resolve();
  });
  await promise;
  socket.terminate();
}

function readThroughGateway(
  { port }: Stack,
  content: string,
  onDelta: OnDelta,
  session = 'gateway',
) {
  return readSse(
    port,
    `/api/sessions/${session}/chat`,
    ({ type, delta }) => {
      if (type === 'text-delta') onDelta(delta ?? '');
    },
    content,
  );
}

async function rate(read: (onDelta: OnDelta) => Promise<void>): Promise<number> {
  let deltas = 0;
  const begin = performance.now();
  await read(() => {
    deltas++;
  });
  if (deltas !== BURST) throw new Error(`${deltas} of ${BURST} deltas came`);
  return deltas / ((performance.now() - begin) / 1000);
}

async function latency(read: (onDelta: OnDelta) => Promise<void>): Promise<Latency> {
  const times: number[] = [];
  await read((delta) => {
    times.push(Number(process.hrtime.bigint() - BigInt(delta.trim())) / 1e6);
  });
  if (times.length !== PACED) throw new Error(`${times.length} of ${PACED} deltas came`);
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(PACED * share)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

export async function bench(): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-bench-'));
  const kept = await start(join(folder, 'sessions.db'));
  const inMemory = await start();
  try {
    const rates = await interleaveAsync(ROUNDS, {
      direct: () => rate((on) => readDirectly(kept, `burst-${BURST}`, on)),
      gateway: () => rate((on) => readThroughGateway(kept, `burst-${BURST}`, on)),
      memory: () => rate((on) => readDirectly(inMemory, `burst-${BURST}`, on)),
    });
    const paced = `paced-${PACED}-${PER_SECOND}`;
    const times = await interleaveAsync(
      ROUNDS,
      {
        pipe: () => latency((on) => readPipe(kept, paced, on)),
        direct: () => latency((on) => readDirectly(kept, paced, on)),
        gateway: () => latency((on) => readThroughGateway(kept, paced, on)),
      },
      1,
    );
    const added = (key: keyof Latency) =>
      median(times.gateway.map((value, i) => value[key] - (times.pipe[i]?.[key] ?? 0)));
    await visit(
      kept,
      Array.from({ length: WARM }, (_, i) => `warm-${i % AT_ONCE}`),
    );
    const before = await memoryOf(kept);
    await visit(
      kept,
      Array.from({ length: IDLE }, (_, i) => `idle-${i}`),
    );
    const after = await memoryOf(kept);
    const perSession = (key: 'rss' | 'heapUsed') => (after[key] - before[key]) / IDLE / 1024;
    const perSecond = (values: number[]) => `${Math.round(median(values) / 1000)} k deltas/s`;
    const both = (values: Latency[]) =>
      `p50 ${median(values.map(({ p50 }) => p50)).toFixed(3)}, p99 ${median(values.map(({ p99 }) => p99)).toFixed(3)} ms`;
    return {
      name: 'session',
      bars: [
        atMost(`${PER_SECOND}/s: added from agent to viewer, ms, p50`, added('p50'), 0.15),
        atMost(`${IDLE} idle sessions, KB resident each`, perSession('rss'), 60),
        atMost('SQLite: times what it takes in memory', ratio(rates.memory, rates.direct), 2),
      ],
      figures: {
        machine: `${cpus().length} cores, ${cpus()[0]?.model}; ${ROUNDS} rounds, interleaved, medians`,
        'a burst, on the session’s socket': perSecond(rates.direct),
        'the same, kept in memory': perSecond(rates.memory),
        'the same, through the gateway': perSecond(rates.gateway),
        'the gateway: times the socket': ratio(rates.gateway, rates.direct).toFixed(2),
        [`${PER_SECOND}/s through a bare pipe`]: both(times.pipe),
        [`${PER_SECOND}/s on the session’s V2 socket`]: both(times.direct),
        [`${PER_SECOND}/s through session and gateway`]: both(times.gateway),
        'added to the pipe': `p50 ${added('p50').toFixed(3)}, p99 ${added('p99').toFixed(3)} ms (p50 before: ${OLD.addedMs})`,
        'an idle session': `${perSession('rss').toFixed(1)} KB resident (before: ${OLD.residentKb}), ${perSession('heapUsed').toFixed(1)} KB of heap`,
      },
    };
  } finally {
    kept.child.kill();
    inMemory.child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}
