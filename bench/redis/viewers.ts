/** Many viewers over three gateways that share their turns: what each costs, and whether all see all. */
import { atMost, type Report, sized } from '../report.ts';
import { ask, memoryOf, resume, type Server, startServer, type Watching } from './processes.ts';

const GATEWAYS = 3;
const VIEWERS = sized(3_000, 60);
const DELTAS = sized(25, 3);
const EVERY_MS = 200;
/** So many come at once. */
const CROWD = sized(100, 30);

const WHOLE = Array.from({ length: DELTAS }, (_, i) => `${i} `).join('');

type Memory = { heap: number; rss: number };

async function memory(gateways: Server[]): Promise<Memory> {
  const all = await Promise.all(gateways.map(memoryOf));
  const sum = (key: 'heapUsed' | 'rss') => all.reduce((total, one) => total + one[key], 0);
  return { heap: sum('heapUsed'), rss: sum('rss') };
}

async function crowd(url: string, turns: number): Promise<Pick<Report, 'bars' | 'figures'>> {
  const gateways = await Promise.all(
    Array.from({ length: GATEWAYS }, () => startServer('gateway-server', url)),
  );
  const at = (index: number) => (gateways[index % GATEWAYS] as Server).port;
  try {
    const chats = Array.from({ length: turns }, (_, i) => `crowd-${turns}-${i}`);
    const begun = chats.map((chat, i) => ask(at(i), chat, `paced-${DELTAS}-${EVERY_MS}`));
    await Promise.all(begun.map((watching) => watching.begun));
    const before = await memory(gateways);
    const viewers: Watching[] = [];
    while (viewers.length < VIEWERS) {
      const from = viewers.length;
      for (let i = from; i < from + CROWD; i++) {
        // Every gateway has viewers of every turn, wherever that is written.
        viewers.push(resume(at(Math.floor(i / turns)), chats[i % turns] as string));
      }
      await Promise.all(viewers.slice(from).map((viewer) => viewer.begun));
    }
    const connected = await memory(gateways);
    const ends = viewers.map((viewer) => viewer.until(WHOLE.length));
    const start = performance.now();
    for (const { child } of gateways) child.send('go');
    const times = (await Promise.all(ends)).toSorted((a, b) => a - b);
    const streamed = await memory(gateways);
    for (const { child } of gateways) child.send('end');
    await Promise.all([...viewers, ...begun].map((viewer) => viewer.ended));
    const isRight = ({ text, deltas }: Watching) => text === WHOLE && deltas === DELTAS;
    const wrong = viewers.filter((viewer) => !isRight(viewer)).length;
    const [first = 0, last = 0] = [times[0], times.at(-1)];
    const perViewer = (now: Memory) =>
      `heap ${((now.heap - before.heap) / VIEWERS / 1024).toFixed(1)} KB, ` +
      `rss ${((now.rss - before.rss) / VIEWERS / 1024).toFixed(1)} KB`;
    const name = `${VIEWERS} viewers, ${turns} turn${turns > 1 ? 's' : ''}`;
    return {
      bars: [atMost(`${name}: without all of it`, wrong, 0)],
      figures: {
        [`${name}: to have all`]:
          `first and last ${(last - first).toFixed(0)} ms apart, the last ` +
          `${(last - start - (DELTAS - 1) * EVERY_MS).toFixed(0)} ms after the last delta was due`,
        [`${name}: each, connected`]: perViewer(connected),
        [`${name}: each, after it`]: perViewer(streamed),
        [`${name}: without them`]: `heap ${(before.heap / 2 ** 20).toFixed(0)} MB, rss ${(before.rss / 2 ** 20).toFixed(0)} MB`,
      },
    };
  } finally {
    for (const { child } of gateways) child.kill();
  }
}

export async function measureViewers(url: string): Promise<Pick<Report, 'bars' | 'figures'>> {
  const found: Pick<Report, 'bars' | 'figures'> = { bars: [], figures: {} };
  for (const turns of sized([1, 30], [2])) {
    const { bars, figures } = await crowd(url, turns);
    found.bars.push(...bars);
    Object.assign(found.figures, figures);
  }
  return found;
}
