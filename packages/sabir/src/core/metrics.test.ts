import { describe, expect, it } from 'vitest';
import { createMetricRegistry } from './metrics.ts';

describe('a metric registry', () => {
  it('reads a gauge only when it is scraped, each label set of a name under one header', () => {
    const registry = createMetricRegistry();
    let reads = 0;
    const read = () => ++reads;
    registry.gauge('rooms', 'Rooms in use.', read, { floor: '1' });
    registry.gauge('rooms', 'Rooms in use.', () => Infinity, { floor: '2' });
    expect(reads).toBe(0);
    const header = '# HELP rooms Rooms in use.\n# TYPE rooms gauge\n';
    expect(registry.toText()).toBe(`${header}rooms{floor="1"} 1\nrooms{floor="2"} +Inf\n`);
    expect(reads).toBe(1);
  });

  it('shows what a limit allows, what is in use and what was refused', () => {
    const registry = createMetricRegistry();
    const refuse = registry.limit('turns', { max: 3, use: () => 2 });
    registry.limit('body_bytes', { max: 1_000 });
    refuse();
    const lines = registry.toText().split('\n');
    expect(lines.filter((line) => line && !line.startsWith('#'))).toEqual([
      'sabir_limit_use{limit="turns"} 2',
      'sabir_limit_max{limit="turns"} 3',
      'sabir_limit_max{limit="body_bytes"} 1000',
      'sabir_limit_refusals_total{limit="turns"} 1',
      'sabir_limit_refusals_total{limit="body_bytes"} 0',
    ]);
  });

  it('names the global limits that are reached', () => {
    const registry = createMetricRegistry();
    let use = 2;
    registry.limit('turns', { max: 3, use: () => use, isGlobal: true });
    registry.limit('turns_per_user', { max: 1, use: () => use });
    expect(registry.reachedLimits()).toEqual([]);
    use = 3;
    expect(registry.reachedLimits()).toEqual(['turns']);
  });

  it('counts label sets past 200 together', () => {
    const registry = createMetricRegistry();
    const events = registry.counter('events_total', 'Events.', []);
    for (let i = 0; i < 300; i++) events.add({ type: `t${i}` });
    expect(registry.toText()).toContain('events_total{type="other"} 100\n');
  });

  it('refuses a second metric of the same name and labels', () => {
    const registry = createMetricRegistry();
    registry.counter('requests_total', 'Requests.');
    expect(() => registry.counter('requests_total', 'Requests.')).toThrow('registered twice');
  });
});
