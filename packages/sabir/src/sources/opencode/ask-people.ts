import { toDecision } from '../../core/decision.ts';
import type { AgentAnswer, AgentPrompt } from '../../turns/agent.ts';
import type { OpenCodeApi } from './api.ts';
import {
  ALLOW_ONCE,
  ALWAYS_ALLOW,
  type OpenCodeRequest,
  type PermissionReply,
} from './requests.ts';

/** Asks people what OpenCode wants to know. Gives a function that sends OpenCode their answer. */
export async function askPeople(
  api: OpenCodeApi,
  prompt: Pick<AgentPrompt, 'ask'>,
  { requestId, kind, questions, callId }: OpenCodeRequest,
): Promise<() => Promise<unknown>> {
  const answers: AgentAnswer[] = [];
  for (const question of questions) {
    const answer = await prompt.ask({ ...question, ...(callId !== undefined && { callId }) });
    answers.push(answer);
    if (answer.status === 'expired') break;
  }
  if (kind === 'permission') {
    const { reply, message } = toReply(answers[0]);
    return () => api.replyToPermission(requestId, reply, message);
  }
  if (answers.some(({ status }) => status === 'expired')) {
    return () => api.rejectQuestion(requestId);
  }
  return () => api.replyToQuestion(requestId, answers.map(toLabels));
}

/** With a message the agent goes on, and knows why it may not; without one its turn is over. */
function toReply(answer?: AgentAnswer): { reply: PermissionReply; message?: string } {
  if (answer?.status !== 'answered') {
    return { reply: 'reject', message: 'Nobody answered in time.' };
  }
  if (answer.answer === ALLOW_ONCE) return { reply: 'once' };
  if (answer.answer === ALWAYS_ALLOW) return { reply: 'always' };
  const { approved, reason } = toDecision(answer.answer);
  if (approved) return { reply: 'once' };
  return { reply: 'reject', ...(reason !== undefined && { message: reason }) };
}

function toLabels(answer: AgentAnswer): string[] {
  if (answer.status === 'expired') return [];
  if (typeof answer.answer === 'string') return [answer.answer];
  return [toDecision(answer.answer).approved ? 'Yes' : 'No'];
}
