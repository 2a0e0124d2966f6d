import type { MessageLike } from '../../message.ts';
import { toDecision } from './approvals.ts';
import type { Loose, RunItem } from './events.ts';
import { callIdOf } from './read-call.ts';

/** What the SDK keeps of a run that was interrupted: its `RunState`, as far as it is looked at. */
export interface InterruptedState {
  getInterruptions(): RunItem[];
  approve(item: RunItem): void;
  reject(item: RunItem, options?: { message?: string }): void;
  toString(): string;
}

/**
 * What somebody decided in a stock client, as its message says, → the run that waits for it. False
 * if a call is left that nobody decided: then it would only ask again.
 *
 * Check who sent the message first: whoever may post it may approve.
 */
export function applyDecisions(state: unknown, message: MessageLike): boolean {
  const parts = message.parts as readonly Loose[];
  const run = state as InterruptedState;
  let isDecided = true;
  for (const item of run.getInterruptions()) {
    const callId = callIdOf(item.rawItem ?? {}) ?? '';
    const part = parts.findLast((one) => isOf(one, callId) && one.state === 'approval-responded');
    if (!part) isDecided = false;
    else decide(run, item, part.approval);
  }
  return isDecided;
}

/** An answer, in whatever words it was given → the run. */
export function decide(state: InterruptedState, item: RunItem, answer: unknown): void {
  const { approved, reason } = toDecision(answer);
  if (approved) state.approve(item);
  else state.reject(item, reason === undefined ? {} : { message: reason });
}

/** A call whose id the model had used before has a number behind it. */
function isOf({ toolCallId }: Loose, callId: string): boolean {
  if (typeof toolCallId !== 'string' || !toolCallId.startsWith(callId)) return false;
  return /^(-\d+)?$/.test(toolCallId.slice(callId.length));
}
