/** How long a delta takes from the one instance to the other, at a pace as of real models. */
import { atMost, interleaveAsync, median, type Report, ratio, sized } from '../report.ts';
import { startSide } from './processes.ts';

/** Many and short ones, half a second each: what else the machine does comes in longer bursts. */
const ROUNDS = 20;
const TURNS = sized(100, 10);
const EVERY_MS = 20;
/** Of each turn in each round; the first ones are not counted. */
const DELTAS = 25;
const WARMUP = 5;

/** In milliseconds. */
export type Latency = { p50: number; p99: number };

export async function measurePaced(url: string): Promise<Pick<Report, 'bars' | 'figures'>> {
  const numbers = [TURNS, EVERY_MS, DELTAS, WARMUP].map(String);
  const [sabir, peer] = await Promise.all([
    startSide<string, Latency>('paced-side', url, 'sabir', ...numbers),
    startSide<string, Latency>('paced-side', url, 'peer', ...numbers),
  ]);
  try {
    const found = await interleaveAsync(ROUNDS, {
      sabir: () => sabir.round('round'),
      peer: () => peer.round('round'),
    });
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
    sabir.stop();
    peer.stop();
  }
}
