import type { Finalize } from './protocol.ts';
import type { RunningTurn } from './running-turn.ts';

/** The turn that runs, as its runner knows it. */
export type Current = {
  readonly running: RunningTurn;
  /** A runner of another make names its turns itself. */
  runnerTurnId?: unknown;
  isAborting: boolean;
};

export type RunnerEvent = { type: string; [field: string]: unknown };
export type TurnEnd = Omit<Finalize, 'type'>;

/**
 * Whether an event of a turn is of the one that runs; a late one of another is nobody's. Only a
 * runner of another make, which has no name, may call the turn something else.
 */
export function isOfTurn(
  { type, turnId }: RunnerEvent,
  current: Current,
  isRunnerNamed: boolean,
): boolean {
  const { running } = current;
  if (turnId === running.turn.turnId) return true;
  if (isRunnerNamed) return false;
  if (type === 'message.create' && !running.isCreated) {
    current.runnerTurnId = turnId;
    return true;
  }
  // Without a name it means the turn that is open, which is none before it was made.
  return running.isCreated && (turnId == null || turnId === current.runnerTurnId);
}

/** How the turn ends with this event, if it does. */
export function endOf(event: RunnerEvent, current: Current): TurnEnd | undefined {
  const end = readEnd(event, current);
  // Whatever becomes of an answer that somebody has stopped, it was stopped.
  return end && current.isAborting ? { reason: 'canceled' } : end;
}

function readEnd(event: RunnerEvent, { running, isAborting }: Current): TurnEnd | undefined {
  const { type, messageId } = event;
  if (type === 'message.finalize') return readFinalize(event);
  if (messageId !== undefined && messageId !== running.turn.promptId) return undefined;
  // The end of the turn before may come late, and names nobody.
  const isAboutIt = running.isCreated || messageId !== undefined;
  if (type === 'complete') return isAboutIt ? { reason: 'end_turn' } : undefined;
  if (type === 'aborted') return isAboutIt || isAborting ? { reason: 'canceled' } : undefined;
  return type === 'error' ? { reason: 'error', ...wordsOf(event) } : undefined;
}

function readFinalize(event: RunnerEvent): TurnEnd {
  const { reason, finalText } = event;
  if (reason === 'canceled') return { reason };
  const isError = reason === 'error' || typeof event.error === 'string';
  return {
    reason: isError ? 'error' : 'end_turn',
    ...(typeof finalText === 'string' && { finalText }),
    ...(isError && wordsOf(event)),
  };
}

function wordsOf({ error, message, code }: RunnerEvent): { error?: string; code?: string } {
  const text = [error, message].find((given) => typeof given === 'string' && given !== '');
  return {
    ...(text !== undefined && { error: text as string }),
    ...(typeof code === 'string' && { code }),
  };
}
