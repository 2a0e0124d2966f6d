/** How long a delta takes from the one instance to the other, at a pace as of real models. */
import { once } from 'node:events';
import { atMost, interleaveAsync, median, type Report, ratio } from '../report.ts';
import { startProcess } from './processes.ts';

/** Many and short ones, half a second each: what else the machine does comes in longer bursts. */
const ROUNDS = 20;
const TURNS = 100;
const EVERY_MS = 20;
/** Of each turn in each round; the first ones are not counted. */
const DELTAS = 25;
const WARMUP = 5;

/** In milliseconds. */
export type Latency = { p50: number; p99: number };

async function startSide(url: string, who: string) {
  const numbers = [TURNS, EVERY_MS, DELTAS, WARMUP].map(String);
  const { child } = await startProcess('paced-side', url, who, ...numbers);
  return {
    async round(): Promise<Latency> {
      const answer = once(child, 'message');
      child.send('round');
      return (await answer)[0];
    },
    stop: () => child.kill(),
  };
}

export async function measurePaced(url: string): Promise<Pick<Report, 'bars' | 'figures'>> {
  const [sabir, peer] = await Promise.all([startSide(url, 'sabir'), startSide(url, 'peer')]);
  try {
    const found = await interleaveAsync(ROUNDS, { sabir: sabir.round, peer: peer.round });
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
