/**
 * One of the two in a process of its own, as `paced-side` is. Each time it is told a load, it says all
 * of it as fast as it goes and tells how that went.
 */
import { setImmediate } from 'node:timers/promises';
import { sized } from '../report.ts';
import type { Burst, Load } from './burst.ts';
import { countCommands } from './commands.ts';
import { openPeer, openSabir } from './sides.ts';

/** How long it is measured each time. */
const LEAST_SECONDS = sized(0.5, 0);
/** As many as the gateway takes of a generator before others get their turn. */
const PER_TICK = 128;

const [url = '', who] = process.argv.slice(2);
const commands = await countCommands(url);
const side = await (who === 'sabir' ? openSabir(url) : openPeer(url));

/** As many bursts as it takes: a short one would be measured by what else the machine does. */
async function measure(load: Load): Promise<Burst> {
  const bursts: (Burst & { seconds: number })[] = [];
  const sum = (of: (burst: Burst & { seconds: number }) => number) =>
    bursts.reduce((total, one) => total + of(one), 0);
  do bursts.push(await burst(load));
  while (sum(({ seconds }) => seconds) < LEAST_SECONDS);
  const mean = (key: keyof Burst) => sum((one) => one[key]) / bursts.length;
  const perSecond = (bursts.length * load.turns * load.chunks) / sum(({ seconds }) => seconds);
  return { perSecond, sent: mean('sent'), all: mean('all'), cpu: mean('cpu') };
}

async function burst(load: Load) {
  const units = Array.from({ length: PER_TICK }, (_, i) => side.unitOf(`word${i} `));
  const total = load.turns * load.chunks;
  let got = 0;
  const open = () => side.open(() => got++);
  const turns = await Promise.all(Array.from({ length: load.turns }, open));
  await commands.since();
  const before = side.sent() ?? 0;
  const cpuBefore = process.cpuUsage();
  const begin = performance.now();
  await Promise.all(
    turns.map(async (turn) => {
      for (let said = 0; said < load.chunks; said += PER_TICK) {
        turn.say(said + PER_TICK <= load.chunks ? units : units.slice(0, load.chunks - said));
        await setImmediate();
      }
      await turn.end();
    }),
  );
  const seconds = (performance.now() - begin) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  if (got !== total) throw new Error(`${got} of ${total} chunks came`);
  const { all, listening, scripts } = await commands.since();
  const own = side.sent();
  if (own === undefined && scripts > 0) throw new Error('there are scripts after all');
  const sent = own === undefined ? all : own - before + listening;
  const cpu = (user + system) / total;
  return { seconds, perSecond: total / seconds, sent: sent / total, all: all / total, cpu };
}

process.on('message', async (load: Load) => {
  process.send?.(await measure(load));
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
