/** What an answer costs as it grows: words, tool calls, and the input of one tool. */
import type { Chunk } from 'sabir';
import {
  atLeast,
  atMost,
  type Bar,
  exponent,
  interleaveAsync,
  median,
  ratio,
  sized,
} from '../report.ts';
import { CHATS, type ChatName, type Watched, watch } from './chats.ts';
import { inputTurn, lengthOf, textTurn, toolTurn } from './turns.ts';

const ROUNDS = 5;
/** Of what takes a peer many seconds every time. */
const LONG_ROUNDS = 3;
const TEXT_DELTAS = sized([1_000, 5_000, 20_000, 50_000], [100, 200]);
const INPUT_DELTAS = sized([2_000, 4_000, 8_000], [100, 200]);
const TOOL_CALLS = sized(1_000, 50);
const WARM_DELTAS = sized(5_000, 100);

type Found = { figures: Record<string, string>; bars: Bar[] };

const NAMES = Object.keys(CHATS) as ChatName[];
const LABELS: Record<ChatName, string> = {
  sabir: 'ChatStream',
  ai7: 'Chat 7',
  ai7Throttled: 'Chat 7, 16 ms throttle',
  ai6: 'Chat 6',
};

const times = (runs: Watched[]) => runs.map(({ ms }) => ms);

/** Every chat on the same answer. One that did not get all of it has not won. */
async function compare(
  chunks: Chunk[],
  names: ChatName[],
  isWhole: (last: NonNullable<Watched['last']>) => boolean,
  { as = 'asBytes', isLong = false }: { as?: 'asBytes' | 'asValues'; isLong?: boolean } = {},
): Promise<Record<ChatName, Watched[]>> {
  const candidates = names.map((name) => {
    const open = CHATS[name][as](chunks);
    const run = async () => {
      const watched = await watch(open);
      if (!watched.last || !isWhole(watched.last)) throw new Error(`${name} lost something`);
      return { ...watched, last: undefined };
    };
    return [name, run] as const;
  });
  // What is long was warmed by what was shorter.
  const [rounds, warmups] = isLong ? [LONG_ROUNDS, 0] : [ROUNDS, 1];
  return interleaveAsync(rounds, Object.fromEntries(candidates) as never, warmups);
}

function rows(label: string, runs: Record<ChatName, Watched[]>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(runs).map(([name, watched]) => {
      const ms = median(times(watched)).toFixed(1);
      const shown = median(watched.map(({ notifications }) => notifications));
      const told = `${ms} ms, told ${shown} times, ${watched.length} rounds`;
      return [`${label}: ${LABELS[name as ChatName]}`, told];
    }),
  );
}

function compareText(deltas: number, as: 'asBytes' | 'asValues') {
  const chunks = textTurn(deltas);
  const length = lengthOf(chunks);
  const isLong = deltas === TEXT_DELTAS.at(-1);
  return compare(chunks, NAMES, ({ text }) => text?.length === length, { as, isLong });
}

/**
 * One text, fed one delta after the other, as values: what bytes cost is measured by itself, and
 * would hide how an answer's cost grows.
 */
export async function measureText(): Promise<Found> {
  const figures: Record<string, string> = {};
  const bars: Bar[] = [];
  const grown: Record<ChatName, Array<{ size: number; ms: number }>> = {
    sabir: [],
    ai7: [],
    ai7Throttled: [],
    ai6: [],
  };
  /** How many times as fast as `Chat` 7. */
  const targets: Record<number, number> = { 20000: 20, 50000: 100 };
  // The smallest comes first, and would pay for the compiler: that looks like slow growth.
  await compareText(WARM_DELTAS, 'asValues');
  for (const size of TEXT_DELTAS) {
    const runs = await compareText(size, 'asValues');
    const label = `${size / 1000} k deltas`;
    Object.assign(figures, rows(label, runs));
    for (const name of NAMES) grown[name].push({ size, ms: median(times(runs[name])) });
    const target = targets[size];
    if (!target) continue;
    const ours = times(runs.sabir);
    bars.push(
      atLeast(`${label}: times Chat 7`, ratio(times(runs.ai7), ours), target),
      atLeast(`${label}: times it, throttled`, ratio(times(runs.ai7Throttled), ours), 5),
    );
  }
  figures['growth, exponents'] = NAMES.map(
    (name) => `${LABELS[name]} ${exponent(grown[name]).toFixed(2)}`,
  ).join('; ');
  bars.unshift(atMost('deltas: growth exponent', exponent(grown.sabir), 1.2));
  return { figures, bars };
}

/** The same as bytes, from the request to the end: all that a page pays for, one frame a read. */
export async function measureTextBytes(): Promise<Found> {
  const figures: Record<string, string> = {};
  await compareText(WARM_DELTAS, 'asBytes');
  for (const size of TEXT_DELTAS.slice(-2)) {
    const runs = await compareText(size, 'asBytes');
    const label = `${size / 1000} k deltas as bytes`;
    const times7 = ratio(times(runs.ai7), times(runs.sabir));
    const timesThrottled = ratio(times(runs.ai7Throttled), times(runs.sabir));
    Object.assign(figures, rows(label, runs), {
      [`${label}: in all`]: `${times7.toFixed(1)} times Chat 7, ${timesThrottled.toFixed(1)} times it throttled`,
    });
  }
  return { figures, bars: [] };
}

export async function measureTools(): Promise<Found> {
  const chunks = toolTurn(TOOL_CALLS);
  const runs = await compare(chunks, NAMES, ({ output }) => output !== undefined);
  return {
    figures: rows('1,000 tool calls', runs),
    bars: [atLeast('1,000 tool calls: times Chat 7', ratio(times(runs.ai7), times(runs.sabir)), 5)],
  };
}

export async function measureInput(): Promise<Found> {
  const figures: Record<string, string> = {};
  const grown: Array<{ size: number; ms: number }> = [];
  const run = (size: number, names: ChatName[], isLong: boolean) =>
    compare(inputTurn(size), names, ({ output }) => output === 'ok', { isLong });
  await run(WARM_DELTAS, ['sabir'], false);
  // Alone, at every size alike: beside peers that leave much garbage, the last would look slower.
  for (const size of INPUT_DELTAS) {
    const runs = await run(size, ['sabir'], false);
    Object.assign(figures, rows(`${size / 1000} k tool.delta, alone`, runs));
    grown.push({ size, ms: median(times(runs.sabir)) });
  }
  const runs = await run(INPUT_DELTAS.at(-1) ?? 0, ['sabir', 'ai7', 'ai6'], true);
  return {
    figures: { ...figures, ...rows('8 k tool.delta', runs) },
    bars: [
      atLeast(
        '8 k tool.delta, 100 KB: times Chat 7',
        ratio(times(runs.ai7), times(runs.sabir)),
        150,
      ),
      atMost('tool.delta: growth exponent', exponent(grown), 1.2),
    ],
  };
}
