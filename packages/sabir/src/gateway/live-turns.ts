import type { TurnInfo, TurnLog } from '../turns/log.ts';
import { waitsFor } from '../turns/turn-progress.ts';
import type { Place } from './chat-route.ts';

const RANKS = { answer: 1, queue: 2 } as const;

/**
 * The turns of a chat that have not ended, whichever gateway they run in: those that say something, then those that
 * wait for an answer, then those that wait behind others.
 */
export async function findLiveTurns(
  log: TurnLog,
  { logSession, chatId }: Place,
): Promise<TurnInfo[]> {
  const turns = await log.live(logSession, chatId);
  return turns.sort((one, other) => rankOf(one) - rankOf(other));
}

function rankOf(turn: TurnInfo): number {
  const waiting = waitsFor(turn);
  return waiting ? RANKS[waiting] : 0;
}
