import type { Chunk } from '../../core/chunks.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { Translator } from '../../core/translator.ts';
import type { Answer } from '../../turns/log.ts';
import type { Prompt } from '../../turns/upstream.ts';
import { SHAPES, V2_TYPES } from './event-shapes.ts';
import type { TurnEventType } from './events.ts';
import { toAnswer, toFiles } from './to-server.ts';
import { createAgentOpsTranslator } from './translate.ts';

/** What a deployed session sends its runner for a question whose time ran out. */
const EXPIRED_ANSWER = '__expired__';

/** Events about a turn that are not part of it. */
const ABOUT_TURN: ReadonlySet<string> = new Set(['complete', 'aborted', 'error', 'agentStatus']);

type V2Said =
  | { kind: 'turn'; events: unknown[] }
  | { kind: 'event'; event: Loose & { type: string } }
  | { kind: 'ping' }
  | { kind: 'malformed'; type: string };

type V2DialectOptions = {
  /** How long people have for an answer, unless the runner says otherwise. */
  questionMs: number;
  now(): number;
  /** A translator of chunks that has seen what is written. */
  createTranslator(prompt: Prompt, written: readonly Chunk[]): Translator<unknown>;
};

/** How a session talks with a deployed Agent Ops runner, which names its turns itself and says no hello. */
export function createV2RunnerDialect({ questionMs, now, createTranslator }: V2DialectOptions) {
  return {
    saysHello: false,
    mustEndFirst: true,
    toInit: () => undefined,
    toPrompt({ promptId, messageId, text, attachments, channel, body, user, traceparent }: Prompt) {
      const { model } = body;
      const { id, name } = user;
      const files = toFiles(attachments);
      return {
        type: 'prompt',
        messageId: promptId,
        turnId: messageId,
        content: text,
        ...channel,
        ...(typeof model === 'string' && { model }),
        ...(traceparent !== undefined && { traceparent }),
        ...(files.length > 0 && { attachments: files }),
        author: { id, ...(typeof name === 'string' && { name }) },
      };
    },
    toStop: ({ promptId, messageId }: Prompt) => ({
      type: 'abort',
      turnId: messageId,
      messageId: promptId,
    }),
    toAnswer: (_: Prompt, { questionId, answer }: Answer) => ({
      type: 'answer',
      questionId,
      answer: toAnswer(answer),
    }),
    toExpiry: (_: Prompt, questionId: string) => ({
      type: 'answer',
      questionId,
      answer: EXPIRED_ANSWER,
    }),
    /** A deployed runner does not say how its questions ended: the session's own event does. */
    settled: (questionId: string, answer?: unknown) =>
      answer === undefined
        ? { type: 'status', data: { questionExpired: questionId } }
        : { type: 'status', data: { questionAnswered: questionId, answer: toAnswer(answer) } },
    createTranslator(prompt: Prompt, written: readonly Chunk[]): Translator<unknown> {
      const { messageId, errorText } = prompt;
      const v2 = createAgentOpsTranslator({
        dialect: 'v2',
        messageId,
        ...(errorText && { errorText }),
      });
      return written.length > 0 ? chain(v2, createTranslator(prompt, written)) : v2;
    },
    read(value: unknown): V2Said {
      if (!isObject(value) || typeof value.type !== 'string') {
        return { kind: 'malformed', type: '(no type)' };
      }
      const { type } = value;
      if (type === 'ping') return { kind: 'ping' };
      const isOfTurn = V2_TYPES.has(type) || ABOUT_TURN.has(type) || type === 'question';
      if (!isOfTurn) return { kind: 'event', event: value as Loose & { type: string } };
      if (!SHAPES[type as TurnEventType](value)) return { kind: 'malformed', type };
      const isUntimed = type === 'question' && value.expiresAt === undefined;
      const timed = isUntimed ? { ...value, expiresAt: (now() + questionMs) / 1_000 } : value;
      return { kind: 'turn', events: [timed] };
    },
  };
}

/**
 * V2 events → chunks that follow those which are written. The V2 translator knows nothing of them; the second one mends
 * what does not fit, such as a second `start` or words that go on in a part that is open.
 */
function chain(v2: Translator<unknown>, written: Translator<unknown>): Translator<unknown> {
  return {
    get ended() {
      return written.ended;
    },
    stats: v2.stats,
    push: (event) => v2.push(event).flatMap((chunk) => written.push(chunk)),
    end: (outcome) => written.end(outcome),
  };
}
