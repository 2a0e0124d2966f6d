/**
 * Open Harness events → chunks, against `JSON.parse` of the same events as text: whoever reads
 * events from a wire pays that anyway, so it is the yardstick for "free".
 */
import { createOpenHarnessTranslator } from 'sabir/open-harness';
import { atMost, heapBytes, interleave, type Report } from './report.ts';

const EVENTS = 100_000;
const ROUNDS = 9;

/** A long turn as it was recorded: nodes that think, call tools and write, one after another. */
function* turn(): Generator<Record<string, unknown>> {
  yield { type: 'flow:start', flowName: 'bench', timestamp: 1_794_769_019_106 };
  for (let node = 0; ; node++) {
    const runId = `fde5c64e-46df-4474-9058-${String(node).padStart(12, '0')}`;
    const nodeId = `node-${node % 3}`;
    const at = (event: Record<string, unknown>) => ({
      type: event.type,
      nodeId,
      runId,
      ...event,
      timestamp: 1_794_769_019_106 + node,
    });
    yield at({ type: 'node:start' });
    yield at({ type: 'agent:start', sessionId: 'session-1', prompt: 'Continue' });
    for (let n = 0; n < 20; n++) yield at({ type: 'agent:thinking:delta', content: ' thought' });
    yield at({ type: 'agent:thinking', content: ' thought'.repeat(20) });
    for (let n = 0; n < 3; n++) {
      yield at({
        type: 'agent:tool',
        toolName: 'search',
        toolInput: { query: `term ${n}`, limit: 10 },
        toolOutput: { hits: [{ title: 'One', url: 'https://example.test/1' }, { title: 'Two' }] },
        durationMs: 12,
      });
    }
    for (let n = 0; n < 70; n++) yield at({ type: 'agent:text:delta', content: ' word' });
    yield at({ type: 'agent:text', content: ' word'.repeat(70) });
    yield at({
      type: 'agent:complete',
      result: ' word'.repeat(70),
      usage: { inputTokens: 900, outputTokens: 90 },
      totalCostUsd: 0.002,
    });
    yield at({ type: 'node:complete', output: { text: ' word'.repeat(70) } });
    yield { type: 'edge:fire', from: nodeId, to: `node-${(node + 1) % 3}` };
  }
}

function take(count: number): Record<string, unknown>[] {
  const events: Record<string, unknown>[] = [];
  for (const event of turn()) {
    if (events.push(event) === count) break;
  }
  return events;
}

function heapAfter(counts: number[]): number[] {
  const translator = createOpenHarnessTranslator({ messageId: 'm' });
  const heaps: number[] = [];
  let pushed = 0;
  for (const event of turn()) {
    translator.push(event);
    if (++pushed === counts[heaps.length] && heaps.push(heapBytes()) === counts.length) break;
  }
  return heaps;
}

export function bench(): Report {
  const texts = take(EVENTS).map((event) => JSON.stringify(event));
  // Parsed, as they come from a wire: objects of one program's literals would be friendlier.
  const events = texts.map((text) => JSON.parse(text));
  let sink = 0;
  const times = interleave(ROUNDS, {
    parse: () => {
      for (const text of texts) sink += JSON.parse(text).type.length;
    },
    translate: () => {
      const translator = createOpenHarnessTranslator({ messageId: 'm' });
      for (const event of events) sink += translator.push(event).length;
    },
  });
  if (sink === 0) throw new Error('nothing was translated');
  const [early = 0, late = 0] = heapAfter([10_000, 1_000_000]);
  const perEvent = (ms: number) => `${Math.round((ms * 1e6) / EVENTS)} ns an event`;
  return {
    name: 'translate',
    bars: [
      atMost('time against JSON.parse', times.translate / times.parse, 1),
      atMost('heap growth 10 k → 1 M events, MB', (late - early) / 1e6, 0.5),
    ],
    figures: {
      [`JSON.parse, ${EVENTS} events`]: perEvent(times.parse),
      'events → chunks': perEvent(times.translate),
    },
  };
}
