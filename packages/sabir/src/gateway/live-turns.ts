import type { TurnInfo, TurnLog } from '../turns/log.ts';
import { readApprovals } from './approvals.ts';
import type { Place } from './chat-route.ts';
import type { TurnRunner } from './turn-runner.ts';

export type LiveTurns = ReturnType<typeof createLiveTurns>;

/** A turn that has not ended, and why it says nothing, if it does. */
export type LiveTurn = { turn: TurnInfo; waitsFor: 'an answer' | 'others' | undefined };

/** Which of a chat's turns somebody wants to see: the one that says something. */
const RANKS = { 'an answer': 1, others: 2 } as const;

/** The turns of a chat that have not ended, whichever gateway they run in. */
export function createLiveTurns(log: TurnLog, runner: TurnRunner) {
  async function findAll({ logSession, chatId }: Place): Promise<TurnInfo[]> {
    return log.live(logSession, chatId);
  }

  /** What is not known here, the log tells. Asked only where it makes a difference. */
  async function waitsForElsewhere({ turnId, lastSeq }: TurnInfo): Promise<LiveTurn['waitsFor']> {
    // Whoever reads a turn that has said nothing waits until it does.
    if (lastSeq === 0) return 'others';
    const approvals = await readApprovals(log, turnId);
    if (approvals.isQueued) return 'others';
    return approvals.isWaiting ? 'an answer' : undefined;
  }

  return {
    /** Those that say something, then what waits for an answer, then what waits behind others. */
    async find(place: Place): Promise<LiveTurn[]> {
      const turns = await findAll(place);
      const live = await Promise.all(
        turns.map(async (turn) => {
          const here = runner.turnHere(turn.turnId);
          if (here) return { turn, waitsFor: here.waitsFor };
          return { turn, waitsFor: turns.length > 1 ? await waitsForElsewhere(turn) : undefined };
        }),
      );
      return live.sort((one, other) => rankOf(one) - rankOf(other));
    },
  };
}

function rankOf({ waitsFor }: LiveTurn): number {
  return waitsFor ? RANKS[waitsFor] : 0;
}
