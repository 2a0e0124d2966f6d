import type { ChatStatus } from 'ai';
import { type ChatMessage, openQuestion, type Question } from './chat-message.ts';
import { toSteps } from './to-steps.ts';
import type { TurnNotice } from './turn-notice.ts';

/**
 * What a screen reader is told: who works, what is asked, and how it ended. Never the words
 * themselves, which would be read out one by one for as long as they stream.
 */
export function toAnnouncement(
  status: ChatStatus,
  notice: TurnNotice | undefined,
  last: ChatMessage | undefined,
): string {
  if (status === 'submitted') return 'Sent.';
  if (status === 'streaming') {
    const question = openQuestion(last);
    if (question) return `Waiting for you: ${question.text} ${toChoice(question)}`;
    const { node, agent } =
      toSteps(last?.parts ?? []).findLast((step) => step.node ?? step.agent) ?? {};
    if (agent) return `${agent.name} is working.`;
    return node ? `The ${node.id} is working.` : 'The answer is being written.';
  }
  // A failure announces itself: its banner is an alert.
  if (notice) return notice.kind === 'failed' ? '' : `${notice.title}.`;
  return last?.role === 'assistant' ? 'The answer is complete.' : '';
}

function toChoice({ options = [] }: Question): string {
  const [first, ...others] = options;
  if (first === undefined) return 'Write your answer.';
  return `${[first, ...others.map((other) => other.toLowerCase())].join(' or ')}.`;
}
