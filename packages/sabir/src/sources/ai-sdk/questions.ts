import type { Chunk } from '../../core/chunks.ts';
import { toDecision } from '../../core/decision.ts';
import { QUESTION_EXPIRED, SabirError } from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type {
  AgentAnswer,
  AgentQuestion,
  AgentToolOutput,
  QuestionOption,
  ToolWait,
} from '../../turns/agent.ts';

const TOO_LATE = 'No client ran the tool in time.';
const NO_OUTPUT = 'The client sent no output for the tool.';

/** A page that is open runs a tool at once. Without a page the turn must end some time. */
const CLIENT_TOOL_MS = 5 * 60_000;

export type QuestionsOptions = {
  /** How long people and clients have to answer. @default 5 minutes for a client's tool, else no limit */
  questionMs?: number | undefined;
  /** The user whose prompt this is. Only their clients run its tools, unless the agent names other users. */
  askerId: string;
};
type End = { status: 'answered'; answer: unknown } | { status: 'expired' };

/**
 * The questions of one turn: what waits for which answer, how each question ended, and what the
 * stream has shown of it. The first end of a question is its only one. A question about a tool call is also an
 * approval request, which AI SDK 6 and 7 can answer. A call that a client runs is a question whose answer is the output.
 */
export function createQuestions(
  show: (chunk: Chunk) => void,
  { questionMs, askerId }: QuestionsOptions,
) {
  const ends = new Map<string, End>();
  const waiting = new Map<string, PromiseWithResolvers<unknown>>();
  /** What viewers see of a question that is open for them. */
  const shown = new Map<string, Loose>();
  const asked = new Set<string>();
  /** What the stream has shown of calls that wait for a client, by their ids. */
  const clientCalls = new Map<string, Loose>();
  /** Tool calls that have their input and no output yet. */
  const openCalls = new Set<unknown>();
  /** The questions that are approval requests, and who requested: the agent shows what came of its own requests. */
  const requests = new Map<unknown, 'agent' | 'question'>();
  /** An approval was requested in a step that has not ended. */
  let isStepToEnd = false;
  /** The output of a client's tool was shown, and nothing since. */
  let isStepToBegin = false;
  let isOver = false;
  let reason: unknown;

  /** Viewers learn how it ended, unless the agent has shown that itself. */
  function showEnd(id: string): void {
    const wait = clientCalls.get(id);
    if (wait) showOutput(id, wait);
    const data = shown.get(id);
    const end = ends.get(id);
    if (!data || !end || isOver) return;
    shown.delete(id);
    show({ type: 'data-question', id, data: { ...data, ...end } });
    if (end.status === 'answered' && requests.get(id) === 'question') showDecision(id, end.answer);
  }

  function showOutput(toolCallId: string, wait: Loose): void {
    const end = ends.get(toolCallId);
    if (!end || isOver) return;
    clientCalls.delete(toolCallId);
    const result = toToolOutput(end);
    const { status } = result;
    show({ type: 'data-client-tool', id: toolCallId, data: { ...wait, status } });
    if (status === 'done') {
      show({ type: 'tool-output-available', toolCallId, output: result.output });
    } else {
      const errorText = status === 'failed' ? result.errorText : TOO_LATE;
      show({ type: 'tool-output-error', toolCallId, errorText });
    }
    isStepToBegin = true;
  }

  /**
   * Begins the step that follows a client's tool, unless the next chunk does. A client that sends outputs by itself looks at the
   * tools of the last step: without a new one it would send the same outputs for ever.
   */
  function beginStep(next: unknown): void {
    if (!isStepToBegin || isOver) return;
    isStepToBegin = false;
    if (!isObject(next) || next.type !== 'start-step') show({ type: 'start-step' });
  }

  /** Only the agent knows what a label or a sentence means: the result of its tool shows that. */
  function showDecision(approvalId: string, answer: unknown): void {
    if (typeof answer !== 'boolean' && !isObject(answer)) return;
    show({ type: 'tool-approval-response', approvalId, ...toDecision(answer) });
  }

  /**
   * AI SDK 6 and 7 can answer only after their response has ended, and the gateway ends it with a step. So the step
   * ends here, while the agent waits. A client does not show the end of a step.
   */
  function requestApproval(questionId: string): void {
    const { toolCallId } = shown.get(questionId) ?? {};
    if (typeof toolCallId !== 'string' || !openCalls.has(toolCallId)) return;
    if (!requests.has(questionId)) {
      requests.set(questionId, 'question');
      show({ type: 'tool-approval-request', approvalId: questionId, toolCallId });
      isStepToEnd = true;
    }
    // Not at once: an agent that asks about several calls together asks in one step.
    if (isStepToEnd) queueMicrotask(endStep);
  }

  function endStep(): void {
    if (isOver || !isStepToEnd) return;
    isStepToEnd = false;
    show({ type: 'finish-step' });
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
      if (!isObject(chunk)) return;
      const { type, toolCallId } = chunk;
      if (type === 'data-question') seeQuestion(chunk);
      else if (type === 'finish-step') isStepToEnd = false;
      else if (type === 'tool-approval-request') {
        requests.set(chunk.approvalId, 'agent');
        isStepToEnd = true;
      } else if (type === 'tool-input-available') {
        openCalls.add(toolCallId);
        // A tool that runs may have asked before its call is shown.
        for (const id of waiting.keys()) requestApproval(id);
      } else if (chunk.preliminary !== true && typeof toolCallId === 'string') {
        if (/^tool-(output|input-error)/.test(String(type))) openCalls.delete(toolCallId);
      }
    } catch {
      // A chunk that cannot be read asks nothing.
    }
  }

  function seeQuestion({ id, data }: Loose): void {
    if (typeof id !== 'string') return;
    asked.add(id);
    const isOpen = isObject(data) && (data.status === undefined || data.status === 'open');
    if (isOpen) shown.set(id, data);
    else shown.delete(id);
    showEnd(id);
  }

  function wait(id: string): Promise<unknown> {
    const end = ends.get(id);
    if (end?.status === 'answered') return Promise.resolve(end.answer);
    const waiter = waiting.get(id) ?? Promise.withResolvers<unknown>();
    // An agent may ask and look at the answer later, or never: that must not end the process.
    waiter.promise.catch(ignore);
    if (end) waiter.reject(new SabirError(QUESTION_EXPIRED));
    else if (isOver) waiter.reject(reason);
    else {
      waiting.set(id, waiter);
      requestApproval(id);
    }
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

  async function toolOutput(
    toolCallId: string,
    { expiresInMs = questionMs ?? CLIENT_TOOL_MS, answerBy = { userId: askerId } }: ToolWait,
  ): Promise<AgentToolOutput> {
    // No client could answer for a call without an id.
    if (typeof toolCallId !== 'string' || toolCallId === '') {
      return { status: 'failed', errorText: NO_OUTPUT };
    }
    if (!isOver && !ends.has(toolCallId) && !clientCalls.has(toolCallId)) {
      const expiry = expiresInMs < Infinity && { expiresAt: Date.now() + expiresInMs };
      const data = { toolCallId, answerBy, ...expiry };
      clientCalls.set(toolCallId, data);
      show({ type: 'data-client-tool', id: toolCallId, data: { ...data, status: 'waiting' } });
      isStepToEnd = true;
      queueMicrotask(endStep);
    }
    try {
      return toToolOutput({ status: 'answered', answer: await wait(toolCallId) });
    } catch (error) {
      if (ends.get(toolCallId)?.status === 'expired') return { status: 'expired' };
      throw error;
    }
  }

  return {
    beginStep,
    see,
    wait,
    toolOutput(toolCallId: string, wait: ToolWait = {}): Promise<AgentToolOutput> {
      const output = toolOutput(toolCallId, wait);
      output.catch(ignore);
      return output;
    },
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

/** Clients send `{ output }` or `{ errorText }`. */
function toToolOutput(end: End): AgentToolOutput {
  if (end.status === 'expired') return end;
  const { answer } = end;
  if (isObject(answer) && answer.output !== undefined) {
    return { status: 'done', output: answer.output };
  }
  const errorText = isObject(answer) ? answer.errorText : undefined;
  return { status: 'failed', errorText: typeof errorText === 'string' ? errorText : NO_OUTPUT };
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
