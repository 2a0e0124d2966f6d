/**
 * One of the two in a process of its own: what the other leaves behind for the collector is not to
 * be its burden. Each time it is told to, it says its deltas and tells how long they took.
 */
import { setTimeout } from 'node:timers/promises';
import type { Latency } from './paced.ts';
import { openPeer, openSabir, type Turn } from './sides.ts';

const [url = '', who, ...numbers] = process.argv.slice(2);
const [turnCount = 0, everyMs = 0, deltas = 0, warmup = 0] = numbers.map(Number);

/** A turn, when each of its deltas was said, and how long each took. One clock: one process. */
type Timed = { turn: Turn; saidAt: number[]; times: number[] };

const side = await (who === 'sabir' ? openSabir(url) : openPeer(url));
const units = [side.unitOf('word ')];
const turns = await Promise.all(
  Array.from({ length: turnCount }, async (): Promise<Timed> => {
    const saidAt: number[] = [];
    const times: number[] = [];
    const turn = await side.open(() => {
      times.push(performance.now() - (saidAt[times.length] ?? Number.NaN));
    });
    return { turn, saidAt, times };
  }),
);

/** Milliseconds from the saying to the reading, over all turns together. */
async function round(): Promise<Latency> {
  const before = turns[0]?.saidAt.length ?? 0;
  const start = performance.now();
  const total = turnCount * deltas;
  for (let said = 0; said < total; ) {
    await setTimeout(1);
    // Each turn has a moment of its own in every 20 ms.
    const due = Math.min(total, ((performance.now() - start) * turnCount) / everyMs);
    for (; said < due; said++) {
      const { turn, saidAt } = turns[said % turnCount] as Timed;
      saidAt.push(performance.now());
      turn.say(units);
    }
  }
  while (turns.some(({ times }) => times.length < before + deltas)) await setTimeout(1);
  const times = turns.flatMap((turn) => turn.times.slice(before + warmup)).sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

process.on('message', async (told) => {
  if (told === 'round') process.send?.(await round());
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
