/**
 * What V2 cannot carry of a turn, in one table: each line takes a message to what arrives instead.
 * Everything that no line names has to arrive as it was.
 */
import type { Chunk } from '../src/core/chunks.ts';
import { RUN_FAILED, TURN_LOST } from '../src/core/errors.ts';
import { foldChunks } from '../src/core/fold.ts';
import type { UIMessage } from '../src/core/message.ts';
import { comparable } from './comparable.ts';

// biome-ignore lint/suspicious/noExplicitAny: parts and metadata of every kind
type Any = Record<string, any>;
type Message = { id: string; role: string; parts: Any[]; metadata?: Any };
type About = {
  isOver: boolean;
  /** By events as they come, or as one stored message. */
  way: 'events' | 'message';
  finishReason?: string | undefined;
  errorText?: string | undefined;
};
type Loss = [what: string, instead: string, apply: (message: Message, about: About) => void];

const isCall = ({ type }: Any) => type === 'dynamic-tool' || type.startsWith('tool-');
const isText = ({ type }: Any) => type === 'text' || type === 'reasoning';
const isQuestion = ({ type }: Any) => type === 'data-question';
const OPEN = ['input-streaming', 'input-available', 'approval-requested', 'approval-responded'];
const NO_RESULT = 'The tool gave no result.';
const COUNTS = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
];

function each(message: Message, is: (part: Any) => boolean, change: (part: Any) => void): void {
  for (const part of message.parts) if (is(part)) change(part);
}

function keep(message: Message, is: (part: Any, at: number, parts: Any[]) => boolean): void {
  message.parts = message.parts.filter(is);
}

