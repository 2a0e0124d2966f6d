import type { TurnInfo } from '../turns/log.ts';
import { messageNameIn, type PromptPost } from './chat-post.ts';

/**
 * Whether a chat was asked before about the message that comes with answers. An AG-UI client sends its whole conversation with
 * its answers: the last message may be the one that the answered turn answers, or one that its user wrote instead of an answer.
 *
 * @param turns Those of the chat that the log knows.
 * @param answered The turn that the answers were for, if it is there.
 */
export function isAskedBefore(
  { requestId, messages, userMessage, answersFirst }: PromptPost,
  turns: TurnInfo[],
  answered: TurnInfo | undefined,
): boolean {
  // A message that follows the outputs of tools is new.
  if (!answersFirst?.cursor) return false;
  // The same request, sent again: it finds its turn.
  if (turns.some((turn) => turn.requestId.startsWith(requestId))) return false;
  const name = messageNameIn(requestId);
  if (turns.some((turn) => messageNameIn(turn.requestId) === name)) return true;
  if (!answered || messageNameIn(answered.requestId) !== undefined) return false;
  // A turn that was kept and goes on does not name its message. A message of a user that follows its answer, or another
  // message of a user, is a new one.
  const before = messages.findLast(
    (message) => message !== userMessage && message.role !== 'system',
  );
  const { messageId, sourceMessageId = messageId } = answered;
  return before?.role !== 'user' && before?.id !== sourceMessageId;
}
