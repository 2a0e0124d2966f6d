/** The events of a run, written down by hand, and what the translator makes of them. */
import type { Chunk } from '../../src/core/chunks.ts';
import { foldChunks } from '../../src/core/fold.ts';
import type {
  OpenAIAgentsOptions,
  OpenAIAgentsUIMessage,
} from '../../src/sources/openai-agents/events.ts';
import { createOpenAIAgentsTranslator } from '../../src/sources/openai-agents/translate.ts';

type Fields = Record<string, unknown>;

export const raw = (data: Fields) => ({ type: 'raw_model_stream_event', data });
/** What the model itself sent. */
export const model = (event: Fields) => raw({ type: 'model', event });
export const item = (name: string, rawItem: unknown, more: Fields = {}) => ({
  type: 'run_item_stream_event',
  name,
  item: { rawItem, ...more },
});

export const started = raw({ type: 'response_started' });
export const done = (usage?: Fields, more: Fields = {}) =>
  raw({ type: 'response_done', response: { id: 'r', output: [], usage, ...more } });
export const says = (delta: unknown, itemId: unknown = 'msg') =>
  raw({ type: 'output_text_delta', delta, itemId });
export const thinks = (delta: string, item_id = 'rs', summary_index = 0) =>
  model({ type: 'response.reasoning_summary_text.delta', item_id, summary_index, delta });

/** A call of a tool, as an item of the run. */
export const call = (callId: string, name = 'search', input: unknown = { q: 1 }) => ({
  type: 'function_call',
  callId,
  name,
  arguments: JSON.stringify(input),
});
export const called = (callId: string, name?: string, input?: unknown) =>
  item('tool_called', call(callId, name, input));
export const output = (callId: string, given: unknown, more: Fields = {}) =>
  item(
    'tool_output',
    {
      type: 'function_call_result',
      callId,
      output: { type: 'text', text: String(given) },
      ...more,
    },
    { output: given },
  );
/** A call that waits, as the run tells it when it is interrupted. */
export const interruption = (callId: string, name?: string, agent?: { name: string }) => ({
  type: 'tool_approval_item',
  rawItem: call(callId, name),
  ...(agent && { agent }),
});
export const interrupted = (...interruptions: unknown[]) => ({
  type: 'run_interrupted',
  interruptions,
});

export function translate(events: unknown[], options: OpenAIAgentsOptions = {}) {
  const translator = createOpenAIAgentsTranslator({ messageId: 'm', ...options });
  const chunks = events.flatMap((event) => translator.push(event));
  return { translator, chunks };
}

/** The message of a run that ended well. */
export function fold(events: unknown[], options?: OpenAIAgentsOptions): OpenAIAgentsUIMessage {
  const { chunks, translator } = translate(events, options);
  chunks.push(...translator.end({ status: 'finished' }));
  return foldChunks(chunks, options?.message) as OpenAIAgentsUIMessage;
}

export const typesOf = (chunks: Chunk[]) => chunks.map(({ type }) => type);
