/**
 * Events → chunks, against `JSON.parse` of the same events as text: whoever reads events from a
 * wire pays that anyway, so it is the yardstick for "free".
 */
import { createAgentOpsTranslator } from 'sabir/agent-ops';
import { createOpenHarnessTranslator } from 'sabir/open-harness';
import { atMost, heapBytes, interleave, type Report, sized } from './report.ts';

const EVENTS = sized(100_000, 2_000);
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

/** The same of an Agent Ops session, in its V2 dialect. */
function* agentOpsTurn(): Generator<Record<string, unknown>> {
  const turnId = 'ac9713ea-15e4-45ac-b18d-13f504bb4bcc';
  yield { type: 'message.create', turnId, channelType: 'web', channelId: 'default' };
  for (let call = 0; ; call++) {
    for (let n = 0; n < 90; n++) yield { type: 'message.part.text-delta', turnId, delta: ' word' };
    const tool = { type: 'message.part.tool-update', turnId, callId: `c${call}`, toolName: 'bash' };
    const args = { command: 'ls', description: `List ${call}` };
    yield { type: 'agentStatus', status: 'tool_calling', detail: 'bash' };
    yield { ...tool, status: 'pending', args: {} };
    yield { ...tool, status: 'running', args };
    yield { ...tool, status: 'completed', args, result: 'a.txt\nb.txt\n' };
    yield { type: 'agentStatus', status: 'streaming' };
  }
}

/** As text, as they come from a wire. */
function take(count: number, events: Iterable<Record<string, unknown>>): string[] {
  const texts: string[] = [];
  for (const event of events) {
    if (texts.push(JSON.stringify(event)) === count) break;
  }
  return texts;
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
  const texts = take(EVENTS, turn());
  const agentOpsTexts = take(EVENTS, agentOpsTurn());
  // Parsed: objects of one program's literals would be friendlier.
  const events = texts.map((text) => JSON.parse(text));
  const agentOpsEvents = agentOpsTexts.map((text) => JSON.parse(text));
  let sink = 0;
  const times = interleave(ROUNDS, {
    parse: () => {
      for (const text of texts) sink += JSON.parse(text).type.length;
    },
    translate: () => {
      const translator = createOpenHarnessTranslator({ messageId: 'm' });
      for (const event of events) sink += translator.push(event).length;
    },
    parseAgentOps: () => {
      for (const text of agentOpsTexts) sink += JSON.parse(text).type.length;
    },
    translateAgentOps: () => {
      const translator = createAgentOpsTranslator({ messageId: 'm' });
      for (const event of agentOpsEvents) sink += translator.push(event).length;
    },
  });
  if (sink === 0) throw new Error('nothing was translated');
  const [early = 0, late = 0] = heapAfter([10_000, sized(1_000_000, 20_000)]);
  const perEvent = (ms: number) => `${Math.round((ms * 1e6) / EVENTS)} ns an event`;
  return {
    name: 'translate',
    bars: [
      atMost('time against JSON.parse', times.translate / times.parse, 1),
      atMost('Agent Ops: the same', times.translateAgentOps / times.parseAgentOps, 1),
      atMost('heap growth 10 k → 1 M events, MB', (late - early) / 1e6, 0.5),
    ],
    figures: {
      [`JSON.parse, ${EVENTS} events`]: perEvent(times.parse),
      'events → chunks': perEvent(times.translate),
      'Agent Ops, JSON.parse': perEvent(times.parseAgentOps),
      'Agent Ops, events → chunks': perEvent(times.translateAgentOps),
    },
  };
}
