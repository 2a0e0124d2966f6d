/**
 * What an operator counts, and `GET /metrics` in the text format of Prometheus. A few dozen lines,
 * because the libraries for it need Node and this room runs anywhere.
 */
type Labels = Readonly<Record<string, string>>;

type Counter = { add(labels?: Labels, by?: number): void };
type Gauge = { add(by: number): void };
type Histogram = { observe(seconds: number): void };

// Somebody else's event types may be anything: past this many, they are counted together.
const MAX_LABEL_SETS = 200;
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];

export type GatewayMetrics = ReturnType<typeof createMetrics>;

export function createMetrics() {
  const series: Array<() => string> = [];

  function counter(name: string, help: string, initial: readonly Labels[] = [{}]): Counter {
    const values = new Map(initial.map((labels) => [labelText(labels), 0]));
    series.push(() => page(name, help, 'counter', values));
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

  function gauge(name: string, help: string): Gauge {
    let value = 0;
    series.push(() => page(name, help, 'gauge', [['', value]]));
    return {
      add(by) {
        value += by;
      },
    };
  }

  function histogram(name: string, help: string): Histogram {
    const counts = BUCKETS.map(() => 0);
    let count = 0;
    let sum = 0;
    series.push(() =>
      page(name, help, 'histogram', [
        ...BUCKETS.map((le, i): [string, number] => [`_bucket{le="${le}"}`, counts[i] ?? 0]),
        ['_bucket{le="+Inf"}', count],
        ['_sum', sum],
        ['_count', count],
      ]),
    );
    return {
      observe(seconds) {
        count++;
        sum += seconds;
        for (const [i, le] of BUCKETS.entries())
          if (seconds <= le) counts[i] = (counts[i] ?? 0) + 1;
      },
    };
  }

  return {
    requests: counter('adapter_request_count_total', 'Requests for a stream.'),
    requestErrors: counter(
      'adapter_request_errors_total',
      'Requests that ended with an error, by its code.',
      [],
    ),
    ttfb: histogram('adapter_latency_ttfb_seconds', 'From a request to the first chunk sent.'),
    turnDuration: histogram(
      'adapter_latency_turn_duration_seconds',
      'From the prompt to the end of its turn.',
    ),
    openFailures: counter(
      'adapter_ws_open_failures_total',
      'Connections to an agent that could not be opened.',
    ),
    aborts: counter('adapter_stream_aborts_total', 'Streams that were cut off, by which side.', [
      { side: 'client' },
      { side: 'server' },
    ]),
    unknownEvents: counter(
      'adapter_translation_unknown_events_total',
      'Events of a type nobody told us about: the source has drifted.',
      [],
    ),
    malformedEvents: counter(
      'adapter_translation_malformed_events_total',
      'Events of a known type in a wrong shape.',
      [],
    ),
    turns: counter('sabir_turns_total', 'Turns that ended, by their outcome.', []),
    liveTurns: gauge('sabir_live_turns', 'Turns that are running.'),
    takeovers: counter(
      'sabir_takeovers_total',
      'Turns of gateways that are gone, which this one went on with or ended.',
    ),
    handovers: counter(
      'sabir_handovers_total',
      'Turns that other gateways have taken from this one, or were given by it.',
    ),
    viewers: gauge('sabir_viewers', 'Streams that are being read.'),
    resumes: counter('sabir_resumes_total', 'Streams that were resumed.'),
    replayedBytes: counter('sabir_replayed_bytes_total', 'Bytes sent again to whoever came back.'),
    slowViewers: counter('sabir_slow_viewers_total', 'Viewers let go because they were too slow.'),
    toText: () => series.map((text) => text()).join(''),
  };
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length > 0 ? `{${pairs.join(',')}}` : '';
}

function escapeLabel(value: string): string {
  return value.slice(0, 100).replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n');
}

function page(
  name: string,
  help: string,
  type: string,
  values: Iterable<readonly [string, number]>,
): string {
  const lines = [...values].map(([suffix, value]) => `${name}${suffix} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}
