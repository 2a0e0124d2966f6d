/** The thread that plays, so that another can see whether it still does. */
import { parentPort, workerData } from 'node:worker_threads';
import { type FuzzOptions, playTargets, type Replay, type Row, replayRounds } from './engine.ts';
import type { Target } from './target.ts';

const { options, beat, targets } = workerData as {
  options: FuzzOptions & { replays?: readonly Replay[] };
  /** Which target, which round, and how many of them there have been. */
  beat: Int32Array;
  /** The module that has them. */
  targets: string;
};
const { TARGETS } = (await import(targets)) as { TARGETS: Target[] };

parentPort?.postMessage({ names: TARGETS.map(({ name }) => name) });
const on = {
  round(target: number, round: number) {
    beat[0] = target;
    beat[1] = round;
    Atomics.add(beat, 2, 1);
  },
  row: (row: Row) => parentPort?.postMessage({ row }),
};
if (options.replays) await replayRounds(TARGETS, options.replays, on);
else await playTargets(TARGETS, options, on);
// What a target has left running is not waited for.
process.exit(0);
