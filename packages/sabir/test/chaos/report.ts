/** What came of a run, and how it is told. */
import type { FaultKind, ViewerKind } from './plan.ts';
import type { ChaosTurn } from './turn.ts';
import type { Seen } from './viewer.ts';

export type Failure = { turn: number; reasons: string[]; story: string[] };

export type ChaosReport = {
  seed: number;
  durationMs: number;
  turns: number;
  /** Turns whose log at the gateways was compared with the session's own. */
  replicas: number;
  /** How turns ended: `finished`, `stopped`, `failed: code`, `lost: what had happened`. */
  outcomes: Map<string, number>;
  /** Turns that nobody stopped, and of those the ones that every viewer has as it was said. */
  unstopped: number;
  identical: number;
  faults: Map<FaultKind, number>;
  viewers: Map<string, number>;
  /** How often a client gave up, or broke off as a stock one must, and its page was loaded again. */
  reloads: Map<ViewerKind, number>;
  /** `onFinish` once, or not at all since its process was killed. */
  finishes: { once: number; never: number };
  /** What nobody caught, in any process. */
  unhandled: string[];
  failures: Failure[];
  /** Redis may lose what it has said yes to, as with `everysec`: what it lost is counted. */
  isLossy: boolean;
  /** Turns that such a Redis was killed under and that were not whole afterwards. */
  losses: Failure[];
  /** Turns whose end it lost: somebody else ended them again, and `onFinish` ran again. */
  toldAgain: number;
};

/**
 * What a turn may be lost by, in the words of `causesOf`. Nothing: the session server can be attached
 * to again, and Redis keeps what it has said yes to.
 */
export const LISTED_CAUSES: ReadonlySet<string> = new Set([]);

const BAR = 0.99;

export function createReport(seed: number, isLossy: boolean): ChaosReport {
  return {
    seed,
    durationMs: 0,
    turns: 0,
    replicas: 0,
    unstopped: 0,
    identical: 0,
    outcomes: new Map(),
    faults: new Map(),
    viewers: new Map(),
    reloads: new Map(),
    finishes: { once: 0, never: 0 },
    unhandled: [],
    failures: [],
    isLossy,
    losses: [],
    toldAgain: 0,
  };
}

export function add<Key>(counts: Map<Key, number>, key: Key, count = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

export function countViewers(report: ChaosReport, seen: Seen[]): void {
  for (const { kind, from, reloads } of seen) {
    add(report.viewers, `${kind}, ${from}`);
    add(report.reloads, kind, reloads);
  }
}

/** The kinds of fault that a turn has felt, each once. */
export function causesOf({ faults }: ChaosTurn): string {
  const kinds = faults.map((fault) => {
    if (/is killed/.test(fault))
      return fault.startsWith('Redis') ? 'Redis killed' : 'gateway killed';
    if (/sleeps/.test(fault)) return 'gateway suspended';
    if (/agent/.test(fault)) return 'upstream cut or held up';
    return 'viewer cut or held up';
  });
  return [...new Set(kinds)].sort().join(' + ') || 'nothing';
}

export function faultCount({ faults }: ChaosReport): number {
  return [...faults.values()].reduce((sum, count) => sum + count, 0);
}

/** Why the run failed; empty if it did not. */
export function verdictOf(report: ChaosReport): string[] {
  const { failures, unhandled, unstopped, identical, isLossy } = report;
  const reasons: string[] = [];
  if (failures.length > 0) reasons.push(`${failures.length} turns failed`);
  if (unhandled.length > 0) reasons.push(`${unhandled.length} errors that nobody caught`);
  if (!isLossy && identical < BAR * unstopped) {
    reasons.push(`${identical} of ${unstopped} turns finished identical: less than ${BAR * 100} %`);
  }
  if (unstopped === 0) reasons.push('no turn ran');
  if (!isLossy && report.replicas < identical) {
    reasons.push(`only ${report.replicas} logs could be compared with the session's`);
  }
  return reasons;
}

/** A turn may be among several. */
function lossesByKind({ losses }: ChaosReport): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { reasons } of losses) {
    for (const kind of new Set(reasons.map(lossOf))) add(counts, kind);
  }
  return counts;
}

function lossOf(reason: string): string {
  if (/log could not be read/.test(reason)) return 'the log has no end of it, or nothing at all';
  // Its viewers are told that there is nothing, and ask again and again.
  if (/left hanging/.test(reason)) return 'it is gone, and its agent waits for an answer';
  if (/agent was asked|turns$/.test(reason)) return 'the prompt was answered again';
  if (/onFinish/.test(reason)) return reason.replace(/\d+ times/, 'again');
  if (/ differ: /.test(reason)) return 'viewers have different things';
  return /^\d+\.\d+: /.test(reason) ? 'a viewer has less than was said' : reason;
}

const STORY_LINES = 80;

const toLines = (counts: Map<string, number>) =>
  [...counts]
    .sort(([, one], [, other]) => other - one)
    .map(([name, count]) => `  ${String(count).padStart(6)}  ${name}`);

/** Message content is in it only where a turn failed. */
export function toText(report: ChaosReport): string {
  const { seed, durationMs, turns, unstopped, identical, finishes } = report;
  const share = unstopped > 0 ? ((100 * identical) / unstopped).toFixed(2) : '0';
  const reasons = verdictOf(report);
  return [
    ...report.unhandled.map((what) => `Nobody caught: ${what}`),
    `Seed ${seed}: ${faultCount(report)} faults, ${turns} turns, ${Math.round(durationMs / 1000)} s`,
    'Faults:',
    ...toLines(report.faults),
    'Outcomes:',
    ...toLines(report.outcomes),
    'Viewers, and where they have the answer from:',
    ...toLines(report.viewers),
    'Pages loaded again:',
    ...toLines(report.reloads),
    `onFinish: once for ${finishes.once} turns; never for ${finishes.never}, whose gateway was killed`,
    `Logs of gateways compared with the session's, chunk for chunk: ${report.replicas}`,
    `Not stopped by anybody: ${unstopped}; finished identical: ${identical} (${share} %)`,
    ...(report.isLossy
      ? [
          `Not whole after Redis was killed: ${report.losses.length} turns`,
          ...toLines(lossesByKind(report)),
          `Ended again, since Redis had lost their end: ${report.toldAgain} turns`,
        ]
      : []),
    reasons.length > 0 ? `FAILED: ${reasons.join('; ')} (seed ${seed})` : 'PASSED',
  ].join('\n');
}

/** The beginning and the end of it: what comes in between is the same again and again. */
export function toStory({ turn, reasons, story }: Failure): string[] {
  const left = story.length - 2 * STORY_LINES;
  const lines =
    left > 0
      ? [...story.slice(0, STORY_LINES), `… ${left} lines …`, ...story.slice(-STORY_LINES)]
      : story;
  return [
    `Turn ${turn}:`,
    ...reasons.map((why) => `  !!! ${why}`),
    ...lines.map((at) => `  ${at}`),
  ];
}
