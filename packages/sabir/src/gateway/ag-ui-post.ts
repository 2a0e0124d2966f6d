import { BAD_REQUEST, SabirError } from '../core/errors.ts';
import { hash128 } from '../core/hash.ts';
import { isObject, type Loose } from '../core/loose.ts';
import type { UIMessage } from '../core/message.ts';
import {
  type ChatPost,
  type GivingPost,
  type ToolOutput,
  type ToolResults,
  toChatPost,
} from './chat-post.ts';
import { questionOfInterrupt } from './interrupts.ts';

type Part = UIMessage['parts'][number];

const MAX_RUN_ID = 512;
/** Each answer is looked up in the log by itself. */
const MAX_ANSWERS = 200;

/**
 * What AG-UI's `RunAgentInput` asks for: the thread is the chat, the run names the request. Tools, context, state and
 * `forwardedProps` reach the agent as fields of its `body`.
 */
export async function toAgUiPost(
  { value: input, bytes }: Parameters<typeof toChatPost>[0],
  context: Parameters<typeof toChatPost>[1],
): Promise<ChatPost> {
  if (!isObject(input)) throw new SabirError(BAD_REQUEST, 'The body is not an object.');
  const { threadId, runId, messages, resume, ...rest } = input;
  checkId('threadId', threadId);
  checkId('runId', runId);
  if (!Array.isArray(messages)) throw new SabirError(BAD_REQUEST, 'messages is not an array.');
  const body = { ...rest, runId };
  if (resume !== undefined && resume !== null && !Array.isArray(resume)) {
    throw new SabirError(BAD_REQUEST, 'resume is not an array.');
  }
  const read = toUIMessages(messages);
  const results = resultsIn(read);
  const isResuming = resume && resume.length > 0;
  const said = isResuming ? answersIn(resume) : { answers: [] };
  const giving: GivingPost = {
    kind: 'answer',
    chatId: threadId as string,
    ...said,
    results,
    body,
  };
  const last = read.findLast(({ role }) => role !== 'system');
  if (isResuming && last?.role !== 'user') return giving;
  const value = { ...body, id: threadId, messages: read };
  const post = await toChatPost({ value, bytes }, context);
  const isGiving = isResuming || results.outputs.size > 0;
  if (post.kind !== 'prompt') return isGiving ? giving : post;
  // Another run is another request, also about the same message.
  const requestId = `${post.requestId}-${hash128(runId as string)}`;
  return {
    ...post,
    requestId,
    isWish: false,
    ...(isGiving && { answersFirst: { ...giving, isBeforePrompt: true } }),
  };
}

/** What an AG-UI client says of its run. */
export type AgUiSaid = {
  runId: string;
  /** Clients say their version since 1.0. */
  isBefore1: boolean;
  /** The names of the tools that the client runs. */
  tools: ReadonlySet<unknown>;
};

export function agUiRunOf({ body: { runId, protocolVersion, tools } }: ChatPost): AgUiSaid {
  const names = Array.isArray(tools) ? tools.map((tool) => isObject(tool) && tool.name) : [];
  return {
    runId: String(runId),
    isBefore1: typeof protocolVersion !== 'string',
    tools: new Set(names),
  };
}

/** The run that a GET continues, where its address names one. A client that says no version is older than 1.0, as in a POST. */
export function agUiRunIn({ searchParams }: URL): AgUiSaid | undefined {
  const runId = searchParams.get('runId');
  if (runId === null) return undefined;
  checkId('runId', runId);
  return { runId, isBefore1: !searchParams.has('protocolVersion'), tools: new Set() };
}

function checkId(name: string, id: unknown): void {
  if (typeof id === 'string' && id !== '' && id.length <= MAX_RUN_ID) return;
  throw new SabirError(BAD_REQUEST, `${name} is not a string of 1 to ${MAX_RUN_ID} characters.`);
}

/** All interrupts of a run have the same cursor: where the run was interrupted. */
function answersIn(resume: unknown[]): Pick<GivingPost, 'cursor' | 'answers'> {
  if (resume.length > MAX_ANSWERS) {
    throw new SabirError(BAD_REQUEST, `resume has more than ${MAX_ANSWERS} entries.`);
  }
  const read = resume.map((entry, i) => {
    const { interruptId, status, payload } = isObject(entry) ? entry : ({} as Loose);
    const asked = typeof interruptId === 'string' ? questionOfInterrupt(interruptId) : undefined;
    if (!asked) {
      throw new SabirError(
        BAD_REQUEST,
        `resume[${i}].interruptId is not the id of an interrupt of this server.`,
      );
    }
    // Taken for an answer, a status in another spelling would approve what it was meant to cancel.
    if (status !== 'resolved' && status !== 'cancelled') {
      throw new SabirError(
        BAD_REQUEST,
        `resume[${i}].status is neither "resolved" nor "cancelled".`,
      );
    }
    const { questionId, cursor } = asked;
    const isCancelled = status === 'cancelled';
    return {
      cursor,
      questionId,
      answer: isCancelled ? CANCELLED : (payload ?? true),
      output: isCancelled ? { errorText: TOOL_CANCELLED } : outputIn(payload),
    };
  });
  const answers = read.map(({ cursor: _, ...said }) => said);
  return { cursor: (read[0] as (typeof read)[0]).cursor, answers };
}

