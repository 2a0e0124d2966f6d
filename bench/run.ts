/** `npm run bench -- NAME [--json]`: one benchmark, or all of them. */
import { print, type Report } from './report.ts';

const BENCHES: Record<string, () => Promise<{ bench(): Report | Promise<Report> }>> = {
  translate: () => import('./translate.ts'),
  'agents-sdk': () => import('./agents-sdk.ts'),
  gateway: () => import('./gateway.ts'),
  session: () => import('./session.ts'),
  size: () => import('./size.ts'),
  client: () => import('./client.ts'),
  redis: () => import('./redis.ts'),
  idle: () => import('./idle.ts'),
};

const args = process.argv.slice(2);
const names = args.filter((arg) => !arg.startsWith('--'));
for (const name of names) {
  if (!Object.hasOwn(BENCHES, name)) {
    console.error(`There is no benchmark "${name}". There is: ${Object.keys(BENCHES).join(', ')}.`);
    process.exit(2);
  }
}
let missed = 0;
for (const name of names.length > 0 ? names : Object.keys(BENCHES)) {
  const { bench } = (await BENCHES[name]?.()) ?? {};
  const report = await bench?.();
  if (!report) continue;
  missed += report.bars.filter(({ ok }) => !ok).length;
  if (args.includes('--json')) console.log(JSON.stringify(report));
  else print(report);
}
process.exitCode = missed > 0 ? 1 : 0;
