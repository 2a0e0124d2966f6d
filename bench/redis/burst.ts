/** How many chunks a second go through, and how many commands each costs, as fast as it goes. */
import { setImmediate } from 'node:timers/promises';
import { atLeast, atMost, interleaveAsync, median, type Report, ratio } from '../report.ts';
import { type Commands, countCommands } from './commands.ts';
import { openPeer, openSabir, type Side } from './sides.ts';

const ROUNDS = 5;
const WARMUPS = 1;
/** How long each is measured in a round. */
const LEAST_SECONDS = 0.5;
/** As many as the gateway takes of a generator before others get their turn. */
const PER_TICK = 128;
/** How many turns at once, and how many chunks each of them has. */
const LOADS = [
  { turns: 1, chunks: 10_000 },
  { turns: 10, chunks: 4_000 },
  { turns: 100, chunks: 4_000 },
];

type Burst = {
  perSecond: number;
  /** Commands for a chunk: those that clients send, and with those inside of scripts. */
  sent: number;
  all: number;
  /** What this process, which has both ends, worked for a chunk, in microseconds. */
  cpu: number;
};

type Load = { turns: number; chunks: number };

/** As many bursts as it takes: a short one would be measured by what else the machine does. */
async function measure(side: Side, commands: Commands, load: Load): Promise<Burst> {
  const bursts: (Burst & { seconds: number })[] = [];
  const sum = (of: (burst: Burst & { seconds: number }) => number) =>
    bursts.reduce((total, one) => total + of(one), 0);
  do bursts.push(await burst(side, commands, load));
  while (sum(({ seconds }) => seconds) < LEAST_SECONDS);
  const mean = (key: keyof Burst) => sum((one) => one[key]) / bursts.length;
  const perSecond = (bursts.length * load.turns * load.chunks) / sum(({ seconds }) => seconds);
  return { perSecond, sent: mean('sent'), all: mean('all'), cpu: mean('cpu') };
}

async function burst(side: Side, commands: Commands, load: Load) {
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

export async function measureBurst(url: string): Promise<Pick<Report, 'bars' | 'figures'>> {
  const commands = await countCommands(url);
  const sabir = await openSabir(url);
  const peer = await openPeer(url);
  const bars: Report['bars'] = [];
  const figures: Report['figures'] = {};
  try {
    for (const load of LOADS) {
      const found = await interleaveAsync(
        ROUNDS,
        {
          sabir: () => measure(sabir, commands, load),
          peer: () => measure(peer, commands, load),
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
    await Promise.all([sabir.close(), peer.close()]);
    commands.close();
  }
  return { bars, figures };
}
