import type { Loose } from '../../core/loose.ts';
import { isLoose, textOf } from './events.ts';

/** A tool call in the words of a chat, whoever runs the tool. */
export type Call = {
  callId: string;
  toolName: string;
  /** Undefined while it is not known. */
  input?: unknown;
};

/** What OpenAI runs by itself, by the type of its items; the rest of the name is the tool's. */
const HOSTED = /^(web_search|file_search|code_interpreter|image_generation)_call$/;
/** What the SDK runs with a tool of its own kind, and where its input is. */
const BUILT_IN: Readonly<Record<string, [toolName: string, input: string]>> = {
  computer_call: ['computer', 'action'],
  shell_call: ['shell', 'action'],
  local_shell_call: ['shell', 'action'],
  apply_patch_call: ['apply_patch', 'operation'],
  tool_search_call: ['tool_search', 'arguments'],
  program: ['program', 'code'],
};

/** What is answered by the id of the call. A server that tells it late is heard when it does. */
const NEEDS_CALL_ID = new Set(['function_call', 'computer_call', 'shell_call', 'apply_patch_call']);
/** Items that the SDK calls a tool's, though nobody is shown one. */
const SILENT = new Set(['mcp_list_tools', 'mcp_approval_response']);

/** Whether an item of a tool is one that is known. */
export function isToolItem(item: Loose): boolean {
  return SILENT.has(kindOf(item)) || readCall(item) !== undefined;
}

/**
 * The call in an item, in the Responses API's spelling or in the SDK's own, which wraps what OpenAI
 * runs into `hosted_tool_call`; undefined if the item is none.
 */
export function readCall(item: Loose): Call | undefined {
  const kind = kindOf(item);
  const details =
    item.type === 'hosted_tool_call' && isLoose(item.providerData)
      ? { ...item.providerData, ...withoutEmpty(item) }
      : item;
  // A call that was asked for is the one that was asked about.
  const asked = kind === 'mcp_call' ? textOf(details.approval_request_id) : undefined;
  const callId = asked ?? callIdOf(NEEDS_CALL_ID.has(kind) ? { ...item, id: undefined } : item);
  if (callId === undefined) return undefined;
  if (kind === 'function_call') {
    const toolName = textOf(item.name);
    return toolName ? { callId, toolName, input: parse(item.arguments) } : undefined;
  }
  if (kind === 'mcp_call' || kind === 'mcp_approval_request') {
    const { name, arguments: input } = isLoose(item.providerData)
      ? { ...item, ...item.providerData }
      : item;
    return { callId, toolName: textOf(name) ?? 'mcp', input: parse(input) };
  }
  const [, hosted] = HOSTED.exec(kind) ?? [];
  if (hosted) return { callId, toolName: hosted, input: hostedInput(hosted, details) };
  const builtIn = Object.hasOwn(BUILT_IN, kind) ? BUILT_IN[kind] : undefined;
  return builtIn && { callId, toolName: builtIn[0], input: item[builtIn[1]] };
}

/** What kind of thing an item is. */
export function kindOf({ type, name, providerData }: Loose): string {
  const kind = type === 'hosted_tool_call' ? name : type;
  const inner = isLoose(providerData) ? providerData.type : undefined;
  // A hosted call that waits for approval is named by its tool.
  if (type === 'hosted_tool_call' && inner === 'mcp_approval_request') return inner;
  return typeof kind === 'string' ? kind : '';
}

function withoutEmpty(item: Loose): Loose {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== undefined));
}

function hostedInput(toolName: string, item: Loose): unknown {
  switch (toolName) {
    case 'web_search': {
      if (!isLoose(item.action)) return undefined;
      const { sources: _, ...action } = item.action;
      return action;
    }
    case 'file_search':
      return item.queries === undefined ? undefined : { queries: item.queries };
    case 'code_interpreter':
      return item.code === undefined ? undefined : { code: item.code };
    default:
      return {};
  }
}

export type Output = {
  output: unknown;
  /** A base64 image, which becomes a file. */
  image?: { data: string; format?: unknown };
  errorText?: string;
};

/** What OpenAI's own tools found, once they are done; the SDK has no event for it. */
export function readHostedOutput(item: Loose): Output | undefined {
  const kind = kindOf(item);
  const details: Loose = isLoose(item.providerData)
    ? { ...item.providerData, ...withoutEmpty(item) }
    : item;
  const { status } = details;
  if (status === 'in_progress' || status === 'searching' || status === 'interpreting')
    return undefined;
  if (status === 'failed' || status === 'incomplete') {
    return { output: null, errorText: textOf(details.error) ?? `The tool ended as ${status}.` };
  }
  switch (kind) {
    case 'web_search_call': {
      const action = isLoose(details.action) ? details.action : {};
      return {
        output: {
          status: 'completed',
          ...(Array.isArray(action.sources) && { sources: action.sources }),
        },
      };
    }
    case 'file_search_call':
      return { output: { results: details.results ?? [] } };
    case 'code_interpreter_call':
      return { output: { outputs: details.outputs ?? [] } };
    case 'image_generation_call': {
      const data = textOf(details.result) ?? textOf(details.output);
      const output = { status: 'completed' };
      return data ? { output, image: { data, format: details.output_format } } : { output };
    }
    case 'mcp_call': {
      const errorText = mcpError(details.error);
      return errorText ? { output: null, errorText } : { output: details.output ?? null };
    }
  }
  return undefined;
}

function mcpError(error: unknown): string | undefined {
  if (typeof error === 'string') return textOf(error);
  return isLoose(error) ? (textOf(error.message) ?? 'The tool failed.') : undefined;
}

/** Arguments are text; what is no JSON is shown as it is. */
function parse(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  try {
    return JSON.parse(text === '' ? '{}' : text);
  } catch {
    return text;
  }
}

export function callIdOf({ callId, call_id: other, id }: Loose): string | undefined {
  return textOf(callId) ?? textOf(other) ?? textOf(id);
}
