import { isObject, type Loose } from '../core/loose.ts';
import type { RunnerCommand } from './protocol.ts';

const isString = (value: unknown) => typeof value === 'string';
const isFile = (value: unknown) => isObject(value) && isString(value.mime) && isString(value.url);
const isOptional = (value: unknown, is: (given: unknown) => boolean) =>
  value === undefined || is(value);

const KNOWN: Record<RunnerCommand['type'], (command: Loose) => boolean> = {
  init: ({ data }) => isObject(data) && Number.isSafeInteger(data.lastRunnerSeq),
  prompt: ({ turnId, content, attachments, messages, author, ...more }) =>
    isString(turnId) &&
    isString(content) &&
    isOptional(more.messageId, isString) &&
    isOptional(more.channelType, isString) &&
    isOptional(more.channelId, isString) &&
    isOptional(more.model, isString) &&
    isOptional(more.traceparent, isString) &&
    isOptional(attachments, (files) => Array.isArray(files) && files.every(isFile)) &&
    isOptional(messages, Array.isArray) &&
    isOptional(author, isObject),
  abort: ({ turnId }) => isString(turnId),
  answer: ({ questionId, answer }) =>
    isString(questionId) && (isString(answer) || typeof answer === 'boolean'),
  // Anything but a number would confirm all that was ever said, and lose what was not heard.
  ack: ({ runnerSeq }) => Number.isSafeInteger(runnerSeq),
  pong: () => true,
};

/** What a session tells its runner; nothing where it makes no sense. */
export function readRunnerCommand(event: unknown): RunnerCommand | undefined {
  if (!isObject(event)) return undefined;
  const { type } = event;
  const isKnown = typeof type === 'string' && Object.hasOwn(KNOWN, type);
  return isKnown && KNOWN[type as RunnerCommand['type']](event)
    ? (event as RunnerCommand)
    : undefined;
}
