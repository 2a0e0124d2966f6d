import type { MessageAccumulator } from '../../core/accumulator.ts';
import { CALLED, type Calls, OVER, QUESTION_TOOL } from './calls.ts';
import type { AgentOpsQuestion, EventOf, InteractivePrompt, Place } from './events.ts';

type Settled = Exclude<AgentOpsQuestion['status'], 'open'>;
type Question = {
  data: AgentOpsQuestion;
  /** The tool call that waits for the answer. */
  callId?: string | undefined;
  /** That call is not the agent's: it was made to carry the approval. */
  isCallOurs?: boolean;
  /** Nobody said which call waits, and there may be one. */
  isCallGuessed: boolean;
  /** What an action's id stands for. */
  labels: Map<unknown, string>;
};

/** Asked of a question in either form. */
export type Asked = Omit<AgentOpsQuestion, 'status' | 'answer'> & {
  labels: Map<unknown, string>;
  isApproval: boolean;
  /** The tool call that waits for the answer, where it is said. */
  callId?: string;
  /** A server that names the turn also names the call, if one waits. */
  isOfNamedTurn: boolean;
};

/** What a session sends its runner for a question whose time ran out. */
const EXPIRED_ANSWER = '__expired__';
const EXPIRED = 'Nobody answered in time.';

/** The questions of a turn: owns their state and which tool call waits for which. */
export function createQuestions(
  accumulator: MessageAccumulator,
  getCalls: () => Calls,
  hasApprovals: boolean,
) {
  const questions = new Map<string, Question>();

  function show({ data }: Question): void {
    accumulator.data('question', { ...data }, { id: data.questionId });
  }

  function requestApproval({ data, callId }: Question): void {
    if (hasApprovals && callId !== undefined && !getCalls().isOver(callId)) {
      accumulator.toolApprovalRequest(callId, data.questionId);
    }
  }

  function settle(question: Question, status: Settled, answer?: string): void {
    if (question.data.status !== 'open') return;
    question.data = {
      ...question.data,
      status,
      ...(answer === undefined ? undefined : { answer }),
    };
    show(question);
    if (!question.isCallOurs || question.callId === undefined) return;
    const { callId } = question;
    if (status === 'withdrawn') return;
    if (status === 'expired') getCalls().update({ callId, status: 'error', error: EXPIRED });
    else getCalls().update({ callId, status: 'completed', result: answer });
  }

  return {
    has: (questionId: string): boolean => questions.has(questionId),
    ask(given: Asked): void {
      const { labels, isApproval, callId: said, isOfNamedTurn, ...rest } = given;
      const { questionId, text, options } = rest;
      const asked = said === undefined ? rest : { ...rest, toolCallId: said };
      const known = questions.get(questionId);
      if (known) {
        if (known.data.status !== 'open') return;
        known.callId = said ?? known.callId;
        const data = { ...known.data, ...asked };
        if (JSON.stringify(data) === JSON.stringify(known.data)) return;
        known.data = data;
        known.labels = labels;
        show(known);
        return;
      }
      // The agent calls its tool right before it asks; an action waits in the call that wants it.
      const isCallGuessed = said === undefined && !isOfNamedTurn;
      const callId = isCallGuessed
        ? getCalls().lastOpen(isApproval ? undefined : QUESTION_TOOL)
        : said;
      const question: Question = {
        data: { ...asked, status: 'open' },
        callId,
        isCallGuessed,
        labels,
      };
      questions.set(questionId, question);
      show(question);
      if (hasApprovals && callId === undefined) {
        const args = { question: text, ...(options && { options }) };
        question.callId = `${QUESTION_TOOL}-${questionId}`;
        question.isCallOurs = true;
        const call = { callId: question.callId, toolName: QUESTION_TOOL, args };
        getCalls().update({ ...call, status: 'running' });
      }
      requestApproval(question);
    },
    settle(id: unknown, status: Settled, answer?: unknown): void {
      const question = questions.get(id as string);
      if (!question) return;
      if (answer === EXPIRED_ANSWER) settle(question, 'expired');
      else settle(question, status, question.labels.get(answer) ?? toAnswer(answer));
    },
    /** It was asked after its call, or is said to belong to one that is over: nobody waits. */
    settleIfOver(questionId: string): void {
      const question = questions.get(questionId);
      const { callId } = question ?? {};
      if (question && callId !== undefined && getCalls().isOver(callId)) {
        settle(question, 'answered');
      }
    },
    /** A tool call began, got its input, or is over. */
    onCall(callId: string, name: string, stage: number): void {
      for (const question of questions.values()) {
        if (question.data.status !== 'open') continue;
        const isGuess = question.isCallGuessed && name === QUESTION_TOOL;
        if (question.callId === undefined && isGuess) question.callId = callId;
        if (question.callId !== callId) continue;
        if (stage === OVER) settle(question, 'answered');
        else if (stage === CALLED) requestApproval(question);
      }
    },
    withdraw(): void {
      for (const question of questions.values()) settle(question, 'withdrawn');
    },
  };
}

