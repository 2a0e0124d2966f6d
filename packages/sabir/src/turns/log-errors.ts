import type { Chunk } from '../core/chunks.ts';
import {
  type ErrorKind,
  LOG_FAILED,
  LOG_UNAVAILABLE,
  SabirError,
  SERVER_FULL,
  SESSION_FULL,
  TURN_FENCED,
  TURN_TOO_LARGE,
} from '../core/errors.ts';

/** What a turn is told to have failed by, whatever its log threw. */
export function kindOf(error: unknown): ErrorKind {
  const { code } = error instanceof SabirError ? error : LOG_FAILED;
  return (
    [TURN_TOO_LARGE, SERVER_FULL, SESSION_FULL, LOG_UNAVAILABLE].find(
      (kind) => kind.code === code,
    ) ?? LOG_FAILED
  );
}

/** What the log has lost of a turn does not keep the turn from ending. */
export function nothingIfLost(error: unknown): Chunk[] {
  if (hasCode(error, LOG_FAILED)) return [];
  throw error;
}

export function isFence(error: unknown): boolean {
  return hasCode(error, TURN_FENCED);
}

export function hasCode(error: unknown, { code }: ErrorKind): boolean {
  return error instanceof SabirError && error.code === code;
}
