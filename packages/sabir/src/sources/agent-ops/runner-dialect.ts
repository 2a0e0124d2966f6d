import type { Chunk } from '../../core/chunks.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { Translator } from '../../core/translator.ts';
import type { Answer } from '../../turns/log.ts';
import type { Prompt } from '../../turns/upstream.ts';
import { soundnessOf, V2_TYPES } from './event-shapes.ts';
import { toAnswer, toFiles } from './to-server.ts';
import { createAgentOpsTranslator } from './translate.ts';

/** What a deployed session sends its runner for a question whose time ran out. */
const EXPIRED_ANSWER = '__expired__';

/** Events about a turn that are not part of it: they name the prompt, or nothing. */
const ABOUT_TURN: ReadonlySet<string> = new Set(['complete', 'aborted', 'error', 'agentStatus']);
const ENDS: ReadonlySet<string> = new Set(['message.finalize', 'complete', 'aborted', 'error']);

type V2Event = Loose & { type: string };
type V2Said =
  | { kind: 'turn'; events: unknown[]; isEnd: boolean; isHint: boolean }
  | { kind: 'other' }
  | { kind: 'event'; event: V2Event }
  | { kind: 'ping' }
  | { kind: 'malformed'; type: string };

/** The turn that the runner works on, as far as its events say. */
type Named = {
  readonly prompt: Prompt;
  /** What the runner calls it. */
  name: unknown;
  isBegun: boolean;
  isStopping: boolean;
};

type V2DialectOptions = {
  /** How long people have for an answer, unless the runner says otherwise. */
  questionMs: number;
  now(): number;
  /** A translator of chunks that has seen what is written. */
  createTranslator(prompt: Prompt, written: readonly Chunk[]): Translator<unknown>;
};

/**
 * How a session talks with a deployed Agent Ops runner, which names its turns itself and says no hello. Owns which of its
 * events are of the turn that runs: late ones of another turn belong to none.
 */
export function createV2RunnerDialect({ questionMs, now, createTranslator }: V2DialectOptions) {
  let current: Named | undefined;

  /** The event under the name that the session has for the turn; empty if it is of another. */
  function toOwn(turn: Named, event: V2Event): V2Event[] {
    const { type, turnId } = event;
    const { messageId, promptId } = turn.prompt;
    const isNamed = typeof event.messageId === 'string';
    if (isNamed && event.messageId !== promptId) return [];
    if (ABOUT_TURN.has(type)) {
      // The end of the turn before may come late, and names no prompt.
      const isLate = !turn.isBegun && !isNamed && !(type === 'aborted' && turn.isStopping);
      return isLate && (type === 'complete' || type === 'aborted') ? [] : [event];
    }
    const own = { ...event, ...(turnId != null && { turnId: messageId }) };
    const create = { type: 'message.create', turnId: messageId };
    const wasBegun = turn.isBegun;
    if (type === 'message.create') {
      if (turn.name !== undefined && turnId !== turn.name) return [];
      Object.assign(turn, { name: turnId, isBegun: true });
      return [own];
    }
    if (turnId === messageId) turn.isBegun = true;
    else if (!wasBegun) return [];
    else if (turnId != null) {
      // After a restart of the session its name is not known.
      turn.name ??= turnId;
      if (turnId !== turn.name) return [];
    }
    return wasBegun ? [own] : [create, own];
  }

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
    toStop(prompt: Prompt) {
      const { promptId, messageId } = prompt;
      const turn = current?.prompt === prompt ? current : undefined;
      if (turn) turn.isStopping = true;
      return { type: 'abort', turnId: turn?.name ?? messageId, messageId: promptId };
    },
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
      current = { prompt, name: undefined, isBegun: written.length > 0, isStopping: false };
      const v2 = createAgentOpsTranslator({
        dialect: 'v2',
        messageId,
        turnId: messageId,
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
      const event = value as V2Event;
      if (!isOfTurn) return { kind: 'event', event };
      if (soundnessOf(type, value) !== 'sound') return { kind: 'malformed', type };
      const isUntimed = type === 'question' && value.expiresAt === undefined;
      const timed = isUntimed ? { ...event, expiresAt: (now() + questionMs) / 1_000 } : event;
      const events = current ? toOwn(current, timed) : [];
      if (events.length === 0) return { kind: 'other' };
      return { kind: 'turn', events, isEnd: ENDS.has(type), isHint: type === 'agentStatus' };
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
