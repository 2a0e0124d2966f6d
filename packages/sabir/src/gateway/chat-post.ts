import { type Trigger, toChatRequest } from '../core/chat-request.ts';
import {
  ATTACHMENTS_TOO_LARGE,
  BAD_REQUEST,
  BODY_TOO_LARGE,
  NO_USER_MESSAGE,
  SabirError,
} from '../core/errors.ts';
import { hash128 } from '../core/hash.ts';
import { isObject } from '../core/loose.ts';
import type { UIMessage } from '../core/message.ts';
import type { Channel } from '../core/translator.ts';
import type { Attachment, User } from '../turns/upstream.ts';
import type { GatewayLimits } from './options.ts';
import type { Cursor } from './visit.ts';

/** What a POST asks for. */
export type ChatPost =
  | {
      kind: 'prompt';
      chatId: string;
      text: string;
      attachments: Attachment[];
      messages: UIMessage[];
      /** The message that is to be answered. */
      userMessage: UIMessage;
      trigger: Trigger;
      /** The message to regenerate or edit, where the client names one. */
      replaces?: string;
      body: Record<string, unknown>;
      /** The same for the same request sent again, and for no other. */
      requestId: string;
      /**
       * Nothing names what is asked for: a message without an id, or another answer that does not say
       * which it replaces. Once that wish has been granted, the same request is the next wish.
       */
      isWish: boolean;
      /** What the client answers before it prompts. */
      answersFirst?: GivingPost;
    }
  /** A client reports on the tools of a message: nothing to prompt. What it reports may answer a question. */
  | {
      kind: 'acknowledge';
      chatId: string;
      messageId: string;
      reports: ToolReport[];
      body: Record<string, unknown>;
    }
  /** Answers to what a turn has asked. */
  | {
      kind: 'answer';
      chatId: string;
      /** How much of the turn the client has, where it names the questions. */
      cursor?: Cursor;
      answers: SaidAnswer[];
      /** What the client's messages have of tools: answers where a turn waits for these. */
      results: ToolResults;
      /** A message of the user follows, which is prompted. */
      isBeforePrompt?: boolean;
      body: Record<string, unknown>;
    };

/** An answer, and what it is for a question that is a tool call to be run by a client. */
export type SaidAnswer = { questionId: string; answer: unknown; output?: ToolOutput };

export type ToolOutput = { output: unknown } | { errorText: string };

/** The calls of a client's last answer, and the outputs that it has of them. */
export type ToolResults = { callIds: string[]; outputs: Map<string, ToolOutput> };

export type PromptPost = Extract<ChatPost, { kind: 'prompt' }>;
export type GivingPost = Extract<ChatPost, { kind: 'answer' }>;

/** What a client says of a tool call: that a person approved it or not, or what came of it in the client. */
export type ToolReport = {
  /** The approval's id, or that of a call whose output this is. */
  questionId: string;
  toolCallId: string;
  answer: { approved: boolean; reason?: string } | ToolOutput;
};

type SizeLimits = Pick<GatewayLimits, 'bodyBytes' | 'attachmentBytes'>;

/** A client that names no chat has one. */
const ONLY_CHAT = 'default';

/** What a body asks for; throws a `SabirError` that says what is wrong with it. */
export async function toChatPost(
  { value, bytes }: { value: unknown; bytes: number },
  { user, channel, limits }: { user: User; channel: Channel | undefined; limits: SizeLimits },
): Promise<ChatPost> {
  const { chatId = ONLY_CHAT, messages, trigger, messageId, body } = toChatRequest(value);
  checkSizes(messages, bytes, limits);
  if (chatId === '' || chatId.length > 512) {
    throw new SabirError(BAD_REQUEST, 'id is empty or longer than 512 characters.');
  }
  const last = messages.at(-1);
  if (last?.role === 'assistant' && trigger === 'submit-message') {
    // An empty id would become that of the message on the client's screen.
    if (last.id === '') {
      throw new SabirError(BAD_REQUEST, `messages[${messages.length - 1}] has no id.`);
    }
    const reports = last.parts.flatMap(reportOf);
    return { kind: 'acknowledge', chatId, messageId: last.id, reports, body };
  }
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const message = messages[at];
  if (!message) throw new SabirError(NO_USER_MESSAGE, 'messages has none with role "user".');
  const { text, attachments } = contentOf(message, `messages[${at}]`);
  if (text.trim() === '' && attachments.length === 0) {
    throw new SabirError(NO_USER_MESSAGE, `messages[${at}] has neither text nor files.`);
  }
  // Messages without ids are told apart by their place.
  const which = [message.id || at, message.parts, messageId ?? null, channel ?? null];
  return {
    kind: 'prompt',
    chatId,
    text,
    attachments,
    messages,
    userMessage: message,
    trigger,
    ...(messageId !== undefined && { replaces: messageId }),
    body,
    requestId: nameOf(user.id, [trigger, ...which]),
    // A stock client that regenerates names no message, or the user's own.
    isWish:
      message.id === '' ||
      (trigger === 'regenerate-message' && (!messageId || messageId === message.id)),
  };
}

