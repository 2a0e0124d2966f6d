/** AG-UI's own client, as an application uses it, and its checks on their own. */
import {
  enforceEvents,
  HttpAgent,
  type HttpAgentConfig,
  type Message,
  runHttpRequest,
  transformHttpEventStream,
  verifyEvents,
} from '@ag-ui/client';
import { expect, vi } from 'vitest';
import type { UIMessage } from '../src/core/message.ts';
import { createPartialJson } from '../src/core/partial-json.ts';
import { type AgUiEvent, toAgUiSse } from '../src/wires/ag-ui/index.ts';

/** What AG-UI's schemas and `verifyEvents` say about a whole stream; undefined where they find nothing. */
export function problemIn(events: AgUiEvent[]): Promise<unknown> {
  const body = events.map((event) => toAgUiSse(event)).join('');
  const received = transformHttpEventStream(runHttpRequest(async () => new Response(body)));
  return new Promise((resolve) => {
    verifyEvents()(enforceEvents()(received)).subscribe({
      error: resolve,
      complete: () => resolve(undefined),
    });
  });
}

/** Fails the test when AG-UI's client warns: it does so for every field that it does not know. */
export function watchWarnings(): () => void {
  const warn = vi.spyOn(console, 'warn').mockReturnValue(undefined);
  const error = vi.spyOn(console, 'error').mockReturnValue(undefined);
  return () => {
    const said = [...warn.mock.calls, ...error.mock.calls];
    warn.mockRestore();
    error.mockRestore();
    expect(said).toEqual([]);
  };
}

/** An unmodified `HttpAgent` that remembers the events it was given. */
export function createHttpAgent(config: HttpAgentConfig) {
  const events: AgUiEvent[] = [];
  const agent = new HttpAgent(config);
  agent.subscribe({ onEvent: ({ event }) => void events.push(event as unknown as AgUiEvent) });
  const types = () => events.map(({ type }) => type);
  return { agent, events, types };
}

type Said = { text: string; calls: unknown[] };

/** The text and the tools in an agent's messages. */
export function saidBy(messages: Message[]): Said {
  const results = new Map<string, unknown>();
  for (const message of messages) {
    if (message.role === 'tool') results.set(message.toolCallId, message.content);
  }
  const said: Said = { text: '', calls: [] };
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    said.text += message.content ?? '';
    for (const { id, function: called } of message.toolCalls ?? []) {
      // Of arguments that were cut off, an AI SDK client shows what there is.
      const input = createPartialJson(called.arguments).value;
      said.calls.push({ id, name: called.name, input, result: results.get(id) });
    }
  }
  return said;
}

/** The same of a message that an AI SDK client has. */
export function saidIn({ parts }: UIMessage): Said {
  const said: Said = { text: '', calls: [] };
  for (const part of parts as Array<Record<string, unknown>>) {
    if (part.type === 'text') said.text += part.text;
    const { toolCallId: id, toolName, type, state, output, errorText } = part;
    if (typeof id !== 'string') continue;
    // An input that was refused is the text that the model wrote.
    const isText = errorText !== undefined && typeof part.input === 'string';
    const input = isText ? createPartialJson(part.input as string).value : part.input;
    const name = toolName ?? String(type).slice('tool-'.length);
    const shown = typeof output === 'string' ? output : JSON.stringify(output);
    const denied = state === 'output-denied' ? 'The call was denied.' : undefined;
    said.calls.push({ id, name, input, result: denied ?? errorText ?? shown });
  }
  return said;
}
