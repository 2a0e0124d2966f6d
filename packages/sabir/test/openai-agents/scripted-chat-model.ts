import type { Sdk } from './sdks.ts';

/** What one chunk of Chat Completions says. */
export type ChatDelta = { delta?: Record<string, unknown>; finish_reason?: string };

/**
 * The SDK's own model for Chat Completions, with a client that answers from a script: a list of
 * deltas for each request.
 */
export function scriptedChatModel(sdk: Sdk, script: ReadonlyArray<readonly ChatDelta[]>) {
  let next = 0;

  async function create() {
    return play(`chat-${next + 1}`, script[next++] ?? []);
  }

  const client = { baseURL: 'http://127.0.0.1/v1', chat: { completions: { create } } };
  return new sdk.OpenAIChatCompletionsModel(client as never, 'scripted');
}

async function* play(id: string, deltas: readonly ChatDelta[]) {
  const base = { id, object: 'chat.completion.chunk', created: 0, model: 'scripted' };
  for (const { delta = {}, finish_reason = null } of deltas) {
    yield { ...base, choices: [{ index: 0, delta, finish_reason }] };
  }
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  yield { ...base, choices: [], usage };
}
