import type { ChatStatus } from 'ai';
import type { ChatMessage } from './chat-message.ts';
import { toSteps } from './to-steps.ts';
import type { TurnNotice } from './turn-notice.ts';

/**
 * What a screen reader is told: who works, and how it ended. Never the words themselves, which
 * would be read out one by one for as long as they stream.
 */
export function toAnnouncement(
  status: ChatStatus,
  notice: TurnNotice | undefined,
  last: ChatMessage | undefined,
): string {
  if (status === 'submitted') return 'Sent.';
  if (status === 'streaming') {
    const node = toSteps(last?.parts ?? []).findLast((step) => step.node)?.node;
    return node ? `The ${node.id} is working.` : 'The answer is being written.';
  }
  // A failure announces itself: its banner is an alert.
  if (notice) return notice.kind === 'failed' ? '' : `${notice.title}.`;
  return last?.role === 'assistant' ? 'The answer is complete.' : '';
}
