import type { FinishReason } from '../../core/chunks.ts';
import type { Loose } from '../../core/loose.ts';
import { isLoose, textOf } from './events.ts';

/** What a raw event of a model tells a viewer, whichever API it came from. */
export type Signal =
  /** One thought; another `block` begins another. */
  | { kind: 'reasoning'; block: string; delta: string }
  | { kind: 'refusal'; delta: string }
  /** A call begins. What follows names it by its `key`. */
  | { kind: 'call'; key: string; item: Loose }
  | { kind: 'arguments'; key: string; delta: string }
  | { kind: 'code'; key: string; delta: string }
  /** An image that is not finished. */
  | { kind: 'preview'; key: string; image: string; format?: unknown }
  /** Something is complete. */
  | { kind: 'item'; item: Loose }
  | { kind: 'citation'; citation: Loose }
  | { kind: 'finish'; reason?: FinishReason | undefined; usage?: unknown };

/**
 * The SDK passes on what its model sent: events of OpenAI's Responses API, chunks of Chat
 * Completions, or stream parts of an AI SDK model. Anything else is somebody's own model, and what
 * it means is told by the run's items.
 */
export function readRawModel(event: unknown): Signal[] {
  if (!isLoose(event)) return [];
  if (Array.isArray(event.choices)) return readChatCompletion(event);
  if (typeof event.type !== 'string') return [];
  const isResponses = event.type.startsWith('response.');
  const signal = isResponses ? readResponses(event.type, event) : readStreamPart(event.type, event);
  return signal ? [signal] : [];
}

function readResponses(type: string, event: Loose): Signal | undefined {
  const { item, item_id: key, delta } = event;
  switch (type) {
    case 'response.output_item.added':
      return isLoose(item) && typeof item.id === 'string'
        ? { kind: 'call', key: item.id, item }
        : undefined;
    case 'response.output_item.done':
      return isLoose(item) ? { kind: 'item', item } : undefined;
    case 'response.output_text.annotation.added':
      return isLoose(event.annotation)
        ? { kind: 'citation', citation: event.annotation }
        : undefined;
    case 'response.incomplete': {
      const response = isLoose(event.response) ? event.response : {};
      return { kind: 'finish', reason: cutShortBy(response), usage: response.usage };
    }
  }
  if (typeof key !== 'string') return undefined;
  if (type === 'response.image_generation_call.partial_image') {
    const image = textOf(event.partial_image_b64);
    return image ? { kind: 'preview', key, image, format: event.output_format } : undefined;
  }
  if (typeof delta !== 'string') return undefined;
  switch (type) {
    case 'response.reasoning_summary_text.delta':
      return { kind: 'reasoning', block: `${key} summary ${event.summary_index ?? 0}`, delta };
    case 'response.reasoning_text.delta':
      return { kind: 'reasoning', block: `${key} text ${event.content_index ?? 0}`, delta };
    case 'response.refusal.delta':
      return { kind: 'refusal', delta };
    case 'response.function_call_arguments.delta':
    case 'response.mcp_call_arguments.delta':
      return { kind: 'arguments', key, delta };
    case 'response.code_interpreter_call_code.delta':
      return { kind: 'code', key, delta };
  }
  return undefined;
}

/** Why a response of the Responses API ended before its end, if it did. */
export function cutShortBy({ incomplete_details: details }: Loose): FinishReason | undefined {
  return isLoose(details) ? toFinishReason(details.reason) : undefined;
}

function readChatCompletion({ id, choices }: Loose): Signal[] {
  const choice = (choices as unknown[]).find((one) => isLoose(one) && (one.index ?? 0) === 0);
  if (!isLoose(choice)) return [];
  const signals: Signal[] = [];
  const delta = isLoose(choice.delta) ? choice.delta : {};
  const thought = textOf(delta.reasoning) ?? textOf(delta.reasoning_content);
  if (thought) signals.push({ kind: 'reasoning', block: 'chat', delta: thought });
  const refusal = textOf(delta.refusal);
  if (refusal) signals.push({ kind: 'refusal', delta: refusal });
  for (const call of Array.isArray(delta.tool_calls) ? delta.tool_calls : []) {
    if (!isLoose(call) || !isLoose(call.function)) continue;
    const key = `${id} ${call.index ?? 0}`;
    const { name, arguments: input } = call.function;
    if (typeof call.id === 'string' && typeof name === 'string') {
      signals.push({ kind: 'call', key, item: { type: 'function_call', callId: call.id, name } });
    }
    const text = textOf(input);
    if (text) signals.push({ kind: 'arguments', key, delta: text });
  }
  for (const citation of Array.isArray(delta.annotations) ? delta.annotations : []) {
    if (isLoose(citation)) signals.push({ kind: 'citation', citation });
  }
  const reason = toFinishReason(choice.finish_reason);
  if (reason) signals.push({ kind: 'finish', reason });
  return signals;
}

function readStreamPart(type: string, part: Loose): Signal | undefined {
  const { id: key, delta } = part;
  switch (type) {
    case 'finish': {
      const { finishReason: said } = part;
      return { kind: 'finish', reason: toFinishReason(isLoose(said) ? said.unified : said) };
    }
    case 'source':
      return { kind: 'citation', citation: part };
  }
  if (typeof key !== 'string') return undefined;
  if (type === 'tool-input-start') {
    return { kind: 'call', key, item: { type: 'function_call', callId: key, name: part.toolName } };
  }
  if (typeof delta !== 'string') return undefined;
  if (type === 'tool-input-delta') return { kind: 'arguments', key, delta };
  return type === 'reasoning-delta' ? { kind: 'reasoning', block: key, delta } : undefined;
}

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  max_tokens: 'length',
  max_output_tokens: 'length',
  content_filter: 'content-filter',
  'content-filter': 'content-filter',
};

/** Undefined where the model just did what it does: a call of a tool is no end of a turn. */
function toFinishReason(reason: unknown): FinishReason | undefined {
  return typeof reason === 'string' && Object.hasOwn(FINISH_REASONS, reason)
    ? FINISH_REASONS[reason]
    : undefined;
}
