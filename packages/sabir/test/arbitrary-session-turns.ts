/** Turns as a session server of ours tells them: every kind of event, few ids, so that they meet. */
import fc from 'fast-check';
import type { TurnEvent } from '../src/sessions/protocol.ts';
import type { createTurnRecord } from '../src/sessions/turn-record.ts';

type Settled = { settle: 'answered' | 'expired'; questionId: string; answer?: string | boolean };
export type TurnStep = TurnEvent | Settled;

const callId = fc.constantFrom('c', 'd', 'e');
const questionId = fc.constantFrom('q', 'r');
const words = fc.constantFrom('a', ' b', 'cd', '', 'a');
const value = fc.constantFrom<unknown>({}, { a: 1 }, 'x', 0, null, [1, '2']);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** Without the fields that have no value: JSON has none. */
function plain<T>(arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<T> {
  return arbitrary.map((given) => JSON.parse(JSON.stringify(given)) as T);
}

const part = plain<TurnStep>(
  fc.oneof(
    { weight: 4, arbitrary: event('message.part.text-delta', { delta: words }) },
    { weight: 2, arbitrary: event('message.part.reasoning-delta', { delta: words }) },
    {
      weight: 6,
      arbitrary: event('message.part.tool-update', {
        callId,
        toolName: fc.constantFrom('bash', 'question', undefined),
        status: fc.constantFrom('pending', 'running', 'completed', 'error'),
        args: maybe(value),
        result: maybe(value),
        error: maybe(fc.constantFrom('no', '')),
      }),
    },
    {
      weight: 2,
      arbitrary: event('message.part.tool-input-delta', {
        callId,
        toolName: fc.constantFrom('bash', undefined),
        delta: fc.constantFrom('{', '{"a":', '1', '}', ' ', '[1'),
      }),
    },
    { weight: 3, arbitrary: event('message.part.step', {}) },
    event('message.part.source', {
      sourceId: fc.constantFrom('s', ''),
      url: maybe(fc.constant('https://example.test')),
      mediaType: maybe(fc.constant('text/plain')),
      title: maybe(fc.constant('T')),
    }),
    event('message.part.file', {
      url: fc.constant('data:,x'),
      mediaType: fc.constant('text/plain'),
    }),
    {
      weight: 3,
      arbitrary: event('message.part.data', {
        name: fc.constantFrom('chart', 'plan', 'question', 'a b'),
        id: maybe(fc.constantFrom('1', '2')),
        data: value,
        transient: maybe(fc.boolean()),
      }),
    },
    {
      weight: 3,
      arbitrary: event('question', {
        questionId,
        text: fc.constantFrom('Deploy?', 'Sure?'),
        options: maybe(fc.constantFrom(['Yes', 'No'], [])),
        expiresAt: maybe(fc.constantFrom(1_794_769_643, 0)),
        callId: maybe(callId),
      }),
    },
    fc.record({
      settle: fc.constantFrom('answered', 'expired'),
      questionId,
      answer: maybe(fc.constantFrom<string | boolean>('Yes', true)),
    }),
    event('usage-report', {
      entries: fc.array(
        fc.constantFrom({ inputTokens: 2, totalTokens: 3 }, { reasoningTokens: 1 }, {}),
        {
          maxLength: 2,
        },
      ),
    }),
  ),
);

const finalize = plain<TurnEvent>(
  event('message.finalize', {
    reason: fc.constantFrom('end_turn', 'error', 'canceled'),
    finalText: maybe(fc.constantFrom('abc', '')),
    error: maybe(fc.constant('It broke.')),
    code: maybe(fc.constant('agent-lost')),
  }),
);

function event(type: string, fields: Record<string, fc.Arbitrary<unknown>>) {
  return fc.record({ type: fc.constant(type), ...fields });
}

export function anySessionTurn(): fc.Arbitrary<TurnStep[]> {
  return fc
    .tuple(fc.array(part, { maxLength: 25 }), finalize, fc.array(part, { maxLength: 2 }))
    .map(([parts, end, late]) => [{ type: 'message.create' }, ...parts, end, ...late]);
}

const OF_TURN = { turnId: 't', promptId: 'p', channelType: 'web', channelId: 'default' };

/** As a client is told it. */
export function toTold(step: TurnStep, at: number): object {
  if (!('settle' in step)) return { ...step, ...OF_TURN, seq: at + 1 };
  const { settle, questionId: id, answer } = step;
  const data =
    settle === 'answered'
      ? { questionAnswered: id, ...(answer !== undefined && { answer }) }
      : { questionExpired: id };
  return { type: 'status', data, ...OF_TURN, seq: at + 1 };
}

export function addToRecord(record: ReturnType<typeof createTurnRecord>, step: TurnStep): void {
  if (!('settle' in step)) record.push(step);
  else if (step.settle === 'expired') record.settleQuestion(step.questionId, 'expired');
  else record.settleQuestion(step.questionId, 'answered', step.answer);
}
