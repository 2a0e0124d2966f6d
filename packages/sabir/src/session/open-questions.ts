import { NOT_FOUND, QUESTION_ANSWERED, QUESTION_EXPIRED, SabirError } from '../errors.ts';
import type { Clock } from './options.ts';
import { EXPIRED_ANSWER, type QuestionEvent, type RunnerCommand } from './protocol.ts';
import type { SessionStorage, StoredQuestion } from './storage.ts';

type OpenQuestionsOptions = {
  storage: SessionStorage;
  clock: Clock;
  questionMs: number;
  /** Its time ran out. */
  onExpire(question: StoredQuestion): void;
};

/** The questions that people have not answered yet, each with its time. */
export function createOpenQuestions({
  storage,
  clock,
  questionMs,
  onExpire,
}: OpenQuestionsOptions) {
  const timers = new Map<string, () => void>();

  function watch(question: StoredQuestion): void {
    const { questionId, expiresAt } = question;
    const clear = clock.after(expiresAt - clock.now(), () => {
      timers.delete(questionId);
      onExpire(question);
    });
    timers.set(questionId, clear);
  }

  function forget(questionId: string): void {
    timers.get(questionId)?.();
    timers.delete(questionId);
  }

  return {
    /** Of a turn that was running before. */
    restore: () => storage.openQuestions().forEach(watch),
    /** The question as it is to be told; nothing if it was asked before. */
    ask(event: QuestionEvent, turnId: string): QuestionEvent | undefined {
      const { questionId } = event;
      if (storage.question(questionId)) return undefined;
      const expiresAt = toMilliseconds(event.expiresAt) ?? clock.now() + questionMs;
      // Sockets tell seconds: nobody should be told a later end than the one that counts.
      const told = { ...event, expiresAt: Math.floor(expiresAt / 1_000) };
      const question = { questionId, turnId, status: 'open', event: told, expiresAt } as const;
      storage.saveQuestion(question);
      watch(question);
      return told;
    },
    /** The first answer counts. */
    answer(questionId: string, answer: string | boolean): StoredQuestion {
      const question = storage.question(questionId);
      if (!question) throw new SabirError(NOT_FOUND);
      if (question.status === 'answered') throw new SabirError(QUESTION_ANSWERED);
      if (question.status !== 'open') throw new SabirError(QUESTION_EXPIRED);
      const answered = { ...question, status: 'answered', answer } as const;
      storage.saveQuestion(answered);
      forget(questionId);
      return answered;
    },
    expire(question: StoredQuestion): void {
      storage.saveQuestion({ ...question, status: 'expired' });
      forget(question.questionId);
    },
    of: (turnId: string) => storage.openQuestions().filter((open) => open.turnId === turnId),
    /** The turn is over: nobody waits for an answer any more. */
    withdraw(turnId: string): void {
      for (const question of storage.questionsOf(turnId)) {
        if (question.status === 'open') storage.saveQuestion({ ...question, status: 'withdrawn' });
      }
    },
    stopWatching(): void {
      for (const questionId of [...timers.keys()]) forget(questionId);
    },
  };
}

export function toAnswerCommand({ questionId, status, answer }: StoredQuestion): RunnerCommand {
  const isExpired = status !== 'answered' || answer === undefined;
  return { type: 'answer', questionId, answer: isExpired ? EXPIRED_ANSWER : answer };
}

// As milliseconds this is March 1973, as seconds the year 5138.
const SECONDS_BELOW = 1e11;

/** Runners may count in either. */
function toMilliseconds(time: unknown): number | undefined {
  if (typeof time !== 'number' || !Number.isFinite(time) || time <= 0) return undefined;
  return time < SECONDS_BELOW ? time * 1_000 : time;
}
