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
import type { TurnOutcome } from '../core/outcome.ts';
import { within } from '../core/within.ts';
import { isReplacing, SETTLE_MS } from '../sessions/index.ts';
import type { FinishedTurn } from '../turns/turn-options.ts';
import type { PromptPost } from './chat-post.ts';
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

/** A session server answers a regenerate or an edit when the turn that it replaces has ended. */
const REPLACING_MS = SETTLE_MS + 1_000;

/** How long a gateway waits for a session's answer to a message. */
export function acceptMsOf(post: PromptPost, acceptMs: number): number {
  return isReplacing(post) ? Math.max(acceptMs, REPLACING_MS) : acceptMs;
}

/** Why a session has refused a message at once; undefined where it has not. */
export async function sessionRefusal(
  accepted: Begun['accepted'],
  acceptMs: number,
): Promise<ErrorKind | undefined> {
  return refusalIn(accepted && (await within(acceptMs, accepted)));
}

/** Whether a turn ended because its session refused the message, before an agent had it. */
export function wasRefused({
  outcome,
  message,
}: Pick<FinishedTurn, 'outcome' | 'message'>): boolean {
  return message.parts.length === 0 && refusalIn(outcome) !== undefined;
}

function refusalIn(outcome: TurnOutcome | undefined): ErrorKind | undefined {
  const code = outcome?.status === 'failed' ? outcome.code : undefined;
  return SESSION_REFUSALS.find((refusal) => refusal.code === code);
}
