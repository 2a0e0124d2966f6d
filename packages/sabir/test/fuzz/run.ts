/**
 * `npm run fuzz [-- --seed 1 --frames 1000000 --requests 2000 --only TARGET --round N]`: malformed
 * frames into everything that reads, and raw bytes into every route. The same seed does the same.
 */
import { parseArgs } from 'node:util';
import type { Row } from './engine.ts';
import { runFuzz } from './run-fuzz.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    frames: { type: 'string', default: '1000000' },
    requests: { type: 'string', default: '2000' },
    only: { type: 'string' },
    round: { type: 'string' },
  },
});

function toCount(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const count = Number(text.replaceAll('_', ''));
  if (Number.isSafeInteger(count) && count >= 0) return count;
  console.error(`--${name} is not a number: ${text}`);
  process.exit(2);
}

const seed = toCount(values.seed, 'seed') ?? Math.floor(Math.random() * 2 ** 32);
const grouped = (count: number) => count.toLocaleString('en');
const cells = (name: string, ...rest: string[]) =>
  console.log(`${name.padEnd(34)}${rest.map((cell) => cell.padStart(12)).join('')}`);

function printRow({ target, frames, refused, out, seconds, failures }: Row): void {
  cells(target, ...[frames, refused, out].map(grouped), seconds.toFixed(1));
  for (const { kind, round, message } of failures) {
    const again = `--seed ${seed} --only '${target}' --round ${round}`;
    console.log(`  ${kind} (${again})\n${message.replace(/^/gm, '    ')}`);
  }
}

console.log(`seed ${seed}`);
cells('target', 'frames', 'refused', 'out', 'seconds');
const { rows, failures } = await runFuzz({
  seed,
  frames: toCount(values.frames, 'frames') ?? 0,
  requests: toCount(values.requests, 'requests') ?? 0,
  only: values.only,
  round: toCount(values.round, 'round'),
  onRow: printRow,
});
const told = new Set(rows.flatMap((row) => row.failures));
for (const failure of failures.filter((one) => !told.has(one))) {
  const { kind, target, round, message } = failure;
  console.log(`${kind} (--seed ${seed} --only '${target}' --round ${round})\n${message}`);
}

const sum = (of: (row: Row) => number) => rows.reduce((total, row) => total + of(row), 0);
const count = (kind: string) => failures.filter((failure) => failure.kind === kind).length;
const isRaw = ({ target }: Row) => target.startsWith('raw ');
const raw = rows.filter(isRaw).reduce((total, row) => total + row.frames, 0);
cells(
  'all',
  ...[sum((row) => row.frames), sum((row) => row.refused), sum((row) => row.out)].map(grouped),
  sum((row) => row.seconds).toFixed(1),
);
console.log(
  `among ${grouped(sum((row) => row.sound))} sound frames; ${grouped(raw)} raw connections`,
);
console.log(
  `${grouped(sum((row) => row.frames) - raw)} frames, ${count('crash')} crashes, ${count('hang')} hangs, ` +
    `${count('invalid')} invalid chunks, seed ${seed}`,
);
if (rows.length === 0) console.error(`There is no target "${values.only}".`);
process.exit(failures.length > 0 || rows.length === 0 ? 1 : 0);
