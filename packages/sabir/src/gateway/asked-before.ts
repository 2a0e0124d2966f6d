import type { TurnInfo } from '../turns/log.ts';
import { isCancel } from './ag-ui-post.ts';
import { messageNameIn, type PromptPost } from './chat-post.ts';

/**
 * Whether a chat was asked before about the message that comes with answers. An AG-UI client sends its whole conversation with
 * its answers: the last message may be the one that the answered turn answers, or one that its user wrote instead of an answer.
 *
 * @param known The turns of the chat that the log knows, as far as they were looked up.
 * @param answered The turn that goes on with the answers, or the one that asked, if the log has it.
 * @param isStored Whether the session has the message; undefined without a session in this process.
 */
export function isAskedBefore(
  { requestId, messages, userMessage, answersFirst }: PromptPost,
  {
    known,
    answered,
    isStored,
  }: { known: TurnInfo[]; answered: TurnInfo | undefined; isStored: boolean | undefined },
): boolean {
  // A message that follows the outputs of tools is new.
  if (!answersFirst?.cursor) return false;
  // The same request, sent again: it finds its turn.
  if (known.some((turn) => turn.requestId.startsWith(requestId))) return false;
  const name = messageNameIn(requestId);
  const turns = answered ? [...known, answered] : known;
  if (turns.some((turn) => messageNameIn(turn.requestId) === name)) return true;
  if (answered && messageNameIn(answered.requestId) !== undefined) return false;
  const before = messages.findLast(
    (message) => message !== userMessage && message.role !== 'system',
  );
  if (!answered) {
    if (isStored !== undefined) return isStored;
    // The log has forgotten the turn. A user who writes a message instead of an answer cancels the question, and what asked it
    // stands before that message. Everything else may be an old message, which must not be prompted again.
    return !before || !answersFirst.answers.every(({ answer }) => isCancel(answer));
  }
  // A turn that was kept and goes on does not name its message. A message of a user that follows its answer, or another
  // message of a user, is a new one.
  const { messageId, sourceMessageId = messageId } = answered;
  return before?.role !== 'user' && before?.id !== sourceMessageId;
}
