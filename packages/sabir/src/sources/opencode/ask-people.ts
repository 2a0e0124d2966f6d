import type { DriverAnswer, DriverPrompt } from '../../turns/driver.ts';
import type { OpenCodeApi } from './api.ts';
import {
  ALLOW_ONCE,
  ALWAYS_ALLOW,
  DENY,
  type OpenCodeRequest,
  type PermissionReply,
} from './requests.ts';

/** Asks the people in the session what OpenCode wants to know; gives what tells it their answer. */
export async function askPeople(
  api: OpenCodeApi,
  prompt: Pick<DriverPrompt, 'ask'>,
  { requestId, kind, questions, callId }: OpenCodeRequest,
): Promise<() => Promise<unknown>> {
  const answers: DriverAnswer[] = [];
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
function toReply(answer?: DriverAnswer): { reply: PermissionReply; message?: string } {
  if (answer?.status !== 'answered') {
    return { reply: 'reject', message: 'Nobody answered in time.' };
  }
  switch (answer.answer) {
    case true:
    case ALLOW_ONCE:
      return { reply: 'once' };
    case ALWAYS_ALLOW:
      return { reply: 'always' };
    case false:
    case DENY:
      return { reply: 'reject' };
    default:
      return { reply: 'reject', message: answer.answer };
  }
}

function toLabels(answer: DriverAnswer): string[] {
  if (answer.status === 'expired') return [];
  return [typeof answer.answer === 'string' ? answer.answer : answer.answer ? 'Yes' : 'No'];
}
