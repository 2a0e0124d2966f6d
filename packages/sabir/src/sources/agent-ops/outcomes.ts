import { RUN_FAILED } from '../../core/errors.ts';
import type { TurnOutcome } from '../../core/outcome.ts';

/** What went wrong in a turn; there may be no words for it. */
export type Problem = { cause: unknown; code?: unknown };

export const FINISHED: TurnOutcome = { status: 'finished' };
export const ABORTED: TurnOutcome = { status: 'stopped', reason: 'aborted' };
export const WITHDRAWN: TurnOutcome = { status: 'stopped', reason: 'withdrawn' };
const CANCELED: TurnOutcome = { status: 'stopped', reason: 'canceled' };
const ENDED_SOMEHOW: TurnOutcome = { status: 'finished', finishReason: 'other' };

export function toFailed(problem: Problem | undefined): TurnOutcome {
  const { code } = problem ?? {};
  return {
    status: 'failed',
    code: typeof code === 'string' && code !== '' ? code : RUN_FAILED.code,
  };
}

/** How a turn ended that says why. */
export function toOutcome(reason: unknown, problem: Problem | undefined): TurnOutcome {
  if (reason === 'canceled') return CANCELED;
  if (reason === 'error' || problem) return toFailed(problem);
  return reason === 'end_turn' ? FINISHED : ENDED_SOMEHOW;
}
