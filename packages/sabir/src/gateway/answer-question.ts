import {
  BAD_REQUEST,
  LOG_FAILED,
  MAY_NOT_ANSWER,
  QUESTION_ANSWERED,
  QUESTION_EXPIRED,
  SabirError,
} from '../core/errors.ts';
import { mayAnswer } from '../core/roles.ts';
import { withoutContent } from '../core/without-content.ts';
import type { Answer, TurnInfo, TurnLog } from '../turns/log.ts';
import { hasExpired, type Question, questionOf } from '../turns/question.ts';
import { REQUESTED } from '../turns/turn-progress.ts';
import type { Admitted } from './access.ts';

/** How an answer fared: accepted, or too late. */
export type AnswerVerdict =
  | { status: 202 }
  | { status: 409; kind: typeof QUESTION_ANSWERED; answer: unknown }
  /** `isLeft`: its turn has ended and left it open. */
  | { status: 410; kind: typeof QUESTION_EXPIRED; isLeft?: true };

const EXPIRED = { status: 410, kind: QUESTION_EXPIRED } as const;

/** How long to wait until the log tells whose answer was first. */
const VERDICT_MS = 3_000;

export function toAnswer(body: unknown): Answer {
  const { questionId, answer } = (body ?? {}) as Record<string, unknown>;
  if (typeof questionId !== 'string' || questionId === '') {
    throw new SabirError(BAD_REQUEST, 'questionId is not a string. Send { questionId, answer }.');
  }
  if (answer === undefined) {
    throw new SabirError(BAD_REQUEST, 'There is no answer. Send { questionId, answer }.');
  }
  return { type: 'answer', questionId, answer };
}

export type Answering = ReturnType<typeof createAnswering>;

/**
 * Hands answers to whoever runs the turn and reads in the log what came of them: the first answer
 * wins, for all viewers. The log takes no second one, since a source may put an answer into other
 * words than it was given in.
 */
export function createAnswering(log: TurnLog) {
  /** Gives it to whoever runs the turn, if it is the first; whether it counts, the log tells. */
  async function handOver(
    { turnId }: TurnInfo,
    command: Answer,
    { user, role }: Admitted,
  ): Promise<boolean> {
    try {
      return await log.command(turnId, { ...command, by: { userId: user.id, role } });
    } catch (error) {
      // A store's error may quote the answer that it could not take.
      throw new SabirError(LOG_FAILED, undefined, { cause: withoutContent(error) });
    }
  }

  /** Undefined where the turn has not asked that. */
  async function answer(
    turn: TurnInfo,
    command: Answer,
    who: Admitted,
  ): Promise<AnswerVerdict | undefined> {
    const { turnId, lastSeq } = turn;
    const question = turn.questions.find(({ questionId }) => questionId === command.questionId);
    if (!question || question.status === REQUESTED) return undefined;
    if (question.status !== 'open') return verdictOn(question);
    checkAnswerer(question, who);
    // The process that runs the turn may not have looked at the clock yet.
    if (hasExpired(question)) return EXPIRED;
    // A turn that takes no commands any more has ended: its last chunks tell how the question did.
    const isTaken = await handOver(turn, command, who);
    const signal = AbortSignal.timeout(VERDICT_MS);
    for await (const batch of log.read(turnId, lastSeq, signal)) {
      for (const { chunk } of batch) {
        const told = questionOf(chunk);
        if (told?.questionId === command.questionId && told.status !== 'open') {
          return verdictOn(told, isTaken);
        }
      }
    }
    if (!signal.aborted) return { ...EXPIRED, isLeft: true };
    if (isTaken) return { status: 202 };
    // Somebody else's answer is on its way: whether it counts, nobody can say yet.
    throw new SabirError(LOG_FAILED, 'Another answer to this question is on its way. Ask again.');
  }

  return { answer, handOver };
}

export function checkAnswerer({ answerBy }: Question, who: Admitted): void {
  if (!mayAnswer(answerBy, who)) throw new SabirError(MAY_NOT_ANSWER);
}

function verdictOn({ status, answer }: Question, isOurs = false): AnswerVerdict {
  if (status === 'answered' && isOurs) return { status: 202 };
  if (status !== 'answered') return EXPIRED;
  return { status: 409, kind: QUESTION_ANSWERED, answer: answer ?? null };
}
