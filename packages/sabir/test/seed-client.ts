/**
 * A client of the contract's first version, written from its text alone: it knows eleven events,
 * and of each the fields it was told of. What is more it ignores. Nothing here is imported from
 * the library, so that what this client shows is what anybody else's would.
 */
type ToolPart = {
  type: `tool-${string}`;
  toolCallId: string;
  state: string;
  input?: unknown;
  output?: unknown;
  errorText?: string;
};
type Part =
  | { type: 'text'; text: string }
  | ToolPart
  | { type: 'source-url'; sourceId: string; url: string; title?: string };
type Message = { id: string; role: 'assistant'; parts: Part[] };

export type SeedState = {
  messages: Message[];
  status: 'ready' | 'submitted' | 'streaming' | 'error';
  error?: string;
};

// biome-ignore lint/suspicious/noExplicitAny: a client like this one trusts what it is sent.
type Data = any;

/** Server-sent events by their lines: `event:` and `data:`, ended by an empty one. */
function parseSeedSse(text: string): { type: string; data: Data }[] {
  const events: { type: string; data: Data }[] = [];
  let type = '';
  let data = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('event: ')) type = line.slice('event: '.length);
    else if (line.startsWith('data: ')) data += line.slice('data: '.length);
    else if (line === '' && data !== '') {
      events.push({ type, data: JSON.parse(data) });
      type = '';
      data = '';
    }
  }
  return events;
}

/** The streamed text of inputs, which are shown once they can be read. */
const streamed = new WeakMap<ToolPart, string>();

function toolPart(message: Message, toolCallId: string, toolName: string | undefined): ToolPart {
  const found = message.parts.find(
    (part): part is ToolPart => 'toolCallId' in part && part.toolCallId === toolCallId,
  );
  const part: ToolPart = found ?? { type: 'tool-', toolCallId, state: 'input-streaming' };
  if (!found) message.parts.push(part);
  if (toolName !== undefined) part.type = `tool-${toolName}`;
  return part;
}

function tryParse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // Not all of it has come.
    return undefined;
  }
}

function applySeedEvent(state: SeedState, { type, data }: { type: string; data: Data }): void {
  const message = state.messages.at(-1);
  if (type === 'message.start') {
    state.messages.push({ id: data.messageId, role: data.role, parts: [] });
    state.status = 'streaming';
  } else if (type === 'done') state.status = 'ready';
  else if (type === 'error') {
    state.status = 'error';
    state.error = data.message;
  } else if (!message) return;
  else if (type === 'message.delta') {
    const last = message.parts.at(-1);
    if (last?.type === 'text') last.text += data.delta;
    else message.parts.push({ type: 'text', text: data.delta });
  } else if (type === 'tool.call') {
    const part = toolPart(message, data.toolCallId, data.toolName);
    part.state = 'input-available';
    part.input = data.input;
  } else if (type === 'tool.delta') {
    // The first version names no tool here: the call does.
    const part = toolPart(message, data.toolCallId, undefined);
    part.state = 'input-streaming';
    const text = (streamed.get(part) ?? '') + data.delta;
    streamed.set(part, text);
    part.input = tryParse(text);
  } else if (type === 'tool.result') {
    const part = toolPart(message, data.toolCallId, data.toolName);
    part.state = data.state;
    if (data.state === 'output-available') part.output = data.output;
    if (data.state === 'output-error') part.errorText = data.errorText;
  } else if (type === 'source') {
    const { sourceId, url, title } = data;
    message.parts.push({ type: 'source-url', sourceId, url, title });
  }
}

/** All that such a client makes of a response's body. */
export function runSeedClient(body: string): SeedState {
  const state: SeedState = { messages: [], status: 'submitted' };
  for (const event of parseSeedSse(body)) applySeedEvent(state, event);
  return state;
}
