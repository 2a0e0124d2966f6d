/**
 * `npm run chaos`: real gateways, a real Redis, a real session server and real clients, and at random
 * moments something is killed, suspended, cut or held up. Exits with 1 if anything was lost or doubled.
 */
import { parseArgs } from 'node:util';
import { faultCount, toStory, toText, verdictOf } from '../packages/sabir/test/chaos/report.ts';
import { type ChaosOptions, runChaos } from '../packages/sabir/test/chaos/run.ts';
import { hasRedis } from '../packages/sabir/test/redis-server.ts';
import { installServers } from './install-servers.ts';

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    minutes: { type: 'string', default: '60' },
    'at-once': { type: 'string', default: '24' },
    log: { type: 'string', default: 'redis' },
    client: { type: 'string', default: 'redis' },
    appendfsync: { type: 'string', default: 'always' },
    /** Kinds of fault to leave out, with commas between them. */
    without: { type: 'string', default: '' },
    /** Only the turn of this number, as it was planned. */
    only: { type: 'string' },
  },
});

if (values.log === 'redis' && !hasRedis) installServers();
console.log(`Seed ${values.seed}`);
// Whatever was started is stopped.
const ending = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => ending.abort());
}
let toldAt = Date.now();
const report = await runChaos({
  faults: Number(values.faults),
  seed: Number(values.seed),
  minutes: Number(values.minutes),
  atOnce: Number(values['at-once']),
  log: values.log as ChaosOptions['log'],
  client: values.client as ChaosOptions['client'],
  appendfsync: values.appendfsync as ChaosOptions['appendfsync'],
  without: values.without.split(',').filter(Boolean),
  ...(values.only !== undefined && { only: Number(values.only) }),
  signal: ending.signal,
  onFailure: (failure) => console.log(toStory(failure).join('\n')),
  onProgress(soFar) {
    if (Date.now() - toldAt < 10_000) return;
    toldAt = Date.now();
    const { turns, failures, identical, unstopped } = soFar;
    console.log(
      `${faultCount(soFar)} faults, ${turns} turns, ${identical} of ${unstopped} identical, ` +
        `${failures.length} failed`,
    );
  },
});
console.log(toText(report));
process.exit(verdictOf(report).length > 0 ? 1 : 0);
