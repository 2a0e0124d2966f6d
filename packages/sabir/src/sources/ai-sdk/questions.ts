import type { Chunk } from '../../core/chunks.ts';
import { QUESTION_EXPIRED, SabirError } from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { AgentAnswer, AgentQuestion, QuestionOption } from '../../turns/agent.ts';

type End = { status: 'answered'; answer: unknown } | { status: 'expired' };

/**
 * The questions of one turn: what waits for which answer, how each question ended, and what the
 * stream has shown of it. The first end of a question is its only one.
 */
export function createQuestions(show: (chunk: Chunk) => void, questionMs?: number) {
  const ends = new Map<string, End>();
  const waiting = new Map<string, PromiseWithResolvers<unknown>>();
  /** What viewers see of a question that is open for them. */
  const shown = new Map<string, Loose>();
  const asked = new Set<string>();
  let isOver = false;
  let reason: unknown;

  /** Viewers learn how it ended, unless the agent has shown that itself. */
  function showEnd(id: string): void {
    const data = shown.get(id);
    const end = ends.get(id);
    if (!data || !end || isOver) return;
    shown.delete(id);
    show({ type: 'data-question', id, data: { ...data, ...end } });
  }

  function settle(id: string, end: End): void {
    if (isOver || ends.has(id)) return;
    ends.set(id, end);
    showEnd(id);
    const waiter = waiting.get(id);
    waiting.delete(id);
    if (end.status === 'answered') waiter?.resolve(end.answer);
    else waiter?.reject(new SabirError(QUESTION_EXPIRED));
  }

  /** Looks at a chunk that has just been shown. */
  function see(chunk: unknown): void {
    try {
      if (!isObject(chunk) || chunk.type !== 'data-question') return;
      const { id, data } = chunk;
      if (typeof id !== 'string') return;
      asked.add(id);
      const isOpen = isObject(data) && (data.status === undefined || data.status === 'open');
      if (isOpen) shown.set(id, data);
      else shown.delete(id);
      showEnd(id);
    } catch {
      // A chunk that cannot be read asks nothing.
    }
  }

  function wait(id: string): Promise<unknown> {
    const end = ends.get(id);
    if (end?.status === 'answered') return Promise.resolve(end.answer);
    const waiter = waiting.get(id) ?? Promise.withResolvers<unknown>();
    // An agent may ask and look at the answer later, or never: that must not end the process.
    waiter.promise.catch(ignore);
    if (end) waiter.reject(new SabirError(QUESTION_EXPIRED));
    else if (isOver) waiter.reject(reason);
    else waiting.set(id, waiter);
    return waiter.promise;
  }

  async function ask(question: AgentQuestion): Promise<AgentAnswer> {
    const { questionId = createId() } = question;
    if (!isOver && !asked.has(questionId)) {
      const data = toQuestionData(questionId, { expiresInMs: questionMs, ...question });
      const chunk: Chunk = { type: 'data-question', id: questionId, data };
      show(chunk);
      see(chunk);
    }
    try {
      const answer = await wait(questionId);
      const options = toOptions(question);
      const chosen =
        options.find(({ id }) => id === answer) ?? options.find(({ label }) => label === answer);
      return { status: 'answered', answer, ...(chosen && { optionId: chosen.id }) };
    } catch (error) {
      if (ends.get(questionId)?.status === 'expired') return { status: 'expired' };
      throw error;
    }
  }

  return {
    see,
    wait,
    ask(question: AgentQuestion): Promise<AgentAnswer> {
      const answer = ask(question);
      answer.catch(ignore);
      return answer;
    },
    answer: (id: string, answer: unknown) => settle(id, { status: 'answered', answer }),
    expire: (id: string) => settle(id, { status: 'expired' }),
    /** No answer can come any more. */
    close(why: unknown): void {
      isOver = true;
      reason = why;
      for (const waiter of waiting.values()) waiter.reject(why);
      waiting.clear();
      shown.clear();
    },
  };
}

function toOptions({ options = [] }: AgentQuestion): QuestionOption[] {
  return options.map((option) =>
    typeof option === 'string' ? { id: option, label: option } : option,
  );
}

/** A question with the default for its time, where there is one. */
type Timed = Omit<AgentQuestion, 'expiresInMs'> & { expiresInMs?: number | undefined };

/** The shape in which pages know questions: see `AgentOpsQuestion`. */
function toQuestionData(questionId: string, question: Timed): Loose {
  const { text, callId, answerBy, expiresInMs } = question;
  const options = toOptions(question);
  const hasIds = options.some(({ id, label }) => id !== label);
  return {
    questionId,
    text,
    ...(question.options && { options: options.map(({ label }) => label) }),
    ...(hasIds && { optionIds: options.map(({ id }) => id) }),
    ...(callId !== undefined && { toolCallId: callId }),
    ...(answerBy !== undefined && { answerBy }),
    ...(expiresInMs !== undefined && { expiresAt: Date.now() + expiresInMs }),
    status: 'open',
  };
}

function ignore(): void {
  // The agent gets it where it waits.
}
