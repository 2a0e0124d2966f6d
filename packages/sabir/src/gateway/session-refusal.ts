import {
  CONVERSATION_CHANGED,
  type ErrorKind,
  MAY_ONLY_WATCH,
  PROMPT_TAKEN,
  QUEUE_FULL,
  REPLACES_OTHERS,
  SESSION_FULL,
  STILL_ANSWERED,
} from '../core/errors.ts';
import { within } from '../core/within.ts';
import type { Begun } from './turn-host.ts';

/** Why a session may refuse a message that it was given. */
const SESSION_REFUSALS = [
  QUEUE_FULL,
  SESSION_FULL,
  MAY_ONLY_WATCH,
  PROMPT_TAKEN,
  REPLACES_OTHERS,
  STILL_ANSWERED,
  CONVERSATION_CHANGED,
];

/** Why a session has refused a message at once; undefined where it has not. */
export async function sessionRefusal(
  accepted: Begun['accepted'],
  acceptMs: number,
): Promise<ErrorKind | undefined> {
  const outcome = accepted && (await within(acceptMs, accepted));
  const code = outcome?.status === 'failed' ? outcome.code : undefined;
  return SESSION_REFUSALS.find((refusal) => refusal.code === code);
}
