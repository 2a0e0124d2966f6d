/** A run: everything is started, turns go through it under faults, and each is judged at its end. */
import type { Chunk } from '../../src/core/chunks.ts';
import { type RedisServer, startRedis } from '../redis-server.ts';
import type { GatewayReport, SourceReport } from './child.ts';
import { createFaults, viewerName } from './faults.ts';
import { startFaultyProxy } from './faulty-proxy.ts';
import { judge } from './judge.ts';
import { type PlannedFault, planTurn, WEIGHTS } from './plan.ts';
import { startGateways, startSource } from './processes.ts';
import { createDraws, type Random } from './random.ts';
import { add, type ChaosReport, createReport, type Failure, faultCount } from './report.ts';
import { type ChaosTurn, createTurn, type Finish } from './turn.ts';
import { answerTurn, stopTurn } from './verbs.ts';
import { pause, type Seen, watchTurn } from './viewer.ts';

export type ChaosOptions = {
  faults: number;
  seed: number;
  minutes: number;
  /** How many turns are under way at the same time. */
  atOnce: number;
  /** `memory` for one gateway by itself. */
  log: 'redis' | 'memory';
  client: 'redis' | 'ioredis';
  appendfsync: 'always' | 'everysec';
  /** Kinds of fault that are left out. */
  without?: string[];
  /** Only this turn, with what was planned for it. */
  only?: number;
  /** Ends the run early. */
  signal?: AbortSignal;
  onFailure?(failure: Failure): void;
  onProgress?(report: ChaosReport): void;
};

