import { BAD_REQUEST, BODY_TOO_LARGE, SabirError } from './errors.ts';
import {
  createJsonMeter,
  JSON_DEPTH,
  JSON_NODES,
  type JsonProblem,
  NODE_BYTES,
} from './json-limits.ts';
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
  return toChatRequest((await readJson(request, { bodyBytes: maxBodyBytes })).value);
}

/** The same of a body that is read already. */
export function toChatRequest(json: unknown): ChatRequest {
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

export type BodyLimits = {
  /** A body without the files in it. */
  bodyBytes: number;
  /** The files, which are `data:` URLs inside the body. Default 0: they count as any other text. */
  attachmentBytes?: number;
  /** A body may be empty, and is then undefined. @default false */
  isOptional?: boolean;
};

/**
 * The body of a request, and how many bytes it had. `onBytes` gets the size of each piece before it is kept, then what
 * the body will take beside its text once it is parsed, and ends the reading by throwing.
 */
export async function readJson(
  request: Request,
  limits: BodyLimits,
  onBytes?: (bytes: number) => void,
): Promise<{ value: unknown; bytes: number }> {
  try {
    const { text, bytes } = await readText(request, limits, onBytes);
    return { value: limits.isOptional && text === '' ? undefined : JSON.parse(text), bytes };
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

const PIECES_A_BLOCK = 1_000;

/**
 * Refuses by the declared length before it reads, then measures while it reads: a body need not
 * declare its length, and declares nothing of its structure.
 */
async function readText(
  request: Request,
  { bodyBytes, attachmentBytes = 0 }: BodyLimits,
  onBytes?: (bytes: number) => void,
): Promise<{ text: string; bytes: number }> {
  const maxBytes = bodyBytes + attachmentBytes;
  const tooLarge = () =>
    new SabirError(BODY_TOO_LARGE, `The body is larger than ${maxBytes} bytes.`);
  if (Number(request.headers.get('content-length')) > maxBytes) throw tooLarge();
  const decoder = new TextDecoder();
  const meter = createJsonMeter({ length: bodyBytes });
  const blocks: string[] = [];
  const pieces: string[] = [];
  const add = (piece: string) => {
    const problem = meter.push(piece);
    if (problem) throw refuseJson(problem, bodyBytes);
    // Thousands of tiny chunks would take more memory as pieces than as text.
    if (pieces.push(piece) === PIECES_A_BLOCK) blocks.push(pieces.splice(0).join(''));
  };
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw tooLarge();
    onBytes?.(chunk.byteLength);
    add(decoder.decode(chunk, { stream: true }));
  }
  add(decoder.decode());
  onBytes?.(meter.nodes * NODE_BYTES);
  return { text: blocks.join('') + pieces.join(''), bytes };
}

function refuseJson(problem: JsonProblem, maxBytes: number): SabirError {
  if (problem === 'too-deep') {
    return new SabirError(BAD_REQUEST, `The body nests deeper than ${JSON_DEPTH} levels.`);
  }
  return problem === 'too-long'
    ? new SabirError(BODY_TOO_LARGE, `The body is larger than ${maxBytes} bytes without its files.`)
    : new SabirError(BODY_TOO_LARGE, `The body has more than ${JSON_NODES} objects and fields.`);
}

/** The text of the last user message; undefined where there is none. */
export function lastUserText(messages: UIMessage[]): string | undefined {
  const message = messages.findLast(({ role }) => role === 'user');
  if (!message) return undefined;
  return (message.parts ?? [])
    .map((part) => (part.type === 'text' && typeof part.text === 'string' ? part.text : ''))
    .join('');
}
