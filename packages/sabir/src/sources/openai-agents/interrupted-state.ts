import { type Decision, toDecision } from '../../core/decision.ts';
import type { Loose } from '../../core/loose.ts';
import type { MessageLike } from '../../core/message.ts';
import type { RunItem } from './events.ts';
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
  const interruptions = run.getInterruptions();
  const callIds = interruptions.map(({ rawItem = {} }) => callIdOf(rawItem) ?? '');
  const answers = parts.filter(({ state: one }) => one === 'approval-responded');
  const decisions = callIds.map((callId) => {
    // An answer to one call is none to another, though that be called alike.
    const part =
      answers.find(({ toolCallId }) => toolCallId === callId) ??
      answers.findLast((one) => isOf(one, callId) && !callIds.includes(one.toolCallId as string));
    return part && toDecision(part.approval);
  });
  const decided = interruptions.filter((_, at) => decisions[at] !== undefined);
  const isDecided = decided.length === interruptions.length;
  decideAll(
    run,
    decided,
    decisions.filter((one) => one !== undefined),
  );
  return isDecided;
}

/**
 * What was decided, call by call → the run. Some releases know calls by their ids alone: where two
 * have the same one, a no to the one is a no to both.
 */
export function decideAll(
  state: InterruptedState,
  interruptions: readonly RunItem[],
  decisions: ReadonlyArray<Decision | undefined>,
): void {
  const callIds = interruptions.map(({ rawItem = {} }) => callIdOf(rawItem));
  const isNo = (decision: Decision | undefined) => decision?.approved !== true;
  for (const [at, item] of interruptions.entries()) {
    const refusal = decisions.find((one, i) => callIds[i] === callIds[at] && isNo(one));
    decide(state, item, isNo(decisions[at]) ? decisions[at] : (refusal ?? decisions[at]));
  }
}

function decide(state: InterruptedState, item: RunItem, answer: unknown): void {
  const { approved, reason } = toDecision(answer);
  if (approved) state.approve(item);
  else state.reject(item, reason === undefined ? {} : { message: reason });
}

/** A call whose id the model had used before has a number behind it. */
function isOf({ toolCallId }: Loose, callId: string): boolean {
  if (typeof toolCallId !== 'string' || !toolCallId.startsWith(callId)) return false;
  return /^(-\d+)?$/.test(toolCallId.slice(callId.length));
}
