/** What a benchmark found: bars it must reach, and figures that are only told. */
export type Bar = {
  id: string;
  value: number;
  /** `<=` or `>=` and the number the bar asks for. */
  target: string;
  ok: boolean;
};
export type Report = {
  name: string;
  bars: Bar[];
  /** Rows a person reads: what was measured, and what came out. */
  figures: Record<string, string>;
};

export function atMost(id: string, value: number, limit: number): Bar {
  return { id, value: round(value), target: `<= ${limit}`, ok: value <= limit };
}

export function atLeast(id: string, value: number, limit: number): Bar {
  return { id, value: round(value), target: `>= ${limit}`, ok: value >= limit };
}

/**
 * How large something is measured: `smoke` is for `--smoke`, which only sees whether a benchmark still
 * runs to its end. All of them together have 25 seconds then, processes of their own included.
 */
export function sized<T>(full: T, smoke: T): T {
  // Told by the environment, so that processes of a benchmark's own know it too.
  return process.env.SABIR_BENCH_SMOKE === '1' ? smoke : full;
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

/** How many times the one is the other: the median over rounds, of which both saw the same noise. */
export function ratio(a: number[], b: number[]): number {
  return median(a.map((value, i) => value / (b[i] ?? Number.NaN)));
}

/** The power of `size` by which the time grows: the slope of a line through the logarithms. */
export function exponent(points: Array<{ size: number; ms: number }>): number {
  const logs = points.map(({ size, ms }) => ({ x: Math.log(size), y: Math.log(ms) }));
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(logs.map((point) => point.x));
  const y = mean(logs.map((point) => point.y));
  const rise = mean(logs.map((point) => (point.x - x) * (point.y - y)));
  return rise / mean(logs.map((point) => (point.x - x) ** 2));
}

/**
 * Runs every candidate in turn, `rounds` times over, so that a noisy machine disturbs all of them
 * alike. Gives the median of each in milliseconds. Nobody collects garbage by force in between: it
 * would throw away compiled code and measure the warming up.
 */
export function interleave<Name extends string>(
  rounds: number,
  candidates: Record<Name, () => void>,
): Record<Name, number> {
  const names = Object.keys(candidates) as Name[];
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<
    Name,
    number[]
  >;
  const warmups = sized(8, 0);
  for (const name of names) for (let warm = 0; warm < warmups; warm++) candidates[name]();
  for (let round = 0; round < sized(rounds, 1); round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const start = performance.now();
      candidates[name]();
      times[name].push(performance.now() - start);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times[name])])) as Record<
    Name,
    number
  >;
}

/** The same for candidates that take their time; gives what each round of each came to. */
export async function interleaveAsync<Name extends string, Result>(
  rounds: number,
  candidates: Record<Name, () => Promise<Result>>,
  warmups = 2,
): Promise<Record<Name, Result[]>> {
  const names = Object.keys(candidates) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, [] as Result[]])) as Record<
    Name,
    Result[]
  >;
  for (let warm = 0; warm < sized(warmups, 0); warm++) {
    for (const name of names) await candidates[name]();
  }
  for (let round = 0; round < sized(rounds, 1); round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      results[name].push(await candidates[name]());
    }
  }
  return results;
}

export function heapBytes(): number {
  if (!globalThis.gc) throw new Error('run with --expose-gc');
  for (let n = 0; n < 4; n++) globalThis.gc();
  return process.memoryUsage().heapUsed;
}

export function print({ name, bars, figures }: Report): void {
  console.log(`\n${name}  (node ${process.versions.node})`);
  for (const [what, figure] of Object.entries(figures))
    console.log(`  ${what.padEnd(44)}${figure}`);
  for (const { id, value, target, ok } of bars) {
    console.log(`  ${ok ? 'ok  ' : 'MISS'} ${id.padEnd(39)}${value}  (bar ${target})`);
  }
}
