import { NOT_FOUND, QUESTION_ANSWERED, QUESTION_EXPIRED, SabirError } from '../core/errors.ts';
import type { Guard } from './guard.ts';
import type { Clock } from './options.ts';
import { EXPIRED_ANSWER, type QuestionEvent, type RunnerCommand } from './protocol.ts';
import type { RunningTurn } from './running-turn.ts';
import type { SessionStorage, StoredQuestion } from './storage.ts';

type OpenQuestionsOptions = {
  storage: SessionStorage;
  clock: Clock;
  guard: Guard;
  questionMs: number;
  /** Its time ran out. */
  onExpire(question: StoredQuestion): void;
};

/** When it could not be stored that it has expired. */
const RETRY_MS = 1_000;

/** The questions that people have not answered yet, each with its time. */
export function createOpenQuestions(options: OpenQuestionsOptions) {
  const { storage, clock, guard, questionMs, onExpire } = options;
  const timers = new Map<string, () => void>();
  /** What the runner calls the questions of the turn that runs. */
  const asked = new Set<string>();

  function watch(question: StoredQuestion, ms = question.expiresAt - clock.now()): void {
    const { questionId } = question;
    const clear = clock.after(ms, () => {
      timers.delete(questionId);
      const isDone = guard(() => onExpire(question));
      if (!isDone) watch(question, RETRY_MS);
    });
    timers.set(questionId, clear);
  }

  function forget(questionId: string): void {
    timers.get(questionId)?.();
    timers.delete(questionId);
  }

  return {
    /** Of a turn that was running before. */
    restore: (turnId: string) => {
      for (const question of storage.questionsOf(turnId)) {
        asked.add(question.askedAs);
        if (question.status === 'open') watch(question);
      }
    },
    /** How many the turn that runs has asked. */
    get count() {
      return asked.size;
    },
    /** Tells it in its turn, unless it was asked before. */
    ask(event: QuestionEvent, running: RunningTurn): void {
      const { questionId: askedAs } = event;
      if (asked.has(askedAs)) return;
      asked.add(askedAs);
      const { turnId } = running.turn;
      // Agents may count their questions from one in every turn.
      const questionId = storage.question(askedAs) ? `${askedAs}-${turnId}` : askedAs;
      const expiresAt = toMilliseconds(event.expiresAt) ?? clock.now() + questionMs;
      const question = { questionId, askedAs, turnId, status: 'open', expiresAt } as const;
      // Sockets tell seconds: nobody should be told a later end than the one that counts.
      const told = { ...event, questionId, expiresAt: Math.floor(expiresAt / 1_000) };
      running.push(told, (kept) => storage.saveQuestion({ ...question, event: kept }));
      watch({ ...question, event: told });
    },
    find(questionId: string): StoredQuestion {
      const question = storage.question(questionId);
      if (!question) throw new SabirError(NOT_FOUND);
      return question;
    },
    /** The first answer counts. */
    answer(question: StoredQuestion, answer: string | boolean): StoredQuestion {
      if (question.status === 'answered') throw new SabirError(QUESTION_ANSWERED);
      if (question.status !== 'open') throw new SabirError(QUESTION_EXPIRED);
      const answered = { ...question, status: 'answered', answer } as const;
      storage.saveQuestion(answered);
      forget(question.questionId);
      return answered;
    },
    expire({ questionId }: StoredQuestion): void {
      const question = storage.question(questionId);
      if (question) storage.saveQuestion({ ...question, status: 'expired' });
      forget(questionId);
    },
    of: (turnId: string) => storage.openQuestions().filter((open) => open.turnId === turnId),
    /** The turn is over: nobody waits for an answer any more. */
    withdraw(turnId: string): void {
      for (const question of storage.questionsOf(turnId)) {
        if (question.status === 'open') storage.saveQuestion({ ...question, status: 'withdrawn' });
      }
    },
    /** The turn is over, or this process. */
    stopWatching(): void {
      asked.clear();
      for (const questionId of [...timers.keys()]) forget(questionId);
    },
  };
}

export function toAnswerCommand({ askedAs, status, answer }: StoredQuestion): RunnerCommand {
  const isExpired = status !== 'answered' || answer === undefined;
  return { type: 'answer', questionId: askedAs, answer: isExpired ? EXPIRED_ANSWER : answer };
}

// As milliseconds this is March 1973, as seconds the year 5138.
const SECONDS_BELOW = 1e11;

/** Runners may count in either. */
function toMilliseconds(time: unknown): number | undefined {
  if (typeof time !== 'number' || !Number.isFinite(time) || time <= 0) return undefined;
  return time < SECONDS_BELOW ? time * 1_000 : time;
}