/** What a user's message says, and the files that it brings. */
export function contentOf(message: UIMessage | undefined, where = 'The message') {
  let text = '';
  const attachments: Attachment[] = [];
  for (const [i, part] of message?.parts.entries() ?? []) {
    attachments.push(...attachmentOf(part, `${where}.parts[${i}]`));
    if (part.type !== 'text') continue;
    if (typeof part.text !== 'string') {
      throw new SabirError(BAD_REQUEST, `${where}.parts[${i}].text is not a string.`);
    }
    text += part.text;
  }
  return { text, attachments };
}

function attachmentOf(part: UIMessage['parts'][number], where: string): Attachment[] {
  if (part.type !== 'file') return [];
  const { url, mediaType, filename } = part;
  if (typeof url !== 'string') throw new SabirError(BAD_REQUEST, `${where}.url is not a string.`);
  if (typeof mediaType !== 'string') {
    throw new SabirError(BAD_REQUEST, `${where}.mediaType is not a string.`);
  }
  return [{ url, mediaType, ...(typeof filename === 'string' && { filename }) }];
}

/** As a client keeps it until it hears more of the call; what has another shape says nothing. */
function reportOf(part: UIMessage['parts'][number]): ToolReport[] {
  const { state, approval, toolCallId, providerExecuted, output, errorText } = part as Record<
    string,
    unknown
  >;
  if (typeof toolCallId !== 'string') return [];
  if (state === 'approval-responded' && isObject(approval)) {
    const { id: questionId, approved, reason } = approval;
    if (typeof questionId !== 'string' || typeof approved !== 'boolean') return [];
    const answer = { approved, ...(typeof reason === 'string' && { reason }) };
    return [{ questionId, toolCallId, answer }];
  }
  if (providerExecuted === true) return [];
  const asked = { questionId: toolCallId, toolCallId };
  if (state === 'output-available' && output !== undefined)
    return [{ ...asked, answer: { output } }];
  const isError = state === 'output-error' && typeof errorText === 'string';
  return isError ? [{ ...asked, answer: { errorText } }] : [];
}

/** Files come inside the body, as `data:` URLs: each kind is held to its own limit. */
function checkSizes(messages: UIMessage[], bytes: number, limits: SizeLimits): void {
  let files = 0;
  for (const { parts } of messages) {
    for (const part of parts) {
      if (part.type === 'file' && typeof part.url === 'string') files += part.url.length;
    }
  }
  if (files > limits.attachmentBytes) {
    throw new SabirError(
      ATTACHMENTS_TOO_LARGE,
      `The attached files are larger than ${limits.attachmentBytes} bytes together.`,
    );
  }
  if (bytes - files > limits.bodyBytes) {
    throw new SabirError(
      BODY_TOO_LARGE,
      `The body is larger than ${limits.bodyBytes} bytes without its files.`,
    );
  }
}

const USER_LENGTH = 16;
const REQUEST_NAME = /^[0-9a-f]{48}/;

/** The user's part is hashed alone, so that one user's text cannot collide with another user's request. */
function nameOf(userId: string, which: unknown[]): string {
  return userPartOf(userId) + hash128(JSON.stringify(which));
}

/** The part of a request's id that all requests about the same message share, of all users; undefined if it names no message. */
export function messageNameIn(requestId: string): string | undefined {
  return REQUEST_NAME.exec(requestId)?.[0].slice(USER_LENGTH);
}

/**
 * The id of the answer to one attempt of a client that names its attempts: a client sends an attempt again under the same
 * name. A regenerate is the same request each time, so that a turn of an earlier attempt is told apart by this id.
 */
export function answerIdOf({ requestId }: PromptPost, attempt: string): string {
  return hash128(JSON.stringify([requestId, attempt]));
}

export function isAskedBy(requestId: string, userId: string): boolean {
  return requestId.startsWith(userPartOf(userId));
}

function userPartOf(userId: string): string {
  return hash128(userId).slice(0, USER_LENGTH);
}
