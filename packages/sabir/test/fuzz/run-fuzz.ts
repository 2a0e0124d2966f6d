/** Runs the fuzzer in a thread of its own and watches it: a loop without end has to be noticed. */
import { Worker } from 'node:worker_threads';
import type { Failure, FuzzOptions, Replay, Row } from './engine.ts';
import { HANG_MS } from './target.ts';

export type FuzzReport = { rows: Row[]; failures: Failure[] };

export type FuzzRun = FuzzOptions & {
  /** Nothing but these rounds, whatever else is said. */
  replays?: readonly Replay[];
  /** The module with the targets. */
  targets?: URL;
  /** How long a round may take. */
  hangMs?: number;
  onRow?: (row: Row) => void;
};

const TARGETS = new URL('./targets.ts', import.meta.url);
/**
 * What all of it may take in memory: one that keeps everything it is given would need more. And a
 * stack as small as that of a process: workers have four times as much.
 */
const MEMORY = { maxOldGenerationSizeMb: 1_000, stackSizeMb: 1 };

export function runFuzz(run: FuzzRun): Promise<FuzzReport> {
  const { targets = TARGETS, hangMs = HANG_MS + 10_000, onRow, ...options } = run;
  const beat = new Int32Array(new SharedArrayBuffer(12));
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: { options, beat, targets: targets.href },
    resourceLimits: MEMORY,
  });
  const rows: Row[] = [];
  const failures: Failure[] = [];
  let names: string[] = [];
  const note = (kind: Failure['kind'], message: string) => {
    const target = names[beat[0] as number] ?? '(nothing yet)';
    failures.push({ target, round: beat[1] as number, kind, message });
  };

  let lastBeat = -1;
  let lastAt = Date.now();
  const watch = setInterval(() => {
    const now = Atomics.load(beat, 2);
    if (now !== lastBeat) {
      lastBeat = now;
      lastAt = Date.now();
    } else if (Date.now() - lastAt > hangMs) {
      note('hang', `It has not come back for ${hangMs} ms.`);
      void worker.terminate();
      clearInterval(watch);
    }
  }, 100);

  return new Promise((resolve) => {
    worker.on('message', (message: { names?: string[]; row?: Row }) => {
      names = message.names ?? names;
      if (!message.row) return;
      rows.push(message.row);
      failures.push(...message.row.failures);
      onRow?.(message.row);
    });
    worker.on('error', (error) => note('crash', error.stack ?? String(error)));
    worker.on('exit', () => {
      clearInterval(watch);
      resolve({ rows, failures });
    });
  });
}
