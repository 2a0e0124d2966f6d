import type { AnyTurnLog, TurnInfo } from '../turns/log.ts';
import { type Answering, checkAnswerer } from './answer-question.ts';
import { type Approvals, readApprovals } from './approvals.ts';
import type { Approval, ChatPost } from './chat-post.ts';
import type { Place } from './chat-route.ts';

type AnsweringPost = Extract<ChatPost, { kind: 'acknowledge' }>;

/** Where a client that has answered goes on. */
export type Continuation = { turn: TurnInfo; after: number; answered: ReadonlySet<string> };

/**
 * A stock client answers an approval by sending its message again, with the answers in it. They are
 * given to the turn that asked, unless somebody was faster; the client goes on where it was let go,
 * and sees what came of them either way.
 */
export function createApprovalAnswering(log: AnyTurnLog, { handOver }: Answering) {
  /** Undefined where the turn is not the message's, or has not asked for any of these. */
  async function answerIn(
    turn: TurnInfo,
    approvals: Approvals,
    { post: { messageId, approvals: given }, place }: { post: AnsweringPost; place: Place },
  ): Promise<Continuation | undefined> {
    if ((approvals.messageId ?? turn.messageId) !== messageId) return undefined;
    const open: Approval[] = [];
    const known: string[] = [];
    for (const approval of given) {
      const question = approvals.questionBehind(approval.approvalId);
      if (!question) continue;
      known.push(approval.approvalId);
      if (question.status !== 'open') continue;
      // Before any is given: one that is for somebody else keeps all of them from counting.
      checkAnswerer(question, place);
      open.push(approval);
    }
    const last = approvals.lastOf(known);
    if (!last) return undefined;
    for (const { approvalId, answer } of open) {
      await handOver(turn, { type: 'answer', questionId: approvalId, answer });
    }
    const after = last.stepEnd ?? last.seq;
    return { turn: { ...turn, messageId }, after, answered: new Set(known) };
  }

  return {
    /** Undefined where nothing is known of what it answers: then there is nothing to go on with. */
    async answerApprovals(
      post: AnsweringPost,
      place: Place,
      { turns, restored }: { turns: TurnInfo[]; restored: TurnInfo | undefined },
    ): Promise<Continuation | undefined> {
      const ids = post.approvals.map(({ approvalId }) => approvalId);
      for (const turn of ids.length > 0 ? turns : []) {
        const isRestored = turn.turnId === restored?.turnId;
        // Whoever reads a turn that has said nothing waits until it does.
        if (turn.lastSeq === 0 && !isRestored) continue;
        const isTold = (approvals: Approvals) => approvals.lastOf(ids)?.stepEnd !== undefined;
        const approvals = await readApprovals(log, turn.turnId, isRestored ? isTold : undefined);
        const continuation = await answerIn(turn, approvals, { post, place });
        if (continuation) return continuation;
      }
      return undefined;
    },
  };
}