const LOSSES: Loss[] = [
  [
    'custom parts and steering messages',
    'data under the name of their type',
    (message) => {
      message.parts = message.parts.map((part) => {
        const { type, id, ...data } = part;
        if (type !== 'custom' && type !== 'steering-message') return part;
        return { type: `data-${type}`, ...(id && { id }), data };
      });
    },
  ],
  [
    'the metadata of providers',
    'nothing',
    (message) =>
      each(
        message,
        () => true,
        (part) => {
          for (const key of ['providerMetadata', 'callProviderMetadata', 'resultProviderMetadata'])
            delete part[key];
        },
      ),
  ],
  [
    'where a tool runs, and that it is dynamic',
    'a static tool that runs with the agent',
    (message) =>
      each(message, isCall, (part) => {
        if (part.type === 'dynamic-tool') part.type = `tool-${part.toolName}`;
        delete part.toolName;
        part.providerExecuted = true;
      }),
  ],
  [
    'approvals of calls',
    'a call that runs, or failed with the reason of the refusal',
    (message) =>
      each(message, isCall, (part) => {
        if (part.state === 'output-denied') {
          part.state = 'output-error';
          part.errorText = part.approval?.reason || 'It was not approved.';
          delete part.output;
          delete part.preliminary;
        } else if (part.state.startsWith('approval-')) part.state = 'input-available';
        delete part.approval;
      }),
  ],
  [
    'arguments that are null, and arguments of a call that failed before they were complete',
    'no arguments: {}',
    (message, { way }) =>
      each(message, isCall, (part) => {
        const isIncomplete = part.rawInput !== undefined && part.state === 'output-error';
        if (part.state === 'input-streaming') return;
        if (isIncomplete && way === 'events') part.input = {};
        part.input ??= {};
        delete part.rawInput;
      }),
  ],
  [
    'arguments that stream in and are no object, and white space before them',
    'the brace that is there from the beginning',
    (message) =>
      each(
        message,
        ({ state }) => state === 'input-streaming',
        (part) => {
          const text = (part.rawInput ?? '').trimStart();
          part.rawInput = text.startsWith('{') ? text : '{';
          if (part.rawInput === '{') part.input = {};
        },
      ),
  ],
  [
    'an error of a tool without a text',
    'a text that says as much',
    (message) =>
      each(message, isCall, (part) => {
        if (part.errorText === '') part.errorText = 'The tool failed.';
      }),
  ],
  [
    'outputs that are not the last',
    'a call that runs, until the turn ends with that output',
    (message, { isOver }) =>
      each(
        message,
        ({ preliminary }) => preliminary === true,
        (part) => {
          delete part.preliminary;
          if (isOver) return;
          delete part.output;
          part.state = 'input-available';
        },
      ),
  ],
  [
    'that the call of an open question ended',
    'a question that was answered',
    (message, { way }) =>
      each(message, isQuestion, ({ data }) => {
        const call = message.parts
          .filter(isCall)
          .find((part) => part.toolCallId === data.toolCallId);
        const hasEnded = call?.state.startsWith('output-') && call.errorText !== NO_RESULT;
        if (way === 'events' && data.status === 'open' && hasEnded) data.status = 'answered';
      }),
  ],
  [
    'calls and questions that are open when the turn ends',
    'a call that failed, a question that was withdrawn',
    (message, { isOver }) => {
      if (!isOver) return;
      each(
        message,
        (part) => isCall(part) && OPEN.includes(part.state),
        (part) => {
          if (part.state === 'input-streaming') part.input = {};
          delete part.rawInput;
          part.state = 'output-error';
          part.errorText = NO_RESULT;
        },
      );
      each(message, isQuestion, ({ data }) => {
        if (data.status === 'open') data.status = 'withdrawn';
      });
    },
  ],
  [
    'milliseconds of a question, answers that are no text',
    'whole seconds, an answer as text',
    (message) =>
      each(message, isQuestion, ({ data }) => {
        if (data.expiresAt !== undefined) data.expiresAt -= data.expiresAt % 1_000;
        const { approved = data.answer } = Object(data.answer);
        if (data.answer !== undefined) data.answer = String(approved);
      }),
  ],
  [
    'files of reasoning',
    'files',
    (message) =>
      each(
        message,
        ({ type }) => type === 'reasoning-file',
        (part) => {
          part.type = 'file';
        },
      ),
  ],
  [
    'the place in the queue, which the session tells',
    'nothing',
    (message) => keep(message, ({ type }) => type !== 'data-queue'),
  ],
  [
    'texts without a word',
    'nothing',
    (message) => keep(message, (part) => !isText(part) || part.text !== ''),
  ],
  [
    'steps in which no part begins, and an answer without steps',
    'no such step, and a first step in any case',
    (message) => {
      message.parts.unshift({ type: 'step-start' });
      keep(message, ({ type }, at, parts) => type !== 'step-start' || parts[at - 1]?.type !== type);
    },
  ],
  [
    'other metadata, and that an answer was cut short',
    'data at the end of the turn',
    (message, { isOver, finishReason, way }) => {
      const { outcome: _, reason: __, code: ___, usage: ____, ...others } = message.metadata ?? {};
      const isShort = ['length', 'content-filter', 'interrupted'].includes(finishReason ?? '');
      if (isShort && way === 'events') others.finishReason = finishReason;
      if (!isOver || Object.keys(others).length === 0) return;
      const name = 'message-metadata';
      message.parts.push({ type: `data-${name}`, id: name, data: others });
    },
  ],
  [
    'why a turn was stopped, that it is paused or lost, a failure without a code',
    'canceled; finished; failed, each with a code',
    (message, about) => {
      const { isOver, finishReason, errorText, way } = about;
      const { outcome, code, usage } = message.metadata ?? {};
      delete message.metadata;
      if (!isOver) return;
      const metadata: Any = {};
      const hasFailed =
        outcome === undefined
          ? errorText !== undefined || finishReason === 'error'
          : outcome === 'failed' || outcome === 'lost';
      if (hasFailed) {
        metadata.outcome = 'failed';
        metadata.code = outcome === 'lost' ? TURN_LOST.code : (code ?? RUN_FAILED.code);
        if (way === 'message') metadata.reason = errorText || RUN_FAILED.userMessage;
      } else if (outcome === 'stopped') {
        metadata.outcome = 'stopped';
        metadata.reason = 'canceled';
      } else metadata.outcome = 'finished';
      if (usage) {
        metadata.usage = Object.fromEntries(
          Object.entries(usage).filter(([key]) => COUNTS.includes(key)),
        );
      }
      message.metadata = metadata;
    },
  ],
];

const isBeside = (part: Any) => /^(source-|data-)/.test(part.type) && !isQuestion(part);

/**
 * A loss of the events alone: where a text ends and the next begins, if nothing but sources and data
 * stands between them. Applies to both sides, because the arguments of an earlier call end a text too.
 */
export function withJoinedTexts(given: unknown): unknown {
  const message = structuredClone(given) as Message;
  let last: Any | undefined;
  keep(message, (part) => {
    if (isBeside(part)) return true;
    const isMore = isText(part) && last?.type === part.type;
    if (isMore && last) Object.assign(last, { text: last.text + part.text, state: part.state });
    else last = part;
    return !isMore;
  });
  return message;
}

/** The message of a turn as it arrives by V2, in the given way. */
export function carriedByV2(chunks: Chunk[], way: About['way']): unknown {
  const last = chunks.find(({ type }) => type === 'finish' || type === 'error');
  const about: About = {
    isOver: last !== undefined,
    way,
    finishReason: last?.type === 'finish' ? last.finishReason : undefined,
    errorText: last?.type === 'error' ? last.errorText : undefined,
  };
  const message = comparable(foldChunks(chunks)) as Message;
  for (const [, , apply] of LOSSES) apply(message, about);
  return comparable(message as unknown as UIMessage);
}
