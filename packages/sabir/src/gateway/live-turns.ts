import type { TurnInfo, TurnLog } from '../turns/log.ts';
import { waitsFor } from '../turns/turn-progress.ts';
import type { Place } from './chat-route.ts';
import type { TurnRunner } from './turn-runner.ts';

const RANKS = { answer: 1, queue: 2 } as const;

/**
 * The turns of a conversation that have not ended, whichever gateway they run in: those that say something, then those that
 * wait for an answer, then those that wait behind others. Of a turn that runs here it is known whether its prompt waits,
 * also before it has said anything.
 */
export async function findLiveTurns(
  log: TurnLog,
  runner: TurnRunner,
  place: Place,
): Promise<TurnInfo[]> {
  const { logSession, logChat } = place;
  const turns = (await log.live(logSession, logChat)).map((turn): TurnInfo => {
    const here = runner.turnHere(turn.turnId);
    return here ? { ...turn, status: here.isQueued ? 'queued' : 'running' } : turn;
  });
  return [...turns, ...(await runner.queuedIn(place))].sort(
    (one, other) => rankOf(one) - rankOf(other),
  );
}

function rankOf(turn: TurnInfo): number {
  const waiting = waitsFor(turn);
  return waiting ? RANKS[waiting] : 0;
}
