import type { ScriptedResponse } from './responses-script.ts';
import { countingIds, type Ids, type ModelEvent, responseEvents } from './responses-script.ts';
import type { Sdk } from './sdks.ts';

export type Script = ReadonlyArray<ScriptedResponse | Error>;

export type Hooks = {
  /** What the API was sent, and the signal that takes it back. */
  onRequest?(request: Record<string, unknown>, signal: AbortSignal | undefined): void;
  /** What an event waits for. */
  beforeEvent?(event: ModelEvent): Promise<void> | undefined;
};

/**
 * The SDK's own model for the Responses API, with a client that answers from a script instead of
 * calling OpenAI.
 */
export function scriptedModel(
  sdk: Sdk,
  script: Script,
  nextId: Ids = countingIds(),
  hooks: Hooks = {},
) {
  let next = 0;

  function create(request: { stream?: boolean }, { signal }: { signal?: AbortSignal } = {}) {
    hooks.onRequest?.(request, signal);
    const { stream } = request;
    const given = script[next++] ?? new Error('The script is over.');
    const events = given instanceof Error ? [] : responseEvents(given, nextId);
    const last = events.at(-1) as { response?: object } | undefined;
    const answer = async () => {
      if (given instanceof Error) throw given;
      return stream ? play(events, hooks) : { ...last?.response };
    };
    const data = answer();
    // Newer releases also ask for the response around it.
    const withResponse = async () => ({
      data: await data,
      response: new Response(),
      request_id: 'request',
    });
    return Object.assign(data, { withResponse });
  }

  const client = { baseURL: 'http://127.0.0.1/v1', responses: { create } };
  return new sdk.OpenAIResponsesModel(client as never, 'scripted');
}

async function* play(events: ModelEvent[], { beforeEvent }: Hooks): AsyncGenerator<ModelEvent> {
  for (const event of events) {
    await beforeEvent?.(event);
    yield event;
  }
}