/** Cancelling is a no to an approval; an agent that asked something else can tell it from an answer. */
const CANCELLED = { approved: false, cancelled: true };

/** Whether an answer is how this wire reads a cancelled interrupt. */
export function isCancel(answer: unknown): boolean {
  return answer === CANCELLED;
}

const TOOL_CANCELLED = 'The user cancelled the tool.';

/** The payload is the output, unless it has exactly the shape of an answer to such a call. */
function outputIn(payload: unknown): ToolOutput {
  if (isObject(payload) && Object.keys(payload).length === 1) {
    if (payload.output !== undefined) return { output: payload.output };
    if (typeof payload.errorText === 'string') return { errorText: payload.errorText };
  }
  return { output: payload ?? null };
}

/** What the messages have of the tools of the last answer. */
function resultsIn(messages: UIMessage[]): ToolResults {
  const callIds: string[] = [];
  const outputs = new Map<string, ToolOutput>();
  const parts = messages.findLast(({ role }) => role === 'assistant')?.parts ?? [];
  for (const { toolCallId, state, output, errorText } of parts as Loose[]) {
    if (typeof toolCallId !== 'string') continue;
    callIds.push(toolCallId);
    if (state === 'output-available') outputs.set(toolCallId, { output: contentOf(output) });
    if (state === 'output-error') outputs.set(toolCallId, { errorText: String(errorText) });
  }
  return { callIds, outputs };
}

/** A tool message has structured data as JSON. A text that only looks like a number or a word of JSON stays a text. */
function contentOf(content: unknown): unknown {
  if (content === undefined) return null;
  if (typeof content !== 'string' || !/^\s*[{[]/.test(content)) return content;
  return jsonOr(content);
}

/**
 * AG-UI has a message for each text, each span of reasoning and each tool result of an answer; these become the
 * parts of one message, under the id of the first.
 */
function toUIMessages(messages: unknown[]): UIMessage[] {
  const read: UIMessage[] = [];
  const calls = new Map<string, Loose>();
  for (const [i, message] of messages.entries()) {
    const where = `messages[${i}]`;
    if (!isObject(message)) throw new SabirError(BAD_REQUEST, `${where} is not an object.`);
    const { role } = message;
    const id = typeof message.id === 'string' ? message.id : '';
    if (role === 'user') read.push({ id, role, parts: partsOf(message.content, where) });
    else if (role === 'system' || role === 'developer') {
      read.push({ id, role: 'system', parts: partsOf(message.content, where) });
    } else if (role === 'assistant' || role === 'reasoning' || role === 'tool') {
      const last = read.at(-1);
      const answer: UIMessage =
        last?.role === 'assistant' ? last : { id, role: 'assistant', parts: [] };
      if (answer !== last) read.push(answer);
      answer.parts.push(...answerPartsOf(message, calls));
    } else if (role !== 'activity') {
      throw new SabirError(BAD_REQUEST, `${where}.role is none of AG-UI's.`);
    }
  }
  return read;
}

function answerPartsOf({ role, content, ...more }: Loose, calls: Map<string, Loose>): Part[] {
  if (role === 'tool') {
    const call = calls.get(more.toolCallId as string);
    // A result without its call says nothing that a model could read.
    if (!call) return [];
    const errorText = typeof more.error === 'string' ? more.error : undefined;
    if (errorText !== undefined) Object.assign(call, { state: 'output-error', errorText });
    else Object.assign(call, { state: 'output-available', output: content });
    return [];
  }
  const parts: Loose[] = [];
  if (typeof content === 'string' && content !== '') {
    parts.push({ type: role === 'reasoning' ? 'reasoning' : 'text', text: content, state: 'done' });
  }
  for (const call of Array.isArray(more.toolCalls) ? more.toolCalls : []) {
    if (!isObject(call) || typeof call.id !== 'string' || !isObject(call.function)) continue;
    const { name: toolName, arguments: args } = call.function;
    const part: Loose = {
      type: 'dynamic-tool',
      toolCallId: call.id,
      toolName,
      state: 'input-available',
      // Arguments that were cut off stay a text.
      input: jsonOr(args),
    };
    calls.set(call.id, part);
    parts.push(part);
  }
  return parts as Part[];
}

/** The value of a JSON text, or what is no JSON as it is. */
function jsonOr(text: unknown): unknown {
  try {
    return JSON.parse(text as string);
  } catch {
    return text;
  }
}

function partsOf(content: unknown, where: string): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) {
    throw new SabirError(BAD_REQUEST, `${where}.content is neither a string nor an array.`);
  }
  return content.flatMap((part): Part[] => {
    if (!isObject(part)) throw new SabirError(BAD_REQUEST, `A part of ${where} is not an object.`);
    if (part.type === 'text') return [{ type: 'text', text: part.text } as Part];
    return isObject(part.source) ? fileOf(part.source) : [];
  });
}

/** Bytes, or an address of bytes. A handle that only a provider can read is left out, as AG-UI has it. */
function fileOf({ type, value, mimeType }: Loose): Part[] {
  if (typeof value !== 'string' || (type !== 'data' && type !== 'url')) return [];
  const mediaType = typeof mimeType === 'string' ? mimeType : 'application/octet-stream';
  const url = type === 'data' ? `data:${mediaType};base64,${value}` : value;
  return [{ type: 'file', url, mediaType }];
}
