/**
 * Runs of the OpenAI Agents SDK → chunks: against `JSON.parse` of the same events, and against the
 * SDK's own helper, which leaves out more than half of what they say.
 */
import { createAiSdkUiMessageStream } from '@openai/agents-extensions/ai-sdk-ui';
import { createOpenAIAgentsTranslator, toChunks } from 'sabir/openai-agents';
import { atMost, interleave, interleaveAsync, type Report, ratio, sized } from './report.ts';

const EVENTS = sized(50_000, 1_000);
const ROUNDS = 7;

type Event = { type: string } & Record<string, unknown>;

const raw = (data: Record<string, unknown>) => ({ type: 'raw_model_stream_event', data });
const model = (event: Record<string, unknown>) => raw({ type: 'model', event });
const item = (name: string, rawItem: Record<string, unknown>, more = {}) => ({
  type: 'run_item_stream_event',
  name,
  item: { type: name, rawItem, agent: { name: 'Guide' }, ...more },
});

/** Responses that think, call a tool and write, as the SDK streams them. */
function* turn(): Generator<Event> {
  for (let n = 0; ; n++) {
    const usage = { inputTokens: 900, outputTokens: 90, totalTokens: 990 };
    yield raw({ type: 'response_started' });
    const thinks = { item_id: `rs_${n}`, output_index: 0, summary_index: 0 };
    for (let i = 0; i < 20; i++) {
      const type = 'response.reasoning_summary_text.delta';
      yield model({ type, ...thinks, delta: ' thought', sequence_number: i });
    }
    const call = { type: 'function_call', id: `fc_${n}`, call_id: `call_${n}`, name: 'search' };
    yield model({ type: 'response.output_item.added', output_index: 1, item: call });
    for (let i = 0; i < 10; i++) {
      const type = 'response.function_call_arguments.delta';
      yield model({ type, item_id: call.id, output_index: 1, delta: i === 0 ? '{"q":"' : 'word ' });
    }
    const input = `{"q":"${'word '.repeat(9)}"}`;
    const called = { ...call, arguments: input };
    yield model({ type: 'response.output_item.done', output_index: 1, item: called });
    const message_id = `msg_${n}`;
    for (let i = 0; i < 60; i++) {
      const type = 'response.output_text.delta';
      const providerData = { type, item_id: message_id, output_index: 2, sequence_number: i };
      yield raw({ type: 'output_text_delta', delta: ' word', itemId: message_id, providerData });
      yield model({ ...providerData, delta: ' word' });
    }
    const text = { type: 'output_text', text: ' word'.repeat(60) };
    const message = { type: 'message', id: message_id, role: 'assistant', content: [text] };
    yield raw({ type: 'response_done', response: { id: `r_${n}`, usage, output: [message] } });
    yield item('message_output_created', message, { content: text.text });
    const known = { type: 'function_call', id: call.id, callId: call.call_id, name: 'search' };
    yield item('tool_called', { ...known, arguments: input });
    const result = { type: 'function_call_result', callId: call.call_id, name: 'search' };
    yield item(
      'tool_output',
      { ...result, output: { type: 'text', text: '3 hits' } },
      { output: '3 hits' },
    );
  }
}

/** As a run gives them. */
async function* stream(events: Event[]) {
  yield* events;
}

async function drain(open: () => ReadableStream<{ type: string }>) {
  const start = performance.now();
  const reader = open().getReader();
  let chunks = 0;
  while (!(await reader.read()).done) chunks++;
  return { chunks, ms: performance.now() - start };
}

export async function bench(): Promise<Report> {
  const texts: string[] = [];
  for (const event of turn()) if (texts.push(JSON.stringify(event)) === EVENTS) break;
  const events: Event[] = texts.map((text) => JSON.parse(text));
  let sink = 0;
  const sync = interleave(ROUNDS, {
    parse: () => {
      for (const text of texts) sink += JSON.parse(text).type.length;
    },
    translate: () => {
      const translator = createOpenAIAgentsTranslator({ messageId: 'm' });
      for (const event of events) sink += translator.push(event).length;
    },
  });
  const run = () => Object.assign(stream(events), { completed: Promise.resolve() });
  const streamed = await interleaveAsync(ROUNDS, {
    ours: () => drain(() => toChunks(run() as never)),
    theirs: () => drain(() => createAiSdkUiMessageStream(stream(events) as never) as never),
  });
  const chunks = (name: 'ours' | 'theirs') => streamed[name][0]?.chunks ?? 0;
  const perChunk = (name: 'ours' | 'theirs') => streamed[name].map((one) => one.ms / one.chunks);
  if (sink === 0 || chunks('ours') < chunks('theirs')) throw new Error('nothing was translated');
  const perEvent = (ms: number) => `${Math.round((ms * 1e6) / EVENTS)} ns an event`;
  return {
    name: 'agents-sdk',
    bars: [atMost('time against JSON.parse', sync.translate / sync.parse, 1)],
    figures: {
      'events → chunks': perEvent(sync.translate),
      'streamed, time a chunk against theirs': ratio(perChunk('ours'), perChunk('theirs')).toFixed(
        2,
      ),
      'chunks of the same events': `${chunks('ours')} against ${chunks('theirs')}`,
    },
  };
}
