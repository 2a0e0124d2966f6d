/**
 * What a session server costs: its own socket against the gateway in front of it, SQLite against
 * memory, and what a session holds that nobody is in. The stack is one process, this is its client.
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
const IDLE = sized(200, 10);

type Stack = { child: ChildProcess; port: number };
type OnDelta = (delta: string) => void;
type Latency = { p50: number; p99: number };

async function start(file?: string): Promise<Stack> {
  const script = fileURLToPath(new URL('./session/stack.ts', import.meta.url));
  const child = fork(script, file ? [file] : [], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { child, port };
}

async function heapOf({ child }: Stack): Promise<number> {
  const answer = once(child, 'message');
  child.send('memory');
  return (await answer)[0].heapUsed;
}

/** On the session's own socket. */
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
        direct: () => latency((on) => readDirectly(kept, paced, on)),
        gateway: () => latency((on) => readThroughGateway(kept, paced, on)),
      },
      1,
    );
    const added = (key: keyof Latency) =>
      median(times.gateway.map((value, i) => value[key] - (times.direct[i]?.[key] ?? 0)));
    const before = await heapOf(kept);
    await Promise.all(
      Array.from({ length: IDLE }, (_, i) =>
        readThroughGateway(kept, 'burst-10', () => undefined, `idle-${i}`),
      ),
    );
    const perSession = ((await heapOf(kept)) - before) / IDLE;
    const perSecond = (values: number[]) => `${Math.round(median(values) / 1000)} k deltas/s`;
    const both = (values: Latency[]) =>
      `p50 ${median(values.map(({ p50 }) => p50)).toFixed(3)}, p99 ${median(values.map(({ p99 }) => p99)).toFixed(3)} ms`;
    return {
      name: 'session',
      bars: [
        atMost(`${PER_SECOND}/s: added by the gateway, ms, p50`, added('p50'), 5),
        atMost('SQLite: times what it takes in memory', ratio(rates.memory, rates.direct), 2),
      ],
      figures: {
        machine: `${cpus().length} cores, ${cpus()[0]?.model}; ${ROUNDS} rounds, interleaved, medians`,
        'a burst, on the session’s socket': perSecond(rates.direct),
        'the same, kept in memory': perSecond(rates.memory),
        'the same, through the gateway': perSecond(rates.gateway),
        'the gateway: times the socket': ratio(rates.gateway, rates.direct).toFixed(2),
        [`${PER_SECOND}/s on the socket, from the agent on`]: both(times.direct),
        [`${PER_SECOND}/s through the gateway`]: both(times.gateway),
        'added by the gateway': `p50 ${added('p50').toFixed(3)}, p99 ${added('p99').toFixed(3)} ms`,
        'an idle session with its runner': `${(perSession / 1024).toFixed(1)} KB of heap`,
      },
    };
  } finally {
    kept.child.kill();
    inMemory.child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}
