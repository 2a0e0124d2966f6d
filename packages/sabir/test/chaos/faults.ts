/** Makes what was planned happen. */
import type { RedisServer } from '../redis-server.ts';
import type { FaultyProxy } from './faulty-proxy.ts';
import type { FaultKind, PlannedFault } from './plan.ts';
import type { Gateways } from './processes.ts';
import type { ChaosTurn } from './turn.ts';
import { pause } from './viewer.ts';

export type FaultsOptions = {
  gateways: Gateways;
  redis: RedisServer | undefined;
  /** How much of what Redis has written is lost with it, as when the power fails. */
  lostMs: number;
  leaseMs: number;
  viewers: FaultyProxy;
  /** One for each gateway. */
  upstreams: FaultyProxy[];
  /** The turns that are under way. */
  running: ReadonlySet<ChaosTurn>;
  count(kind: FaultKind): void;
  /** The run is over. */
  signal: AbortSignal;
};

const POLL_MS = 25;
/** The least and the most of what may last. */
const DOWN_MS = [50, 1_500] as const;
const HOLD_MS = [50, 500] as const;
const PAST_LEASE_MS = [100, 1_500] as const;

const within = ([least, most]: readonly [number, number], share: number) =>
  Math.round(least + share * (most - least));

export const viewerName = (turn: ChaosTurn, index: number) => `${turn.plan.turn}.${index}`;

export function createFaults(options: FaultsOptions) {
  const { gateways, redis, lostMs, leaseMs, viewers, upstreams, running, count, signal } = options;
  const underWay = new Set<Promise<void>>();
  let isRedisDown = false;

  /** Of everybody's: whoever runs may feel it. */
  function hitAll(kind: FaultKind, what: string): void {
    count(kind);
    for (const turn of running) turn.hit(what);
  }

  /** One of those that are up, while another one is as well. */
  async function chooseGateway(fault: PlannedFault, turn: ChaosTurn): Promise<number | undefined> {
    while (!signal.aborted) {
      const { healthy } = gateways;
      const owner = upstreams.findIndex((proxy) => proxy.countOf(turn.sessionId) > 0);
      if (gateways.count === 1 || healthy.length > 1) {
        if (fault.isOwner && healthy.includes(owner)) return owner;
        return healthy[fault.choice % healthy.length];
      }
      await pause(POLL_MS, signal);
    }
    return undefined;
  }

  async function killGateway(fault: PlannedFault, turn: ChaosTurn): Promise<void> {
    const index = await chooseGateway(fault, turn);
    if (index === undefined) return;
    const downMs = within(DOWN_MS, fault.length);
    hitAll('kill-gateway', `gateway ${index} is killed, for ${downMs} ms (turn ${turn.plan.turn})`);
    await gateways.kill(index);
    await pause(downMs, signal);
    // One that is killed while it starts does not come back.
    await gateways.restart(index).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    for (const one of running) one.tell(`    gateway ${index} is back`);
  }

  async function suspendGateway(fault: PlannedFault, turn: ChaosTurn): Promise<void> {
    const index = await chooseGateway(fault, turn);
    if (index === undefined) return;
    const ms = leaseMs + within(PAST_LEASE_MS, fault.length);
    hitAll('suspend-gateway', `gateway ${index} sleeps for ${ms} ms (turn ${turn.plan.turn})`);
    gateways.suspend(index);
    await pause(ms, signal);
    gateways.resume(index);
    for (const one of running) one.tell(`    gateway ${index} is awake`);
  }

  async function killRedis(fault: PlannedFault): Promise<void> {
    while (isRedisDown && !signal.aborted) await pause(POLL_MS, signal);
    if (signal.aborted || !redis) return;
    isRedisDown = true;
    const downMs = within(DOWN_MS, fault.length);
    hitAll('kill-redis', `Redis is killed, for ${downMs} ms`);
    await redis.kill(lostMs);
    await pause(downMs, signal);
    await redis.start();
    isRedisDown = false;
    for (const one of running) one.tell('    Redis is back');
  }

  /** What needs a connection, and found none, was no fault. */
  function onConnections(kind: FaultKind, turn: ChaosTurn, found: number, what: string): void {
    if (found === 0) return;
    count(kind);
    turn.hit(what);
  }

  async function make(fault: PlannedFault, turn: ChaosTurn): Promise<void> {
    const { kind, cut } = fault;
    await pause(fault.afterMs, signal);
    if (turn.isOver || signal.aborted) return;
    const name = viewerName(turn, fault.viewer);
    const place = `${cut.how} after ${cut.afterBytes} bytes`;
    const ms = within(HOLD_MS, fault.length);
    const { sessionId } = turn;
    const sum = (counts: number[]) => counts.reduce((one, other) => one + other, 0);
    switch (kind) {
      case 'kill-gateway':
        return killGateway(fault, turn);
      case 'suspend-gateway':
        return suspendGateway(fault, turn);
      case 'kill-redis':
        return killRedis(fault);
      case 'cut-viewer':
        onConnections(kind, turn, viewers.cut(name, cut), `${name} is cut: ${place}`);
        break;
      case 'delay-viewer':
        onConnections(kind, turn, viewers.hold(name, ms), `${name} is held up for ${ms} ms`);
        break;
      case 'cut-upstream': {
        const found = sum(upstreams.map((proxy) => proxy.cut(sessionId, cut)));
        onConnections(kind, turn, found, `the agent's connection is cut: ${place}`);
        break;
      }
      case 'delay-upstream': {
        const found = sum(upstreams.map((proxy) => proxy.hold(sessionId, ms)));
        onConnections(kind, turn, found, `the agent is held up for ${ms} ms`);
      }
    }
  }

  return {
    /** Settles by itself; `settle` waits for all of them. */
    start(fault: PlannedFault, turn: ChaosTurn): void {
      const done = make(fault, turn).finally(() => underWay.delete(done));
      underWay.add(done);
    },
    /** Before the message is sent: its request breaks off in the middle. */
    cutRequest(fault: PlannedFault, turn: ChaosTurn): void {
      const isRequest = fault.choice % 2 === 0;
      const { cut } = fault;
      viewers.arm(viewerName(turn, 0), { ...cut, isRequest });
      const what = isRequest ? 'request' : 'answer';
      count('cut-request');
      turn.hit(`the first ${what} is cut: ${cut.how} after ${cut.afterBytes} bytes`);
    },
    settle: () => Promise.allSettled(underWay),
  };
}
