import type { RunnerCommand } from './protocol.ts';
import type { Current } from './runner-says.ts';
import type { RunningTurn } from './running-turn.ts';
import type { StoredMessage } from './storage.ts';

export function toPromptCommand(
  { turn, channel }: RunningTurn,
  messages: StoredMessage[] | undefined,
): RunnerCommand {
  const { turnId, promptId, content, model, attachments, authorId, authorName } = turn;
  const { traceparent } = turn;
  return {
    type: 'prompt',
    messageId: promptId,
    turnId,
    content,
    ...channel,
    ...(model !== undefined && { model }),
    ...(traceparent !== undefined && { traceparent }),
    ...(attachments.length > 0 && { attachments }),
    author: { id: authorId, ...(authorName !== undefined && { name: authorName }) },
    ...(messages && { messages }),
  };
}

export function toAbortCommand({ running, runnerTurnId }: Current): RunnerCommand {
  const { turnId, promptId } = running.turn;
  const named = typeof runnerTurnId === 'string' ? runnerTurnId : turnId;
  return { type: 'abort', turnId: named, messageId: promptId };
}
