import { toJsonSafe } from '../../core/json.ts';
import type { Loose } from '../../core/loose.ts';
import type { MessageLike } from '../../core/message.ts';
import { isLoose, textOf, WAITS } from './events.ts';

type Content =
  | { type: 'input_text'; text: string }
  | { type: 'input_image'; image: string }
  | { type: 'input_file'; file: string; filename?: string };

/** What the SDK's `run` takes as a conversation. */
export type AgentInputItem =
  | { role: 'user'; content: string | Content[] }
  | { role: 'system'; content: string }
  | { role: 'assistant'; status: 'completed'; content: [{ type: 'output_text'; text: string }] }
  | { type: 'function_call'; callId: string; name: string; arguments: string; status: 'completed' }
  | {
      type: 'function_call_result';
      callId: string;
      name: string;
      status: 'completed';
      output: { type: 'text'; text: string };
    };

/** OpenAI ran them: what they found is in the text. A call of them would be one of no known tool. */
const HOSTED = new Set([
  ...['web_search', 'file_search', 'code_interpreter', 'image_generation', 'tool_search'],
  ...['program', 'computer', 'shell', 'apply_patch'],
]);

/**
 * The messages of a chat as the input of a run: texts, the user's files, tool calls with what they
 * gave. Thoughts and calls without an end are left out. A message of the system is taken only if
 * `system` says so: messages come from a client, which could write itself instructions. Not needed
 * where the run has a `session`.
 */
export function toAgentInput(
  messages: readonly MessageLike[],
  { system: hasSystem = false }: { system?: boolean } = {},
): AgentInputItem[] {
  if (!Array.isArray(messages)) throw new TypeError('messages is not an array of UI messages.');
  return messages.flatMap(({ role, parts }: MessageLike) => {
    if (!Array.isArray(parts)) throw new TypeError('A message has no parts: it is no UI message.');
    const given = parts as readonly Loose[];
    if (role === 'user') return userItem(given);
    if (role === 'assistant') return given.flatMap(assistantItems);
    if (role !== 'system' || !hasSystem) return [];
    const text = given.map(({ text: one }) => textOf(one) ?? '').join('');
    return text ? [{ role, content: text }] : [];
  });
}

function userItem(parts: readonly Loose[]): AgentInputItem[] {
  const content = parts.flatMap(contentOf);
  if (content.length === 0) return [];
  const [only] = content;
  const isText = content.length === 1 && only?.type === 'input_text';
  return [{ role: 'user', content: isText ? only.text : content }];
}

function contentOf({ type, text, url, mediaType, filename }: Loose): Content[] {
  if (type === 'text') return textOf(text) ? [{ type: 'input_text', text: text as string }] : [];
  if (type !== 'file' || typeof url !== 'string') return [];
  if (textOf(mediaType)?.startsWith('image/')) return [{ type: 'input_image', image: url }];
  const name = textOf(filename);
  return [{ type: 'input_file', file: url, ...(name && { filename: name }) }];
}

function assistantItems(part: Loose): AgentInputItem[] {
  const { type, text, toolCallId: callId, state, input, output, errorText } = part;
  if (type === 'text') {
    const said = textOf(text);
    if (!said) return [];
    return [
      { role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: said }] },
    ];
  }
  if (typeof callId !== 'string' || typeof type !== 'string') return [];
  const name = type === 'dynamic-tool' ? textOf(part.toolName) : type.slice('tool-'.length);
  const isOver = typeof state === 'string' && state.startsWith('output-');
  if (!name || !isOver || HOSTED.has(name) || errorText === WAITS) return [];
  const given = state === 'output-available' ? output : (errorText ?? refusalOf(part));
  return [
    { type: 'function_call', callId, name, arguments: toText(input ?? {}), status: 'completed' },
    {
      type: 'function_call_result',
      callId,
      name,
      status: 'completed',
      output: { type: 'text', text: toText(given) },
    },
  ];
}

function refusalOf({ approval }: Loose): string {
  return (isLoose(approval) && textOf(approval.reason)) || 'Tool execution was not approved.';
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(toJsonSafe(value));
}
