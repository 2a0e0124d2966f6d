/**
 * Counters, gauges and histograms, and their text in the format of Prometheus. Our own, because the
 * libraries for it need Node and this file runs anywhere.
 */
type Labels = Readonly<Record<string, string>>;
type Sample = readonly [suffix: string, value: number];

type Counter = { add(labels?: Labels, by?: number): void };
type Histogram = { observe(seconds: number): void };

/** One limit: what it allows, and what is in use now. */
export type LimitUse = {
  max: number;
  /**
   * Read at each scrape: keep it cheap. For a limit per user, per turn or per address: the highest.
   * Leave it out where nothing is held, such as for the size of a body.
   */
  use?(): number;
  /** It is one for the whole process: at this limit, `/readyz` says that it is not ready. */
  isGlobal?: boolean;
};

/** A gateway and a session server can share one; an application can add its own metrics. */
export interface MetricRegistry {
  /** @param initial Label sets that are shown from the start, at 0. Default: one without labels. */
  counter(name: string, help: string, initial?: readonly Labels[]): Counter;
  /** A value that is read at each scrape. The same name can be registered once per label set. */
  gauge(name: string, help: string, read: () => number, labels?: Labels): void;
  histogram(name: string, help: string): Histogram;
  /**
   * Shows a limit as `sabir_limit_use`, `sabir_limit_max` and `sabir_limit_refusals_total`, with its
   * name as the label `limit`. Gives the function to call for each refusal.
   */
  limit(name: string, limit: LimitUse): () => void;
  /** The names of the global limits that are reached. */
  reachedLimits(): string[];
  /** What `GET /metrics` answers. */
  toText(): string;
}

type Family = { help: string; type: string; readers: Map<string, () => Iterable<Sample>> };

// Event types come from other systems and may be anything: past this many, they are counted together.
const MAX_LABEL_SETS = 200;
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];

export function createMetricRegistry(): MetricRegistry {
  const families = new Map<string, Family>();
  const globalLimits = new Map<string, () => boolean>();

  function register(
    { name, help, type, key = '' }: { name: string; help: string; type: string; key?: string },
    read: () => Iterable<Sample>,
  ): void {
    const family = families.get(name) ?? { help, type, readers: new Map() };
    if (family.type !== type || family.readers.has(key)) {
      throw new Error(
        `The metric ${name}${key} is registered twice. Use one registry per gateway.`,
      );
    }
    family.readers.set(key, read);
    families.set(name, family);
  }

  function counter(name: string, help: string, initial: readonly Labels[] = [{}]): Counter {
    const values = new Map(initial.map((labels) => [labelText(labels), 0]));
    register({ name, help, type: 'counter' }, () => values);
    return {
      add(labels = {}, by = 1) {
        let key = labelText(labels);
        if (!values.has(key) && values.size >= MAX_LABEL_SETS) {
          key = labelText(Object.fromEntries(Object.keys(labels).map((label) => [label, 'other'])));
        }
        values.set(key, (values.get(key) ?? 0) + by);
      },
    };
  }

  function gauge(name: string, help: string, read: () => number, labels: Labels = {}): void {
    const key = labelText(labels);
    register({ name, help, type: 'gauge', key }, () => [[key, read()]]);
  }

  function histogram(name: string, help: string): Histogram {
    const counts = BUCKETS.map(() => 0);
    let count = 0;
    let sum = 0;
    register({ name, help, type: 'histogram' }, () => [
      ...BUCKETS.map((le, i): Sample => [`_bucket{le="${le}"}`, counts[i] ?? 0]),
      ['_bucket{le="+Inf"}', count],
      ['_sum', sum],
      ['_count', count],
    ]);
    return {
      observe(seconds) {
        count++;
        sum += seconds;
        for (const [i, le] of BUCKETS.entries())
          if (seconds <= le) counts[i] = (counts[i] ?? 0) + 1;
      },
    };
  }

  function limit(name: string, { max, use, isGlobal }: LimitUse): () => void {
    const labels = { limit: name };
    const key = labelText(labels);
    const refusals = { name: 'sabir_limit_refusals_total', help: 'Refusals, by limit.', key };
    let refused = 0;
    if (use && isGlobal) globalLimits.set(name, () => use() >= max);
    if (use) gauge('sabir_limit_use', 'What is in use now, by limit.', use, labels);
    gauge('sabir_limit_max', 'What is allowed, by limit.', () => max, labels);
    register({ ...refusals, type: 'counter' }, () => [[key, refused]]);
    return () => {
      refused++;
    };
  }

  return {
    counter,
    gauge,
    histogram,
    limit,
    reachedLimits: () =>
      [...globalLimits].filter(([, isReached]) => isReached()).map(([name]) => name),
    toText: () => [...families].map(([name, family]) => familyText(name, family)).join(''),
  };
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length > 0 ? `{${pairs.join(',')}}` : '';
}

function escapeLabel(value: string): string {
  return value.slice(0, 100).replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n');
}

function familyText(name: string, { help, type, readers }: Family): string {
  const samples = [...readers.values()].flatMap((read) => [...read()]);
  const lines = samples.map(([suffix, value]) => `${name}${suffix} ${numberText(value)}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function numberText(value: number): string {
  return value === Infinity ? '+Inf' : String(value);
}
