import type { AnyTurnLog, TurnInfo } from '../turns/log.ts';

/** A turn by its id; a log that cannot look for it is asked for the latest of the chat. */
export async function findTurn(
  log: AnyTurnLog,
  turnId: string,
  { sessionId, chatId }: { sessionId: string; chatId: string },
): Promise<TurnInfo | undefined> {
  if (log.get) return log.get(turnId);
  const latest = await log.latest(sessionId, chatId);
  return latest?.turnId === turnId ? latest : undefined;
}