const LEASE_MS = 1_500;
/** A viewer hangs that has nothing so long after the last fault, or so long after the beginning. */
const QUIET_MS = 30_000;
const LONGEST_MS = 90_000;
/** What a killed gateway would have stored may still be on its way. */
const LAST_WORDS_MS = 3_000;
const READ_TRIES = 50;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, log, client, appendfsync } = options;
  const report = createReport(seed, appendfsync === 'everysec');
  const startedAt = Date.now();
  const ending = new AbortController();
  const running = new Set<ChaosTurn>();
  const turns = new Map<number, ChaosTurn>();
  const isRedis = log === 'redis';
  const weights = { ...WEIGHTS[log] };
  for (const kind of options.without ?? []) weights[kind as keyof typeof weights] = 0;
  const redis: RedisServer | undefined = isRedis ? await startRedis({ appendfsync }) : undefined;
  // The other children end when this process does; Redis does not know of it.
  const killRedis = () => {
    if (redis?.pid) process.kill(redis.pid, 'SIGKILL');
  };
  process.once('exit', killRedis);
  const source = await startSource(onSource);
  const upstreams = await Promise.all(
    Array.from({ length: isRedis ? 3 : 1 }, () =>
      startFaultyProxy({
        keyOf: (head) => /^GET \/api\/sessions\/([^/]+)\/ws/.exec(head)?.[1] ?? '',
        targets: () => [source.port],
      }),
    ),
  );
  const gateways = await startGateways(
    upstreams.length,
    (index) => ({
      upstreamUrl: upstreams[index]?.url ?? '',
      ...(redis && { redisUrl: redis.url }),
      client,
      leaseMs: LEASE_MS,
      retentionMs: 120_000,
      disconnectGraceMs: 20_000,
    }),
    onGateway,
  );
  const routes = new Map<string, Random>();
  const viewers = await startFaultyProxy({
    keyOf: (head) => /^x-viewer: *(\S+)/im.exec(head)?.[1] ?? '',
    targets: balance,
    onOpen(key, port) {
      const index = Array.from(upstreams, (_, i) => gateways.portOf(i)).indexOf(port);
      turns.get(Number.parseInt(key, 10))?.tell(`    ${key} is with gateway ${index}`);
    },
  });
  const faults = createFaults({
    gateways,
    redis,
    leaseMs: LEASE_MS,
    viewers,
    upstreams,
    running,
    // What Redis writes to the disk once a second is not there yet.
    lostMs: report.isLossy ? 1_000 : 0,
    count: (kind) => add(report.faults, kind),
    signal: ending.signal,
  });
  const verbs = { url: viewers.url, signal: ending.signal };
  const where = { ...verbs, readSession: source.readLog, readReplica };

  /** Any gateway that is up can tell; in the next moment it may not be. */
  async function readReplica(turnId: string): Promise<Chunk[] | undefined> {
    for (let i = 0; i < READ_TRIES && !ending.signal.aborted; i++) {
      const [index] = gateways.healthy.slice(i % Math.max(1, gateways.healthy.length));
      try {
        if (index !== undefined) return await gateways.readLog(index, turnId);
      } catch {
        // Asked again, of another one.
      }
      await pause(100, ending.signal);
    }
    return undefined;
  }

  /** Any of them, and then the others: no viewer belongs to a gateway. */
  function balance(key: string): number[] {
    const salt = [...key].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) | 0;
    const random = routes.get(key) ?? createDraws(seed, salt);
    routes.set(key, random);
    const first = random.between(0, gateways.count - 1);
    return upstreams.map((_, i) => gateways.portOf((first + i) % gateways.count));
  }

  function onSource(said: SourceReport): void {
    if (said.type === 'unhandled') report.unhandled.push(said.what);
    if (!('turn' in said)) return;
    const turn = turns.get(said.turn);
    if (!turn) return;
    if (said.type === 'prompted') {
      turn.prompts++;
      turn.tell('the agent was asked');
      turn.advance(0);
    } else if (said.type === 'progress') turn.advance(said.done);
    else if (said.type === 'asked') void answer(turn, said.questionId);
    else if (said.type === 'answered') {
      turn.answer = said.answer;
      turn.tell(`the agent was answered: ${String(said.answer)}`);
    } else if (said.type === 'said') {
      turn.isSaid = true;
      turn.saidAt = Date.now();
      turn.isAborted = said.isAborted;
      turn.tell(said.isAborted ? 'the agent was stopped' : 'the agent has said all');
      turn.advance(2);
    }
  }

  async function answer(turn: ChaosTurn, questionId: string): Promise<void> {
    turn.tell('the agent asks');
    await pause(turn.plan.answer.afterMs, ending.signal);
    add(report.faults, 'answer');
    await answerTurn(verbs, turn, questionId);
  }

  function onGateway(said: GatewayReport, index: number): void {
    if (said.type === 'unhandled') {
      report.unhandled.push(`gateway ${index}: ${said.what}`);
      for (const turn of running) turn.tell(`gateway ${index}: ${said.what.split('\n')[0]}`);
    } else if (said.type === 'log') {
      const { level, text, turnId } = said;
      for (const turn of running) {
        const isOurs = turnId !== undefined && turn.turnIds.has(turnId);
        const isEverybodys = turnId === undefined && level !== 'info';
        if (isOurs || isEverybodys) turn.tell(`gateway ${index}: ${text}`);
      }
    } else if (said.type === 'finish') {
      const turn = turns.get(Number(said.sessionId.replace('session-', '')));
      turn?.tell(`gateway ${index}: onFinish ${JSON.stringify(said.outcome)}`);
      turn?.finishes.push({ ...said, gateway: index } as unknown as Finish);
    }
  }

  async function runTurn(number: number): Promise<void> {
    const turn = createTurn(planTurn(seed, number, weights));
    const { plan } = turn;
    turns.set(number, turn);
    running.add(turn);
    const watch = setInterval(() => {
      const now = Date.now();
      if (now > turn.lastFaultAt + QUIET_MS || now > turn.startedAt + LONGEST_MS) turn.hang();
    }, 500);
    for (const fault of plan.faults) void schedule(fault, turn);
    const watching = plan.viewers.map((viewer, index) =>
      watchTurn({
        name: viewerName(turn, index),
        plan: viewer,
        url: viewers.url,
        sessionId: turn.sessionId,
        chatId: turn.chatId,
        signal: turn.hung,
        ...(index === 0 && { message: userMessage(turn) }),
        until: turn.until,
        isSaid: () => turn.isSaid,
        tell: turn.tell,
        onTurnId: (turnId) => turn.turnIds.add(turnId),
      }),
    );
    // It may have been stopped before the agent was asked: then nothing more will be said.
    void watching[0]?.then(
      () => turn.advance(2),
      () => undefined,
    );
    const results = await Promise.allSettled(watching);
    clearInterval(watch);
    const seen = results.flatMap((one): Seen[] => (one.status === 'fulfilled' ? [one.value] : []));
    for (const one of results) {
      if (one.status === 'rejected') turn.wrongs.push((one.reason as Error).message);
    }
    turn.end();
    // Nobody wants to know any more.
    if (options.signal?.aborted) return;
    for (let i = 0; i < LAST_WORDS_MS / 50 && turn.finishes.length === 0; i++) {
      await pause(50, ending.signal);
    }
    const failure = await judge(turn, seen, report, where);
    running.delete(turn);
    for (const [index] of plan.viewers.entries()) {
      viewers.forget(viewerName(turn, index));
      routes.delete(viewerName(turn, index));
    }
    if (failure && !options.signal?.aborted) note(turn, failure);
    options.onProgress?.(report);
  }

  /** What may be lost is counted. */
  function note(turn: ChaosTurn, failure: Failure): void {
    const isLoss = report.isLossy && turn.faults.some((one) => /^Redis/.test(one));
    (isLoss ? report.losses : report.failures).push(failure);
    if (!isLoss) options.onFailure?.(failure);
  }

  async function schedule(fault: PlannedFault, turn: ChaosTurn): Promise<void> {
    if (fault.kind === 'answer') return;
    if (fault.kind === 'cut-request') {
      faults.cutRequest(fault, turn);
      return;
    }
    await turn.until(fault.at < 0 ? -1 : fault.at);
    if (turn.isOver) return;
    if (fault.kind !== 'stop') faults.start(fault, turn);
    else {
      await pause(fault.afterMs, ending.signal);
      if (turn.isOver) return;
      add(report.faults, 'stop');
      turn.hit('somebody stops it');
      await stopTurn(verbs, turn);
    }
  }

  let next = options.only ?? 0;
  const isDone = () =>
    options.signal?.aborted ||
    (options.only === undefined
      ? faultCount(report) >= options.faults || Date.now() - startedAt > options.minutes * 60_000
      : next > options.only);

  async function keepRunning(): Promise<void> {
    while (!isDone()) await runTurn(next++);
  }

  // The clients run in this process.
  const onUnhandled = (error: unknown) => {
    report.unhandled.push(`the viewers' process: ${(error as Error)?.stack ?? String(error)}`);
  };
  const onAbort = () => {
    ending.abort();
    for (const turn of running) turn.hang();
  };
  process.on('unhandledRejection', onUnhandled);
  options.signal?.addEventListener('abort', onAbort);
  try {
    const lanes = options.only === undefined ? options.atOnce : 1;
    await Promise.all(Array.from({ length: lanes }, keepRunning));
    // A gateway that wakes up late must not store anything again.
    if (!options.signal?.aborted) {
      await faults.settle();
      await pause(LEASE_MS, ending.signal);
    }
    for (const turn of turns.values()) {
      const ids = new Set(turn.finishes.map(({ turnId }) => turnId));
      if (turn.finishes.length === ids.size || turn.isTwiceKnown) continue;
      if (report.isLossy) {
        report.toldAgain++;
        continue;
      }
      const reasons = [`onFinish ran ${turn.finishes.length} times`];
      note(turn, { turn: turn.plan.turn, reasons, story: turn.story });
    }
  } finally {
    process.off('unhandledRejection', onUnhandled);
    options.signal?.removeEventListener('abort', onAbort);
    ending.abort();
    await gateways.stop();
    await faults.settle();
    await gateways.stop();
    await Promise.all([viewers, ...upstreams].map((proxy) => proxy.close()));
    await source.stop();
    await redis?.stop();
    process.off('exit', killRedis);
  }
  report.durationMs = Date.now() - startedAt;
  return report;
}

function userMessage({ prompt, plan }: ChaosTurn) {
  return {
    id: `user-${plan.turn}`,
    role: 'user' as const,
    parts: [{ type: 'text' as const, text: prompt }],
  };
}
