import { BAD_REQUEST, type ErrorKind } from '../../core/errors.ts';
import { createJsonMeter } from '../../core/json-limits.ts';
import type { Loose } from '../../core/loose.ts';
import type { PromptFile } from './events.ts';
import type { ClientMessage } from './protocol.ts';

const MAX_ID_LENGTH = 200;
/** A prompt with 1,000 files has about 5,000. */
const MAX_NODES = 10_000;

const isId = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_ID_LENGTH;
const isOptional = (value: unknown, is: (given: unknown) => boolean) =>
  value === undefined || is(value);
const isString = (value: unknown): value is string => typeof value === 'string';

/** Version, trace id, parent id, flags. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
const isTraceparent = (value: unknown) => isString(value) && TRACEPARENT.test(value);

const KNOWN: Record<ClientMessage['type'], (message: Loose) => boolean> = {
  prompt: ({ content, promptId, turnId, model, attachments, channelType, channelId, ...more }) =>
    isString(content) &&
    isOptional(promptId, isId) &&
    isOptional(turnId, isId) &&
    isOptional(model, isString) &&
    isOptional(attachments, areFiles) &&
    isOptional(channelType, isId) &&
    isOptional(channelId, isId) &&
    isOptional(more.traceparent, isTraceparent) &&
    (content !== '' || (Array.isArray(attachments) && attachments.length > 0)),
  withdraw: ({ promptId }) => isId(promptId),
  abort: ({ turnId, promptId }) => isOptional(turnId, isId) && isOptional(promptId, isId),
  answer: ({ questionId, answer }) =>
    isId(questionId) && (typeof answer === 'boolean' || (isString(answer) && isFit(answer))),
  follow: ({ turnId, after }) => isId(turnId) && isOptional(after, Number.isSafeInteger),
  ping: () => true,
};

const MAX_ANSWER_LENGTH = 64_000;
/** What deployed sessions send their runners for a question that expired: no person may answer with it. */
const EXPIRED_ANSWER = '__expired__';

function isFit(answer: string): boolean {
  return answer.length <= MAX_ANSWER_LENGTH && answer !== EXPIRED_ANSWER;
}

function areFiles(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((file: Partial<PromptFile> | null) => isString(file?.mime) && isString(file?.url))
  );
}

/** The ids in a request, also of one that makes no sense, so that its sender can tell which one was refused. */
type About = { refused: string; promptId?: string; questionId?: string; turnId?: string };
export type ReadClientMessage = { about: About } & (
  | { message: ClientMessage; problem?: undefined }
  | { problem: ErrorKind }
);

export function readClientMessage(frame: string): ReadClientMessage {
  let message: Loose;
  try {
    const problem = createJsonMeter({ nodes: MAX_NODES }).push(frame);
    message = problem ? {} : Object(JSON.parse(frame));
  } catch {
    message = {};
  }
  const { type, promptId, questionId, turnId } = message;
  const about: About = {
    refused: typeof type === 'string' ? type.slice(0, MAX_ID_LENGTH) : '',
    ...(isId(promptId) && { promptId }),
    ...(isId(questionId) && { questionId }),
    ...(isId(turnId) && { turnId }),
  };
  const isKnown = typeof type === 'string' && Object.hasOwn(KNOWN, type);
  const isSound = isKnown && KNOWN[type as ClientMessage['type']](message);
  return isSound ? { about, message: message as ClientMessage } : { about, problem: BAD_REQUEST };
}
