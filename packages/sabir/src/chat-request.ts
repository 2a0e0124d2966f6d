import { BAD_REQUEST, BODY_TOO_LARGE, SabirError } from './errors.ts';
import type { UIMessage } from './message.ts';

export type Trigger = 'submit-message' | 'regenerate-message';

/** What a chat client POSTs, checked. `body` holds the fields the application added. */
export type ChatRequest = {
  chatId: string | undefined;
  trigger: Trigger;
  /** The message that is answered to, or made anew. */
  messageId: string | undefined;
  messages: UIMessage[];
  body: Record<string, unknown>;
};

/** Reads what `useChat` of AI SDK 5, 6 and 7 sends; throws a `SabirError` that says what is wrong. */
export async function parseChatRequest(
  request: Request,
  maxBodyBytes: number,
): Promise<ChatRequest> {
  const json = await readJson(request, maxBodyBytes);
  const { id, messages, trigger, messageId, ...body } = asObject(json, 'The body');
  if (!Array.isArray(messages)) throw new SabirError(BAD_REQUEST, 'messages is not an array.');
  return {
    chatId: typeof id === 'string' ? id : undefined,
    trigger: trigger === 'regenerate-message' ? trigger : 'submit-message',
    messageId: typeof messageId === 'string' ? messageId : undefined,
    messages: messages.map(toMessage),
    body,
  };
}

export async function readJson(request: Request, maxBodyBytes: number): Promise<unknown> {
  try {
    return JSON.parse(await readText(request, maxBodyBytes));
  } catch (cause) {
    if (cause instanceof SabirError) throw cause;
    throw new SabirError(BAD_REQUEST, 'The body is not JSON.', { cause });
  }
}

/** Messages have `parts`; clients older than the AI SDK's fifth major sent `content`. */
function toMessage(value: unknown, index: number): UIMessage {
  const where = `messages[${index}]`;
  const { content, ...message } = asObject(value, where);
  const { id, role } = message;
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw new SabirError(BAD_REQUEST, `${where}.role is not user, assistant or system.`);
  }
  const parts = message.parts ?? (typeof content === 'string' && [{ type: 'text', text: content }]);
  if (!Array.isArray(parts)) {
    throw new SabirError(BAD_REQUEST, `${where} has neither parts nor content.`);
  }
  for (const part of parts) asObject(part, `A part of ${where}`);
  return { ...message, id: typeof id === 'string' ? id : '', role, parts };
}

function asObject(value: unknown, where: string): Record<string, unknown> {
  if (typeof value === 'object' && value && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new SabirError(BAD_REQUEST, `${where} is not an object.`);
}

/** Counts while it reads: a body need not tell its length, or tell it truly. */
async function readText(request: Request, maxBodyBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBodyBytes) {
      throw new SabirError(BODY_TOO_LARGE, `The body is larger than ${maxBodyBytes} bytes.`);
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** The text of the last user message; undefined where there is none. */
export function lastUserText(messages: UIMessage[]): string | undefined {
  const message = messages.findLast(({ role }) => role === 'user');
  if (!message) return undefined;
  return (message.parts ?? [])
    .map((part) => (part.type === 'text' && typeof part.text === 'string' ? part.text : ''))
    .join('');
}
