import type { Chat } from './chat.ts';
import type { ChatMessage } from './chat-message.ts';
import { toFriendlyError } from './friendly-error.ts';

export type TurnNotice = {
  kind: 'failed' | 'interrupted' | 'stopped';
  title: string;
  text?: string;
};

/** What there is to say about the last turn, if it did not simply finish. */
export function toTurnNotice(
  { status, error, messages, isShared }: Pick<Chat, 'status' | 'error' | 'messages' | 'isShared'>,
  canMove: boolean,
): TurnNotice | undefined {
  if (status === 'submitted' || status === 'streaming') return;
  if (error) return { kind: 'failed', ...toFriendlyError(error, canMove) };
  const last = messages.at(-1);
  if (!last) return;
  if (last.role === 'user') {
    return { kind: 'interrupted', title: 'Interrupted', text: 'The answer had not begun yet.' };
  }
  switch (last.metadata?.outcome) {
    case 'finished':
    case 'paused':
      return;
    case 'stopped':
      return {
        kind: 'stopped',
        title: isShared ? 'Stopped for everybody' : 'You stopped this answer',
      };
    case 'failed':
      return {
        kind: 'failed',
        ...toFriendlyError(new Error(last.metadata.reason ?? findNodeError(last)), canMove),
      };
    default:
      return {
        kind: 'interrupted',
        title: 'Interrupted',
        text: 'The connection ended before the answer did. What had arrived is kept.',
      };
  }
}

/** After a reload the error itself is gone, but the node that failed still says why. */
function findNodeError(message: ChatMessage): string {
  for (const part of message.parts.toReversed()) {
    if (part.type === 'data-node' && part.data.error) return part.data.error;
  }
  return '';
}
