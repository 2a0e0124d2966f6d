/** How many chunks a second go through, and how many commands each costs, as fast as it goes. */
import { atLeast, atMost, interleaveAsync, median, type Report, ratio, sized } from '../report.ts';
import { startSide } from './processes.ts';

const ROUNDS = 5;
const WARMUPS = 1;
/** How many turns at once, and how many chunks each of them has. */
const LOADS = sized(
  [
    { turns: 1, chunks: 10_000 },
    { turns: 10, chunks: 4_000 },
    { turns: 100, chunks: 4_000 },
  ],
  [{ turns: 2, chunks: 100 }],
);

export type Burst = {
  perSecond: number;
  /** Commands for a chunk: those that clients send, and with those inside of scripts. */
  sent: number;
  all: number;
  /** What this process, which has both ends, worked for a chunk, in microseconds. */
  cpu: number;
};

export type Load = { turns: number; chunks: number };

export async function measureBurst(url: string): Promise<Pick<Report, 'bars' | 'figures'>> {
  const [sabir, peer] = await Promise.all([
    startSide<Load, Burst>('burst-side', url, 'sabir'),
    startSide<Load, Burst>('burst-side', url, 'peer'),
  ]);
  const bars: Report['bars'] = [];
  const figures: Report['figures'] = {};
  try {
    for (const load of LOADS) {
      const found = await interleaveAsync(
        ROUNDS,
        {
          sabir: () => sabir.round(load),
          peer: () => peer.round(load),
        },
        WARMUPS,
      );
      const of = (key: keyof Burst) =>
        [found.sabir.map((round) => round[key]), found.peer.map((round) => round[key])] as const;
      const name = `burst, ${load.turns} × ${load.chunks}`;
      bars.push(
        atLeast(`${name}: chunks/s, times the peer`, ratio(...of('perSecond')), 50),
        atMost(`${name}: of its commands, sent`, ratio(...of('sent')), 0.05),
        atMost(`${name}: of its commands, all`, ratio(...of('all')), 0.05),
      );
      for (const [who, rounds] of Object.entries(found)) {
        const middle = (key: keyof Burst) => median(rounds.map((round) => round[key]));
        figures[`${name}: ${who}`] =
          `${(middle('perSecond') / 1000).toFixed(1)} k chunks/s, ${middle('cpu').toFixed(2)} µs of work a chunk; ` +
          `commands a chunk: sent ${middle('sent').toFixed(4)}, with those in scripts ${middle('all').toFixed(4)}`;
      }
    }
  } finally {
    sabir.stop();
    peer.stop();
  }
  return { bars, figures };
}
