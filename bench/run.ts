/**
 * `npm run bench -- NAME [--json]`: one benchmark, or all of them. `--smoke` runs them in a small size, and
 * fails only if one of them does not come to its end: its figures mean nothing.
 */
import { setTimeout } from 'node:timers/promises';
import { print, type Report } from './report.ts';

/** How long one benchmark may take with `--smoke`. It should take about three seconds. */
const SMOKE_MS = 45_000;

const BENCHES: Record<string, () => Promise<{ bench(): Report | Promise<Report> }>> = {
  translate: () => import('./translate.ts'),
  'agents-sdk': () => import('./agents-sdk.ts'),
  gateway: () => import('./gateway.ts'),
  session: () => import('./session.ts'),
  size: () => import('./size.ts'),
  client: () => import('./client.ts'),
  redis: () => import('./redis.ts'),
  idle: () => import('./idle.ts'),
  follow: () => import('./follow.ts'),
  viewers: () => import('./viewers.ts'),
};

const args = process.argv.slice(2);
const names = args.filter((arg) => !arg.startsWith('--'));
for (const name of names) {
  if (!Object.hasOwn(BENCHES, name)) {
    console.error(`There is no benchmark "${name}". There is: ${Object.keys(BENCHES).join(', ')}.`);
    process.exit(2);
  }
}
const isSmoke = args.includes('--smoke');
// Before the benchmarks are loaded: their sizes depend on it.
if (isSmoke) process.env.SABIR_BENCH_SMOKE = '1';
let missed = 0;
let crashed = 0;
for (const name of names.length > 0 ? names : Object.keys(BENCHES)) {
  const begin = performance.now();
  const report = await run(name);
  if (isSmoke) console.log(`\n${name}: ${((performance.now() - begin) / 1000).toFixed(1)} s`);
  if (!report) continue;
  missed += report.bars.filter(({ ok }) => !ok).length;
  if (args.includes('--json')) console.log(JSON.stringify(report));
  else print(report);
}
// Some of what is measured keeps sockets or processes open.
process.exit(crashed > 0 || (missed > 0 && !isSmoke) ? 1 : 0);

/** One that hangs has crashed too. */
async function timeLimit(): Promise<never> {
  await setTimeout(SMOKE_MS, undefined, { ref: false });
  throw new Error(`It did not end within ${SMOKE_MS / 1000} s.`);
}

async function run(name: string): Promise<Report | undefined> {
  try {
    const { bench } = (await BENCHES[name]?.()) ?? {};
    return await Promise.race([bench?.(), ...(isSmoke ? [timeLimit()] : [])]);
  } catch (error) {
    if (!isSmoke) throw error;
    crashed++;
    console.error(`\n${name} crashed:`, error);
    return undefined;
  }
}