function toAnswer(answer: unknown): string | undefined {
  if (typeof answer === 'string') return answer;
  return typeof answer === 'boolean' || typeof answer === 'number' ? String(answer) : undefined;
}

export type AskingEvent = EventOf<'question'> | EventOf<'interactive_prompt'>;

/** The channel on which the session asks. */
export function placeOfQuestion(event: AskingEvent): Place {
  if (event.type === 'question' || event.channelType !== undefined) return event;
  return event.prompt.context ?? event;
}

/** Undefined if it is no question. */
export function toAsked(event: AskingEvent): Asked | undefined {
  if (event.type === 'question') {
    const { questionId, text, options, expiresAt, callId, turnId, answerBy } = event;
    const asked = toQuestion(questionId, [text], options, expiresAt);
    return (
      asked && {
        ...asked,
        isOfNamedTurn: typeof turnId === 'string',
        ...(typeof callId === 'string' && { callId }),
        ...(answerBy !== undefined && { answerBy }),
      }
    );
  }
  const prompt: Partial<InteractivePrompt> | null | undefined = event.prompt;
  if (typeof prompt !== 'object' || prompt === null) return undefined;
  const { id, type, title, body, actions, expiresAt } = prompt;
  const asked = toQuestion(id, [title, body], actions, expiresAt);
  return asked && { ...asked, isApproval: type === 'approval' };
}

function toQuestion(
  questionId: unknown,
  texts: unknown[],
  choices: unknown,
  expiry: unknown,
): Asked | undefined {
  if (typeof questionId !== 'string' || questionId === '') return undefined;
  const text = texts.filter((line) => typeof line === 'string' && line !== '').join('\n\n');
  const options: string[] = [];
  const labels = new Map<unknown, string>();
  for (const choice of Array.isArray(choices) ? choices : []) {
    const { id, label } = (choice ?? {}) as { id?: unknown; label?: unknown };
    const option = typeof choice === 'string' ? choice : (label ?? id);
    if (typeof option !== 'string') continue;
    options.push(option);
    if (typeof id === 'string') labels.set(id, option);
  }
  const expiresAt = toMilliseconds(expiry);
  return {
    questionId,
    text,
    ...(options.length > 0 && { options }),
    ...(expiresAt !== undefined && { expiresAt }),
    labels,
    isApproval: false,
    isOfNamedTurn: false,
  };
}

// As milliseconds this is March 1973, as seconds the year 5138: no question expires in between.
const SECONDS_BELOW = 1e11;

/** Sessions count seconds in one form of a question and milliseconds in the other. */
function toMilliseconds(time: unknown): number | undefined {
  const value = typeof time === 'string' ? Date.parse(time) : time;
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) return undefined;
  return value < SECONDS_BELOW ? value * 1_000 : value;
}
