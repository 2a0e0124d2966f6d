/** How long a delta takes from the one instance to the other, at a pace as of real models. */
import { setTimeout } from 'node:timers/promises';
import { atMost, interleaveAsync, median, type Report, ratio } from '../report.ts';
import { openPeer, openSabir, type Side, type Turn } from './sides.ts';

/** Many and short ones, half a second each: what else the machine does comes in longer bursts. */
const ROUNDS = 20;
const TURNS = 100;
const EVERY_MS = 20;
/** Of each turn in each round; the first ones are not counted. */
const DELTAS = 25;
const WARMUP = 5;

type Latency = { p50: number; p99: number };

/** A turn, when each of its deltas was said, and how long each took. One clock: one process. */
type Timed = { turn: Turn; saidAt: number[]; times: number[] };

function openTurns(side: Side): Promise<Timed[]> {
  return Promise.all(
    Array.from({ length: TURNS }, async () => {
      const saidAt: number[] = [];
      const times: number[] = [];
      const turn = await side.open(() => {
        times.push(performance.now() - (saidAt[times.length] ?? Number.NaN));
      });
      return { turn, saidAt, times };
    }),
  );
}

/** Milliseconds from the saying to the reading, over all turns together. */
async function latency(side: Side, turns: Timed[]): Promise<Latency> {
  const units = [side.unitOf('word ')];
  const before = turns[0]?.saidAt.length ?? 0;
  const after = before + DELTAS;
  const start = performance.now();
  // Each turn has a moment of its own in every 20 ms.
  const dueAt = (turn: number, delta: number) =>
    start + (delta - before) * EVERY_MS + (turn * EVERY_MS) / TURNS;
  for (let left = TURNS * DELTAS; left > 0; ) {
    await setTimeout(1);
    const now = performance.now();
    for (const [at, { turn, saidAt }] of turns.entries()) {
      while (saidAt.length < after && dueAt(at, saidAt.length) <= now) {
        saidAt.push(performance.now());
        turn.say(units);
        left--;
      }
    }
  }
  while (turns.some(({ times }) => times.length < after)) await setTimeout(1);
  const times = turns.flatMap((turn) => turn.times.slice(before + WARMUP)).sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

export async function measurePaced(url: string): Promise<Pick<Report, 'bars' | 'figures'>> {
  const sabir = await openSabir(url);
  const peer = await openPeer(url);
  try {
    const [ours, theirs] = await Promise.all([openTurns(sabir), openTurns(peer)]);
    const found = await interleaveAsync(ROUNDS, {
      sabir: () => latency(sabir, ours),
      peer: () => latency(peer, theirs),
    });
    await Promise.all([...ours, ...theirs].map(({ turn }) => turn.end()));
    const of = (key: keyof Latency) =>
      [found.sabir.map((round) => round[key]), found.peer.map((round) => round[key])] as const;
    const both = (rounds: Latency[]) =>
      `p50 ${median(rounds.map(({ p50 }) => p50)).toFixed(3)}, p99 ${median(rounds.map(({ p99 }) => p99)).toFixed(3)} ms`;
    const name = `paced, ${TURNS} × ${1000 / EVERY_MS}/s`;
    return {
      bars: [
        atMost(`${name}: p50, times the peer`, ratio(...of('p50')), 2),
        atMost(`${name}: p99, times the peer`, ratio(...of('p99')), 2),
      ],
      figures: { [`${name}: sabir`]: both(found.sabir), [`${name}: peer`]: both(found.peer) },
    };
  } finally {
    await Promise.all([sabir.close(), peer.close()]);
  }
}
