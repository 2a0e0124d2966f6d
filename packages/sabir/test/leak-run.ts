/**
 * What a gateway holds after many turns: run with `--expose-gc`, prints JSON. Nothing in this
 * process but the gateway, the server it listens on and its sockets to the agents.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createChatGateway } from '../src/gateway/gateway.ts';
import { serve } from '../src/platforms/node/serve.ts';
import { agentOpsUpstream } from '../src/sources/agent-ops/upstream.ts';
import { memoryTurnLog } from '../src/turns/memory.ts';
import type { PeerOrder, PeerReport } from './leak-peer.ts';
import { watchTimers } from './watch-timers.ts';

export type LeakReport = {
  warmupTurns: number;
  turns: number;
  atOnce: number;
  /** Bytes of heap in use after collections, one for every tenth of the turns. */
  samples: number[];
  bytesPerTurn: number;
  /** What many turns at once have left behind, a turn. */
  bytesPerTurnAtOnce: number;
  finished: number;
  before: Held;
  after: Held;
  seconds: number;
};

/** What is held beside memory. */
type Held = {
  resources: Record<string, number>;
  timers: number;
  connections: number;
  listeners: number;
};

const WARMUP = 200;
const TURNS = 1_000;
const SAMPLES = 10;
const AT_ONCE = 100;
const LINGER_MS = 50;
const GRACE_MS = 20;

const startedAt = performance.now();
const timers = watchTimers();
let agentsUrl = '';
let finished = 0;
const gateway = createChatGateway({
  upstream: agentOpsUpstream({ url: (id) => `${agentsUrl}/api/sessions/${id}/ws` }),
  log: memoryTurnLog({ retentionMs: 0 }),
  authenticate: () => ({ id: 'u' }),
  access: () => 'owner',
  onFinish: () => void finished++,
  timing: { lingerMs: LINGER_MS, disconnectGraceMs: GRACE_MS },
  limits: { liveTurnsPerUser: Infinity, viewersPerUser: Infinity, bodiesPerUser: Infinity },
});
const server = await serve({ fetch: gateway.fetch });
const peer = fork(new URL('./leak-peer.ts', import.meta.url), [server.url]);

async function hear(from: ChildProcess): Promise<PeerReport> {
  const [said] = (await once(from, 'message')) as [PeerReport];
  if ('failed' in said) throw new Error(said.failed);
  return said;
}

async function order(what: PeerOrder): Promise<void> {
  const done = hear(peer);
  peer.send(what);
  await done;
}

/** Waits until connections that linger are closed, then collects until there is no more to collect. */
async function measure(): Promise<number> {
  await sleep(2 * (LINGER_MS + GRACE_MS));
  let heap = Infinity;
  for (let pass = 0; pass < 8; pass++) {
    globalThis.gc?.();
    await sleep(5);
    const { heapUsed } = process.memoryUsage();
    if (pass > 3 && heapUsed > heap - 1_000) break;
    heap = heapUsed;
  }
  return heap;
}

function listeningServer(): Server {
  const handles = (process as unknown as { _getActiveHandles(): unknown[] })._getActiveHandles();
  return handles.find((handle) => (handle as Server)?.listening === true) as Server;
}

async function held(): Promise<Held> {
  const listening = listeningServer();
  const { promise, resolve } = Promise.withResolvers<number>();
  listening.getConnections((_, count) => resolve(count));
  const resources: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) {
    resources[name] = (resources[name] ?? 0) + 1;
  }
  const emitters = [listening, process];
  return {
    resources,
    timers: timers.count,
    connections: await promise,
    listeners: emitters
      .flatMap((emitter) => emitter.eventNames().map((name) => emitter.listenerCount(name)))
      .reduce((sum, count) => sum + count, 0),
  };
}

/** What is held once it no longer changes: sockets take a moment to close. */
async function heldAtRest(expected?: Held): Promise<Held> {
  const until = performance.now() + 5_000;
  for (;;) {
    const now = await held();
    if (!expected || JSON.stringify(now) === JSON.stringify(expected)) return now;
    if (performance.now() > until) return now;
    await sleep(50);
  }
}

/** The slope of the line that fits the samples best. */
function slopeOf(samples: number[], step: number): number {
  const mean = samples.reduce((sum, y) => sum + y, 0) / samples.length;
  const middle = (samples.length - 1) / 2;
  let over = 0;
  let under = 0;
  for (const [i, y] of samples.entries()) {
    over += (i - middle) * (y - mean);
    under += (i - middle) ** 2;
  }
  return over / under / step;
}

const first = await hear(peer);
if ('agentsUrl' in first) agentsUrl = first.agentsUrl;
await measure();
const before = await heldAtRest();

await order({ turns: WARMUP / 2, atOnce: AT_ONCE });
await order({ turns: WARMUP / 2, atOnce: 1 });
await measure();
const samples: number[] = [];
for (let n = 0; n < SAMPLES; n++) {
  await order({ turns: TURNS / SAMPLES, atOnce: 1 });
  samples.push(await measure());
}
await order('rest');
const atRest = await measure();
await order({ turns: AT_ONCE, atOnce: AT_ONCE });
// The clients keep their connections for a next message, and each of those weighs something.
await order('rest');
const atOnce = await measure();
const after = await heldAtRest(before);

const report: LeakReport = {
  warmupTurns: WARMUP,
  turns: TURNS,
  atOnce: AT_ONCE,
  samples,
  finished,
  before,
  after,
  bytesPerTurn: slopeOf(samples, TURNS / SAMPLES),
  bytesPerTurnAtOnce: (atOnce - atRest) / AT_ONCE,
  seconds: (performance.now() - startedAt) / 1_000,
};
peer.send('leave' satisfies PeerOrder);
await gateway.close();
await server.close();
console.log(JSON.stringify(report));
// Nothing keeps this process alive now: that it ends by itself is part of the test.
