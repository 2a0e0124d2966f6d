import { TURN_LOST } from '../../core/errors.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { UIMessage } from '../../core/message.ts';
import type { MessageMetadata, Usage } from '../../core/outcome.ts';
import type { Channel } from '../../core/translator.ts';
import type { MessagePart } from '../../sources/agent-ops/events.ts';
import type { AnswerMessage, PromptFile, PromptMessage } from './events.ts';
import { toDataState, toFileState, toMetadataState, toSourceState } from './parts.ts';
import { toQuestionFields, toV2Answer } from './question-events.ts';
import { NO_RESULT, NOT_APPROVED } from './tool-updates.ts';

/** A part of a message, of whatever kind. */
type Part = Loose & { type: string };
type PartOf<Type> = Extract<MessagePart, { type: Type }>;
type Finish = PartOf<'finish'>['reason'];

export type AnswerInfo = {
  /** The id of the message that is answered. Without it, readers take only texts and tool calls. */
  promptId?: string;
  channel?: Channel;
  /** Seconds since 1970. */
  createdAt: number;
  /** The turn has ended: no call stays open and no question waits. */
  isOver: boolean;
};

/**
 * An answer as deployed clients get it whole. `toHistory` of `sources/agent-ops` reads it back.
 *
 * Of a turn that failed, `metadata.reason` is the text that people are shown: it is not in the fold of
 * the turn's chunks, because an `error` chunk changes no message.
 */
export function toSessionMessage(message: UIMessage, info: AnswerInfo): AnswerMessage {
  const { promptId, channel, createdAt, isOver } = info;
  return {
    id: message.id,
    role: 'assistant',
    content: textOf(message),
    parts: [...toParts(message.parts as Part[], isOver), ...toEnd(message.metadata, isOver)],
    createdAt,
    ...channel,
    ...(promptId !== undefined && { promptId }),
  };
}

export type PromptInfo = {
  channel?: Channel;
  /** Seconds since 1970. */
  createdAt: number;
  author?: { id: string; name?: string };
};

/** A prompt as deployed clients get it: its text, and its files as parts. */
export function toUserSessionMessage(message: UIMessage, info: PromptInfo): PromptMessage {
  const { channel, createdAt, author } = info;
  const files = (message.parts as Part[]).flatMap(toPromptFile);
  return {
    id: message.id,
    role: 'user',
    content: textOf(message),
    createdAt,
    ...(files.length > 0 && { parts: files }),
    ...(author && { authorId: author.id }),
    ...(author?.name !== undefined && { authorName: author.name }),
    ...channel,
  };
}

function textOf({ parts }: UIMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function toPromptFile({ type, url, mediaType, filename }: Part): PromptFile[] {
  if (type !== 'file' || typeof url !== 'string' || typeof mediaType !== 'string') return [];
  return [{ type, mime: mediaType, url, ...(typeof filename === 'string' && { filename }) }];
}

function toParts(given: readonly Part[], isOver: boolean): MessagePart[] {
  const parts: MessagePart[] = [];
  let isStepEmpty = true;
  for (const [at, part] of given.entries()) {
    if (part.type === 'step-start') {
      if (!isStepEmpty) parts.push({ type: 'step' });
      isStepEmpty = true;
      continue;
    }
    const written = toPart(part, isOver);
    if (!written) continue;
    if (!isOver && part.state === 'done' && !isCutOff(given, at)) {
      (written as PartOf<'text'>).streaming = false;
    }
    parts.push(written);
    isStepEmpty = false;
  }
  return parts;
}

/** Whether a part behind a text shows that the text has ended. Sources and data stand beside a text. */
function isCutOff(parts: readonly Part[], at: number): boolean {
  const next = parts.slice(at + 1).find(({ type }) => !isBeside(type));
  return next !== undefined && next.type !== parts[at]?.type;
}

function isBeside(type: string): boolean {
  if (type === 'data-question') return false;
  return /^(source-|data-|custom$|steering-message$)/.test(type);
}

function toPart(part: Part, isOver: boolean): MessagePart | undefined {
  const { type, text } = part;
  switch (type) {
    case 'text':
    case 'reasoning':
      return text === '' ? undefined : { type, text: text as string };
    case 'file':
    case 'reasoning-file':
      return { type: 'file', ...toFileState(part) };
    case 'source-url':
    case 'source-document': {
      const source = toSourceState(part);
      return source && { type: 'source', ...source };
    }
    case 'data-question':
      return toQuestion(part, isOver);
    case 'dynamic-tool':
      return toCall(part, part.toolName as string, isOver);
  }
  if (type.startsWith('tool-')) return toCall(part, type.slice('tool-'.length), isOver);
  const data = toDataState(part);
  return data && { type: 'data', ...data };
}

function toQuestion({ id, data }: Part, isOver: boolean): MessagePart | undefined {
  if (!isObject(data)) return undefined;
  const questionId = id ?? data.questionId;
  if (typeof questionId !== 'string') return undefined;
  const { status = 'open' } = data;
  const answer = toV2Answer(data.answer);
  return {
    type: 'question',
    ...toQuestionFields(questionId, data),
    status: (isOver && status === 'open' ? 'withdrawn' : status) as PartOf<'question'>['status'],
    ...(answer !== undefined && { answer }),
  };
}

function toCall(part: Part, toolName: string, isOver: boolean): PartOf<'tool-call'> {
  const { toolCallId, state, preliminary, output, errorText, approval } = part;
  const call = { type: 'tool-call', callId: toolCallId as string, toolName } as const;
  const args = part.input ?? {};
  switch (state) {
    case 'output-available':
      if (preliminary === true && !isOver) return { ...call, status: 'running', args };
      return { ...call, status: 'completed', args, result: output };
    case 'output-error':
      return { ...call, status: 'error', args, error: errorText };
    case 'output-denied': {
      const { reason } = isObject(approval) ? approval : ({} as Loose);
      return { ...call, status: 'error', args, error: reason || NOT_APPROVED };
    }
  }
  if (isOver) return { ...call, status: 'error', args, error: NO_RESULT };
  // The arguments of a call that is still being written are not known.
  return state === 'input-streaming'
    ? { ...call, status: 'pending' }
    : { ...call, status: 'running', args };
}

function toEnd(given: unknown, isOver: boolean): MessagePart[] {
  const metadata: MessageMetadata = isObject(given) ? given : {};
  const others = toMetadataState(metadata);
  const parts: MessagePart[] = others ? [{ type: 'data', ...others }] : [];
  if (isObject(metadata.usage)) parts.push({ type: 'usage', usage: metadata.usage as Usage });
  if (!isOver) return parts;
  const reason = toFinish(metadata.outcome);
  if (reason === 'error') {
    const code = metadata.outcome === 'lost' ? TURN_LOST.code : metadata.code;
    parts.push({ type: 'error', message: metadata.reason ?? '', ...(code && { code }) });
  }
  return [...parts, { type: 'finish', reason }];
}

function toFinish(outcome: MessageMetadata['outcome']): Finish {
  if (outcome === 'stopped') return 'canceled';
  return outcome === 'failed' || outcome === 'lost' ? 'error' : 'end_turn';
}
