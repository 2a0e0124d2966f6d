/**
 * What happens to each turn, decided by the seed alone: which script, who watches, and which fault
 * comes when. "When" is told by how far the agent has come, so that it means the same on a machine
 * that is slower.
 */
import type { Cut } from './faulty-proxy.ts';
import { createDraws, type Random } from './random.ts';
import { scriptOf } from './script.ts';

const VIEWER_KINDS = ['stock', 'sabir', 'contract'] as const;
export type ViewerKind = (typeof VIEWER_KINDS)[number];

export type PlannedViewer = {
  kind: ViewerKind;
  /** How far the agent is when it comes; whoever sends comes first. */
  joinAt: number;
  /** Leaves by itself at that point, and comes back after a while. */
  leave?: { at: number; awayMs: number };
};

export type FaultKind =
  | 'kill-gateway'
  | 'kill-redis'
  | 'suspend-gateway'
  | 'cut-viewer'
  | 'cut-request'
  | 'cut-upstream'
  | 'delay-viewer'
  | 'delay-upstream'
  | 'stop'
  | 'answer';

export type PlannedFault = {
  kind: FaultKind;
  /** From 0 to 1: how far the agent is. Less: as the message is sent. More: just after the end. */
  at: number;
  /** And so long after that. */
  afterMs: number;
  /** Which of the viewers, where it is one's. */
  viewer: number;
  /** The gateway that holds the turn, or any. */
  isOwner: boolean;
  /** Any number: which of those that can be chosen. */
  choice: number;
  cut: Cut;
  /** How long it lasts, from 0 to 1 of what there may be. */
  length: number;
};

export type TurnPlan = {
  turn: number;
  scriptSeed: number;
  /** The first one sends. */
  viewers: PlannedViewer[];
  faults: PlannedFault[];
  /** Where the agent asks: who answers, how soon, and whether two do at once. */
  answer: { viewer: number; afterMs: number; isTwice: boolean };
};

type Weights = Record<Exclude<FaultKind, 'answer' | 'cut-request'>, number>;

/** With one gateway that keeps turns in its memory, only what it can survive. */
export const WEIGHTS: Record<'redis' | 'memory', Weights> = {
  redis: {
    'kill-gateway': 8,
    'kill-redis': 3,
    'suspend-gateway': 4,
    stop: 4,
    'cut-viewer': 46,
    'cut-upstream': 15,
    'delay-viewer': 12,
    'delay-upstream': 8,
  },
  memory: {
    'kill-gateway': 0,
    'kill-redis': 0,
    'suspend-gateway': 2,
    stop: 5,
    'cut-viewer': 50,
    'cut-upstream': 20,
    'delay-viewer': 13,
    'delay-upstream': 10,
  },
};

export function planTurn(seed: number, turn: number, weights: Weights): TurnPlan {
  const random = createDraws(seed, turn);
  const scriptSeed = random.between(1, 2 ** 31 - 1);
  const viewers = planViewers(random);
  const faults: PlannedFault[] = [];
  const plan = (kind: FaultKind, at: number) => {
    faults.push({
      kind,
      at,
      afterMs: random.between(0, 30),
      viewer: random.between(0, viewers.length - 1),
      isOwner: random.is(0.7),
      choice: random.between(0, 1_000_000),
      cut: {
        how: random.pick(['reset', 'close']),
        // Often within the next frame.
        afterBytes: random.is(0.5) ? random.between(1, 60) : random.between(1, 1_500),
      },
      length: random.next(),
    });
  };
  const count = random.between(1, 5);
  // A turn is stopped once, if it is.
  let canStop = true;
  for (let i = 0; i < count; i++) {
    const kind = random.weighted({ ...weights, stop: canStop ? weights.stop : 0 });
    if (kind === 'stop') canStop = false;
    const at = random.next() * 1.1 - 0.05;
    // What is stopped before the agent was asked is nowhere, and nothing can be compared.
    plan(kind, kind === 'stop' ? Math.max(0, at) : at);
  }
  if (random.is(0.1)) plan('cut-request', -1);
  if (scriptOf(scriptSeed).steps.some((step) => step.kind === 'ask')) plan('answer', 2);
  faults.sort((one, other) => one.at - other.at);
  const answer = {
    viewer: random.between(0, viewers.length - 1),
    afterMs: random.between(0, 400),
    isTwice: random.is(0.3),
  };
  return { turn, scriptSeed, viewers, faults, answer };
}

/** One of each kind, in any order, and at times one more. */
function planViewers(random: Random): PlannedViewer[] {
  const kinds: ViewerKind[] = [...VIEWER_KINDS];
  if (random.is(0.3)) kinds.push(random.pick(VIEWER_KINDS));
  for (let i = kinds.length - 1; i > 0; i--) {
    const j = random.between(0, i);
    [kinds[i], kinds[j]] = [kinds[j] as ViewerKind, kinds[i] as ViewerKind];
  }
  return kinds.map((kind, index): PlannedViewer => {
    const joinAt = index === 0 ? 0 : random.next() * 0.8;
    if (!random.is(0.25)) return { kind, joinAt };
    const at = joinAt + random.next() * (1 - joinAt);
    return { kind, joinAt, leave: { at, awayMs: random.between(50, 800) } };
  });
}
