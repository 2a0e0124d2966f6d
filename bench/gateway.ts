/**
 * What stands between an agent's WebSocket and a client: the gateway against `ai` 7's own pipe and
 * against a client directly on the socket; beside them a bare relay, which shows what any process
 * in between costs on this machine. Five processes: agent, gateway, peer, relay, and this one, the
 * client; the operating system places them.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { readSocket, readSse } from './gateway/client.ts';
import {
  atLeast,
  atMost,
  type Bar,
  interleaveAsync,
  median,
  type Report,
  ratio,
  sized,
} from './report.ts';

const ROUNDS = 7;
const BURST = sized(200_000, 2_000);
const SESSIONS = sized(100, 10);
const SLOW_SECONDS = sized(2, 0.2);
const FAST_SECONDS = sized(1, 0.1);
const WARMUP_SECONDS = sized(1, 0.1);

type Server = { child: ChildProcess; port: number; name: string };

async function start(name: string, ...args: string[]): Promise<Server> {
  const file = fileURLToPath(new URL(`./gateway/${name}.ts`, import.meta.url));
  const child = fork(file, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const died = once(child, 'exit').then(() => {
    throw new Error(`${name} could not start`);
  });
  const [{ port }] = (await Promise.race([once(child, 'message'), died])) as [{ port: number }];
  died.catch(() => undefined);
  return { child, port, name };
}

/** Chunks a second, as the client parses them. */
async function rate(read: (onChunk: () => void) => Promise<void>): Promise<number> {
  let chunks = 0;
  const begin = performance.now();
  await read(() => {
    chunks++;
  });
  const seconds = (performance.now() - begin) / 1000;
  if (chunks < BURST) throw new Error(`only ${chunks} of ${BURST} chunks came`);
  return chunks / seconds;
}

type Latency = { p50: number; p99: number };

/** Milliseconds from the agent's send to the client's parse, over all sessions together. */
async function latency(
  perSecond: number,
  seconds: number,
  read: (session: string, onChunk: (chunk: { delta?: string }) => void) => Promise<void>,
): Promise<Latency> {
  const each = perSecond / SESSIONS;
  // While a hundred sessions connect at once, it is the connecting that takes time.
  const warmup = each * WARMUP_SECONDS;
  const count = warmup + each * seconds;
  const times: number[] = [];
  const listen = () => {
    let seen = 0;
    return ({ delta }: { delta?: string }) => {
      if (!delta || ++seen <= warmup) return;
      times.push(Number(process.hrtime.bigint() - BigInt(delta.trim())) / 1e6);
    };
  };
  await Promise.all(
    Array.from({ length: SESSIONS }, (_, i) => read(`paced-${count}-${each}-${i}`, listen())),
  );
  if (times.length !== each * seconds * SESSIONS) throw new Error(`${times.length} messages came`);
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

export async function bench(): Promise<Report> {
  const agent = await start('upstream');
  const gateway = await start('sabir-server', String(agent.port));
  const peer = await start('ai-server', String(agent.port));
  const relay = await start('relay', String(agent.port));
  const servers = [agent, gateway, peer, relay];
  const chat = (session: string) => `/api/sessions/${session}/chat`;
  try {
    const rates = await interleaveAsync(ROUNDS, {
      corked: () => rate((on) => readSse(gateway.port, chat(`burst-${BURST}-64`), on)),
      pipe: () => rate((on) => readSse(peer.port, `/writer/${BURST}`, on)),
      generator: () => rate((on) => readSse(peer.port, `/generator/${BURST}`, on)),
      single: () => rate((on) => readSse(gateway.port, chat(`burst-${BURST}-1`), on)),
      direct: () => rate((on) => readSocket(agent.port, `burst-${BURST}-1`, on)),
    });
    const overGateway = (session: string, on: (chunk: { delta?: string }) => void) =>
      readSse(gateway.port, chat(session), on);
    const overSocket = (session: string, on: (chunk: { delta?: string }) => void) =>
      readSocket(agent.port, session, on);
    const overPipe = (session: string, on: (chunk: { delta?: string }) => void) =>
      readSse(peer.port, `/socket/${session}`, on);
    const overRelay = (session: string, on: (chunk: { delta?: string }) => void) =>
      readSse(relay.port, `/relay/${session}`, on);
    const slow = await interleaveAsync(ROUNDS, {
      gateway: () => latency(1_000, SLOW_SECONDS, overGateway),
      direct: () => latency(1_000, SLOW_SECONDS, overSocket),
      relay: () => latency(1_000, SLOW_SECONDS, overRelay),
    });
    const fast = await interleaveAsync(ROUNDS, {
      gateway: () => latency(10_000, FAST_SECONDS, overGateway),
      direct: () => latency(10_000, FAST_SECONDS, overSocket),
      pipe: () => latency(10_000, FAST_SECONDS, overPipe),
      relay: () => latency(10_000, FAST_SECONDS, overRelay),
    });
    const added = (a: Latency[], b: Latency[], key: keyof Latency) =>
      median(a.map((value, i) => value[key] - (b[i]?.[key] ?? 0)));
    const p99 = (values: Latency[]) => values.map((value) => value.p99);
    const bars: Bar[] = [
      atLeast('corked by 64: times the pipe of ai 7', ratio(rates.corked, rates.pipe), 3.3),
      atLeast('one write a message: times the socket', ratio(rates.single, rates.direct), 0.95),
      atMost('1,000/s: added ms, p50', added(slow.gateway, slow.direct, 'p50'), 0.15),
      atMost('1,000/s: added ms, p99', added(slow.gateway, slow.direct, 'p99'), 1.5),
      atMost('10,000/s: p99, times the pipe of ai 7', ratio(p99(fast.gateway), p99(fast.pipe)), 1),
    ];
    const addedBy = (a: Latency[], b: Latency[]) =>
      `p50 ${added(a, b, 'p50').toFixed(3)}, p99 ${added(a, b, 'p99').toFixed(3)} ms`;
    const perSecond = (values: number[]) => `${Math.round(median(values) / 1000)} k chunks/s`;
    const both = (values: Latency[]) =>
      `p50 ${median(values.map(({ p50 }) => p50)).toFixed(3)}, p99 ${median(values.map(({ p99 }) => p99)).toFixed(3)} ms`;
    return {
      name: 'gateway',
      bars,
      figures: {
        processes: [...servers, { name: 'client', child: process }]
          .map(({ name, child }) => `${name} ${child.pid}`)
          .join(', '),
        machine: `${cpus().length} cores, ${cpus()[0]?.model}; unpinned; ${ROUNDS} rounds, interleaved, medians`,
        'gateway, corked by 64': perSecond(rates.corked),
        'ai 7 pipe, from a writer, as documented': perSecond(rates.pipe),
        'ai 7 pipe, from a generator': perSecond(rates.generator),
        'gateway, one write a message': perSecond(rates.single),
        'directly on the socket, one write a message': perSecond(rates.direct),
        '1,000/s: gateway': both(slow.gateway),
        '1,000/s: directly on the socket': both(slow.direct),
        '1,000/s: the RFC allows to add': '5 ms',
        '1,000/s: a bare relay adds': addedBy(slow.relay, slow.direct),
        '10,000/s: gateway': both(fast.gateway),
        '10,000/s: ai 7 pipe': both(fast.pipe),
        '10,000/s: directly on the socket': both(fast.direct),
        '10,000/s: the pipe adds': addedBy(fast.pipe, fast.direct),
        '10,000/s: a bare relay adds': addedBy(fast.relay, fast.direct),
      },
    };
  } finally {
    for (const { child } of servers) child.kill();
  }
}
