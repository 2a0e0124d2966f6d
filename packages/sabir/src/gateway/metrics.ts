/** What a gateway counts; the kit is in `../core/metrics.ts`. */
import type { MetricRegistry } from '../core/metrics.ts';

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;

export function createGatewayMetrics(registry: MetricRegistry) {
  function gauge(name: string, help: string): { add(by: number): void } {
    let value = 0;
    registry.gauge(name, help, () => value);
    return {
      add(by) {
        value += by;
      },
    };
  }

  return {
    requests: registry.counter('adapter_request_count_total', 'Requests for a stream.'),
    requestErrors: registry.counter(
      'adapter_request_errors_total',
      'Requests that ended with an error, by its code.',
      [],
    ),
    requestFailures: registry.counter(
      'sabir_request_failures_total',
      'Requests that failed on our side: a status of 5xx, or a turn that failed or was lost.',
    ),
    ttfb: registry.histogram(
      'adapter_latency_ttfb_seconds',
      'From a request to the first chunk sent.',
    ),
    turnDuration: registry.histogram(
      'adapter_latency_turn_duration_seconds',
      'From the prompt to the end of its turn.',
    ),
    openFailures: registry.counter(
      'adapter_ws_open_failures_total',
      'Connections to an agent that could not be opened.',
    ),
    aborts: registry.counter(
      'adapter_stream_aborts_total',
      'Streams that were cut off, by which side.',
      [{ side: 'client' }, { side: 'server' }],
    ),
    unknownEvents: registry.counter(
      'adapter_translation_unknown_events_total',
      'Events of a type nobody told us about: the source has drifted.',
      [],
    ),
    malformedEvents: registry.counter(
      'adapter_translation_malformed_events_total',
      'Events of a known type in a wrong shape.',
      [],
    ),
    turns: registry.counter('sabir_turns_total', 'Turns that ended, by their outcome.', [
      { outcome: 'finished' },
      { outcome: 'stopped' },
      { outcome: 'failed' },
      { outcome: 'paused' },
      { outcome: 'lost' },
    ]),
    liveTurns: gauge('sabir_live_turns', 'Turns that run here.'),
    takeovers: registry.counter(
      'sabir_takeovers_total',
      'Turns of gateways that are gone, which this one went on with or ended.',
    ),
    handovers: registry.counter(
      'sabir_handovers_total',
      'Turns that other gateways have taken from this one, or were given by it.',
    ),
    viewers: gauge('sabir_viewers', 'Streams that are being read.'),
    followers: gauge('sabir_followers', 'Those of them that follow a chat across its turns.'),
    resumes: registry.counter('sabir_resumes_total', 'Streams that were resumed.'),
    replayedBytes: registry.counter('sabir_replayed_bytes_total', 'Bytes of replays.'),
    hookTimeouts: registry.counter(
      'sabir_hook_timeouts_total',
      'Hooks of the application that exceeded timing.hookMs, by name.',
      [],
    ),
    slowViewers: registry.counter(
      'sabir_slow_viewers_total',
      'Viewers let go because they were too slow.',
    ),
  };
}
