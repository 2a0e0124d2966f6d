import type { MessageAccumulator } from '../../core/accumulator.ts';
import { type Decision, toDecision } from '../../core/decision.ts';
import { isObject } from '../../core/loose.ts';
import type {
  ApprovalRequest,
  OpenAIAgentsDataTypes,
  OpenAIAgentsOptions,
  QuestionTerms,
} from './events.ts';

type Question = OpenAIAgentsDataTypes['question'];

const OPTIONS = ['Approve', 'Deny'];
const NOT_APPROVED = 'The call was not approved.';
const NOT_ANSWERED = 'Nobody answered in time.';

/** The approvals of a turn: asks for them as questions and, for whom that is, on the calls. */
export function createApprovals(
  accumulator: MessageAccumulator,
  { question: terms, approvals: isOnCalls = false }: OpenAIAgentsOptions,
) {
  const questions = new Map<string, Question>();
  /** Calls that somebody said no to, and why. */
  const denied = new Map<string, string | undefined>();

  function show(question: Question): void {
    questions.set(question.questionId, question);
    accumulator.data('question', question, { id: question.questionId });
  }

  function termsOf(request: ApprovalRequest): QuestionTerms {
    try {
      return terms?.(request) ?? {};
    } catch {
      // Whom it was meant for is not known: then it is the owner's alone.
      return { answerBy: { role: 'owner' } };
    }
  }

  return {
    isAsked: (approvalId: string) => questions.has(approvalId),
    decisionOn(approvalId: string): Decision | undefined {
      const question = questions.get(approvalId);
      if (question?.status === 'answered') return toDecision(question.answer);
      const isOver = question !== undefined && question.status !== 'open';
      return isOver ? { approved: false, reason: NOT_ANSWERED } : undefined;
    },
    ask(request: ApprovalRequest): void {
      const { approvalId: questionId, toolCallId, toolName } = request;
      const { text = `Allow ${toolName}?`, answerBy, expiresAt } = termsOf(request);
      if (isOnCalls) accumulator.toolApprovalRequest(toolCallId, questionId);
      show({
        questionId,
        text,
        options: OPTIONS,
        toolCallId,
        status: 'open',
        ...(answerBy && { answerBy }),
        ...(expiresAt !== undefined && { expiresAt }),
      });
    },
    /** False if nobody asked, or it is settled. */
    settle(approvalId: string, decision: Decision | 'expired'): boolean {
      const question = questions.get(approvalId);
      if (question?.status !== 'open') return false;
      const isExpired = decision === 'expired';
      const answer: Decision = isExpired ? { approved: false } : decision;
      show(
        isExpired
          ? { ...question, status: 'expired' }
          : { ...question, status: 'answered', answer },
      );
      const { toolCallId } = question;
      accumulator.toolApprovalResponse(toolCallId, { approvalId, ...answer });
      if (!answer.approved) denied.set(toolCallId, isExpired ? NOT_ANSWERED : answer.reason);
      return true;
    },
    /** A question that the message asks already, and what its call says of the answer. */
    goOnWith(data: unknown, approval: unknown): void {
      if (!isObject(data) || typeof data.questionId !== 'string') return;
      const question = data as Question;
      questions.set(question.questionId, question);
      const isOpen = question.status === 'open';
      const isDecided = isObject(approval) && typeof approval.approved === 'boolean';
      if (isOpen ? !isDecided : question.status !== 'answered') return;
      const answer = toDecision(isOpen ? approval : question.answer);
      if (!answer.approved) denied.set(question.toolCallId, answer.reason);
      if (isOpen) show({ ...question, status: 'answered', answer });
    },
    /** Somebody said no: what the call gives the model is that no. False if nobody did. */
    refuse(toolCallId: string, shownAs: string = toolCallId): boolean {
      if (!denied.has(toolCallId)) return false;
      if (isOnCalls) accumulator.toolDenied(shownAs);
      accumulator.toolError(shownAs, denied.get(toolCallId) ?? NOT_APPROVED);
      return true;
    },
    /** Whether the call itself shows that it waits. */
    isOnCall(toolCallId: string): boolean {
      const isOpen = (one: Question) => one.toolCallId === toolCallId && one.status === 'open';
      return isOnCalls && [...questions.values()].some(isOpen);
    },
    withdraw(): void {
      for (const question of questions.values()) {
        if (question.status === 'open') show({ ...question, status: 'withdrawn' });
      }
    },
  };
}
