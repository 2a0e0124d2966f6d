/** A real model behind the OpenAI chat completions protocol, which most providers speak. */
import { createSseDecoder } from 'sabir';
import type { Model, ModelEvent, ModelMessage, ModelRequest } from '../flow/model.ts';

export type OpenAICompatibleOptions = { baseUrl: string; apiKey: string; model: string };

type Delta = {
  content?: string | null;
  /** Two spellings of the same thing, by provider. */
  reasoning?: string | null;
  reasoning_content?: string | null;
  tool_calls?: Array<{
    index: number;
    id?: string;
    function?: { name?: string; arguments?: string };
  }>;
};
type Completion = {
  choices?: Array<{ delta?: Delta }>;
  usage?: { prompt_tokens?: number; completion_tokens?: number } | null;
  error?: { message?: string };
};

export function createOpenAICompatibleModel(options: OpenAICompatibleOptions): Model {
  return {
    name: options.model,
    async *stream(request) {
      const response = await post(options, request);
      const calls = createCallCollector();
      for await (const completion of readCompletions(response)) {
        if (completion.error) throw new Error('The model broke off its answer. Try again.');
        const delta = completion.choices?.[0]?.delta;
        const thinking = delta?.reasoning_content ?? delta?.reasoning;
        if (thinking) yield { type: 'thinking', text: thinking };
        if (delta?.content) yield { type: 'text', text: delta.content };
        calls.push(delta?.tool_calls);
        if (completion.usage) {
          yield {
            type: 'usage',
            inputTokens: completion.usage.prompt_tokens ?? 0,
            outputTokens: completion.usage.completion_tokens ?? 0,
          };
        }
      }
      yield* calls.finish();
    },
  };
}

async function post(options: OpenAICompatibleOptions, request: ModelRequest): Promise<Response> {
  const body = {
    model: options.model,
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: 'system', content: request.system }, ...request.messages.map(toWire)],
    ...(request.tools.length > 0
      ? {
          tools: request.tools.map(({ name, description, parameters }) => ({
            type: 'function',
            function: { name, description, parameters },
          })),
        }
      : {}),
  };
  let response: Response;
  try {
    response = await fetch(`${options.baseUrl.replace(/\/+$/, '')}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${options.apiKey}` },
      body: JSON.stringify(body),
      signal: request.signal,
    });
  } catch (error) {
    request.signal.throwIfAborted();
    throw new Error('The model provider could not be reached. Try again in a moment.', {
      cause: error,
    });
  }
  if (response.ok && response.body) return response;
  // A provider's own words may quote the key or the account: they go to the log of the operator.
  console.error(`Model provider answered ${response.status}:`, await response.text());
  throw new Error(toExplanation(response.status));
}

export function toExplanation(status: number): string {
  if (status === 401 || status === 403) return 'The model provider did not accept the key.';
  if (status === 404) return 'The model provider does not know the model this server asks for.';
  if (status === 429) return 'The model is busy right now. Try again in a moment.';
  return `The model provider answered with an error (${status}). Try again in a moment.`;
}

function toWire(message: ModelMessage): Record<string, unknown> {
  if (message.role === 'tool') {
    return { role: 'tool', tool_call_id: message.toolCallId, content: message.text };
  }
  if (message.role === 'user' || !message.toolCalls?.length) {
    return { role: message.role, content: message.text };
  }
  return {
    role: 'assistant',
    content: message.text || null,
    tool_calls: message.toolCalls.map(({ id, name, input }) => ({
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(input) },
    })),
  };
}

async function* readCompletions(response: Response): AsyncGenerator<Completion> {
  if (!response.body) return;
  const ready: Completion[] = [];
  const decoder = createSseDecoder({
    frame({ data }) {
      if (data !== '[DONE]') ready.push(JSON.parse(data));
    },
  });
  for await (const bytes of response.body) {
    decoder.push(bytes);
    yield* ready.splice(0);
  }
  decoder.end();
  yield* ready;
}

/** A tool call arrives in pieces: its name first, then its arguments as fragments of JSON. */
function createCallCollector() {
  const calls = new Map<number, { id: string; name: string; json: string }>();
  return {
    push(pieces: Delta['tool_calls']) {
      for (const { index, id, function: piece } of pieces ?? []) {
        const call = calls.get(index) ?? { id: crypto.randomUUID(), name: '', json: '' };
        calls.set(index, {
          id: id ?? call.id,
          name: call.name + (piece?.name ?? ''),
          json: call.json + (piece?.arguments ?? ''),
        });
      }
    },
    *finish(): Generator<ModelEvent> {
      for (const { id, name, json } of calls.values()) {
        yield { type: 'tool-call', id, name, input: parseInput(json) };
      }
    },
  };
}

/** Models do write broken JSON; the tool then says what it misses, and the model may try again. */
function parseInput(json: string): unknown {
  try {
    return JSON.parse(json || '{}');
  } catch {
    return { unreadable: json };
  }
}
