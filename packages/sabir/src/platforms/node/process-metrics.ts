/** What a Node process uses, for `GET /metrics`. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { MetricRegistry } from '../../core/metrics.ts';

const RESOLUTION_MS = 20;

/**
 * Adds the event loop's lag since the last scrape, and the memory of the process. Gives the function
 * that stops measuring.
 *
 * @example
 * const metrics = createMetricRegistry();
 * watchProcess(metrics);
 * const gateway = createChatGateway({ metrics, … });
 */
export function watchProcess(registry: MetricRegistry): () => void {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();

  function lag(quantile: string, readNanoseconds: () => number): void {
    const help = 'How late the event loop was since the last scrape, by quantile.';
    // Node counts the timer's own interval as delay.
    const read = () => Math.max(0, readNanoseconds() / 1e9 - RESOLUTION_MS / 1e3);
    registry.gauge('sabir_event_loop_lag_seconds', help, read, { quantile });
  }

  lag('0.5', () => delays.percentile(50));
  lag('0.99', () => delays.percentile(99));
  lag('1', () => {
    const { max } = delays;
    // This one is read last.
    delays.reset();
    return max;
  });
  const memory = process.memoryUsage;
  registry.gauge('process_resident_memory_bytes', 'Resident memory.', () => memory.rss());
  registry.gauge('nodejs_heap_size_used_bytes', 'Heap in use.', () => memory().heapUsed);
  return () => void delays.disable();
}
