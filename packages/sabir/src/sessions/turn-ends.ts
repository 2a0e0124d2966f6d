import { type ErrorKind, LOG_FAILED, SERVER_RESTARTED } from '../core/errors.ts';
import type { Clients } from './clients.ts';
import type { Clock } from './options.ts';
import type { RunningTurn } from './running-turn.ts';
import type { SessionStorage, TurnInfo } from './storage.ts';

type TurnEndsOptions = {
  storage: SessionStorage;
  clients: Clients;
  clock: Clock;
  /** Its questions are no longer open. */
  withdrawQuestions(turnId: string): void;
  /** A turn as it is stored. */
  restore(turn: TurnInfo): RunningTurn;
};

type Unstored = { turnId: string; frame: string; store(): void };

/** How turns end in the storage, also when that fails: owns those that are still to be stored. */
export function createTurnEnds(options: TurnEndsOptions) {
  const { storage, clients, clock, withdrawQuestions, restore } = options;
  let unstored: Unstored[] = [];

  function storeFailure(running: RunningTurn, kind: ErrorKind, endedAt: number): void {
    const { seq, frame, message, error } = running.toFailure(kind);
    const { turnId } = running.turn;
    storage.transaction(() => {
      withdrawQuestions(turnId);
      storage.appendEvents(turnId, seq, frame);
      storage.addMessage(message);
      storage.updateTurn(turnId, { status: 'ended', endedAt, reason: 'error', error });
    });
  }

  return {
    /** The end could not be stored: everybody is told so, and it is tried again later. */
    tellUnstored(running: RunningTurn): void {
      const { turn, channel } = running;
      const { frame } = running.toFailure(LOG_FAILED);
      clients.broadcastFrame(frame, channel);
      const endedAt = clock.now();
      // What was not stored nobody was told: it is not part of the answer.
      const store = () => {
        const stored = restore(turn);
        storeFailure(stored, LOG_FAILED, endedAt);
        const { message: data } = stored.toFailure(LOG_FAILED);
        clients.broadcastSnapshot(JSON.stringify({ type: 'message.updated', data }), channel);
      };
      unstored.push({ turnId: turn.turnId, frame, store });
    },
    /** As everybody was told it: whoever comes before it is stored would never hear of it. */
    unstoredEnd: (turnId: string) => unstored.find((one) => one.turnId === turnId)?.frame,
    /** Throws if it still cannot be. */
    storeUnstored(): void {
      while (unstored.length > 0) {
        unstored[0]?.store();
        unstored = unstored.slice(1);
      }
    },
    /** One of a process that ended, which nobody can go on with. */
    storeBroken: (running: RunningTurn) => storeFailure(running, SERVER_RESTARTED, clock.now()),
  };
}
