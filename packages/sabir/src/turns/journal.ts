import type { Chunk } from '../core/chunks.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { TurnCommand, TurnInfo } from './log.ts';

/** A turn as an earlier process left it. */
export type JournaledTurn = Pick<
  TurnInfo,
  'turnId' | 'sessionId' | 'chatId' | 'requestId' | 'messageId' | 'userId' | 'startedAt'
> & {
  origin: unknown;
  mark: number;
  chunks: Chunk[];
  commands: TurnCommand[];
  /** Both are there once the turn has ended. */
  endedAt?: number;
  outcome?: TurnOutcome;
};

/**
 * Where a log of one process writes its turns down, so that the next process finds them. An implementation
 * - MUST keep the order of what it is given, across turns;
 * - MUST have written everything that it was given before when `flush` returns, or throw and keep nothing of it;
 * - MUST give back with `load` what was written, and nothing else. It MUST leave out and forget a turn that is damaged.
 */
export interface TurnJournal {
  /** Called once, before anything is written. */
  load(): JournaledTurn[];
  begin(turn: Omit<JournaledTurn, 'chunks' | 'commands' | 'mark'>): void;
  /** `lastSeq` is the number of the last chunk; `mark` is given where it has changed. */
  append(turnId: string, lastSeq: number, chunks: Chunk[], mark?: number): void;
  command(turnId: string, command: TurnCommand): void;
  end(turnId: string, outcome: TurnOutcome, endedAt: number): void;
  /**
   * Writes the end of a turn, everything of which is written, together with `store`: both, or neither and it throws. It
   * does so at once, and leaves what other turns wait to write as it is.
   */
  endWith(turnId: string, outcome: TurnOutcome, endedAt: number, store: () => void): void;
  forget(turnId: string): void;
  flush(): void;
  close(): void;
}
