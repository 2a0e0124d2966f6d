import { SabirError, UPSTREAM_UNREACHABLE } from '../core/errors.ts';
import type { TurnInfo } from '../turns/log.ts';
import { hasExpired } from '../turns/question.ts';
import { type AskedQuestion, REQUESTED } from '../turns/turn-progress.ts';
import { type Answering, checkAnswerer } from './answer-question.ts';
import type { Approval, ChatPost } from './chat-post.ts';
import type { Place } from './chat-route.ts';
import type { GatewayTurns } from './gateway-turns.ts';
import type { Restoring } from './restore-turn.ts';

export type AnsweringPost = Extract<ChatPost, { kind: 'acknowledge' }>;

/** Where a client that has answered goes on. */
export type Continuation = {
  turn: TurnInfo;
  after: number;
  answered: ReadonlySet<string>;
  /** Those whose answer was the first. */
  given: Approval[];
};
/** The turn has ended and left open what the client answers: nobody can take that there. */
type Left = { left: TurnInfo };

type ApprovalAnsweringOptions = {
  turns: GatewayTurns;
  answering: Answering;
  restoring: Restoring;
};

/**
 * A stock client answers an approval by sending its message again, with the answers in it. They are
 * given to the turn that asked, unless somebody was faster; the client goes on where it was let go,
 * and sees what came of them either way.
 */
export function createApprovalAnswering(options: ApprovalAnsweringOptions) {
  const { turns, restoring } = options;
  const { handOver } = options.answering;

  /** Undefined where the turn is not the message's, or has not asked for any of these. */
  async function answerIn(
    turn: TurnInfo,
    { post, place }: { post: AnsweringPost; place: Place },
  ): Promise<Continuation | Left | undefined> {
    const { messageId } = post;
    if (!isOf(turn, post)) return undefined;
    const open: Approval[] = [];
    const known: string[] = [];
    for (const approval of post.approvals) {
      const question = approvalOf(turn, approval.approvalId);
      // A call that was not asked about in words cannot be answered.
      if (!question || question.status === REQUESTED) continue;
      known.push(approval.approvalId);
      if (question.status !== 'open') continue;
      // A client that went on there would find its answer not taken, and send it for ever.
      if (turn.outcome) return { left: turn };
      // Before any is given: one that is for somebody else keeps all of them from counting.
      checkAnswerer(question, place);
      // What really happens to one that comes too late, its client sees.
      if (!hasExpired(question)) open.push(approval);
    }
    const last = lastOf(turn, known);
    if (!last) return undefined;
    const given: Approval[] = [];
    for (const approval of open) {
      const { approvalId: questionId, answer } = approval;
      const command = { type: 'answer', questionId, answer } as const;
      if (await handOver(turn, command, place)) given.push(approval);
    }
    const now = given.length === open.length ? undefined : await turns.find(turn.turnId, place);
    // It has ended meanwhile: with an answer of somebody else's, or without any.
    if (now?.outcome) {
      return answerIn(now, { post, place });
    }
    const after = last.stepEnd ?? last.seq;
    return { turn: { ...turn, messageId }, after, answered: new Set(known), given };
  }

  /** In a turn that may not have told all of it again yet. */
  async function answerInRestored(turn: TurnInfo, post: AnsweringPost, place: Place) {
    const ids = post.approvals.map(({ approvalId }) => approvalId);
    const { told, isUnsure } = await restoring.untilTold(turn, place, (now) => {
      const isAsked = ids.every((id) => approvalOf(now, id)?.approval.stepEnd !== undefined);
      return isAsked || (now.sourceMessageId !== undefined && !isOf(now, post));
    });
    const found = await answerIn(told, { post, place });
    if (!found && isUnsure && isOf(told, post)) throw new SabirError(UPSTREAM_UNREACHABLE);
    return found;
  }

  return {
    /** Undefined where nothing is known of what it answers: then there is nothing to go on with. */
    async answerApprovals(
      post: AnsweringPost,
      place: Place,
      { turns, restored }: { turns: TurnInfo[]; restored: TurnInfo | undefined },
    ): Promise<Continuation | Left | undefined> {
      for (const turn of turns) {
        if (turn.turnId === restored?.turnId) continue;
        const found = await answerIn(turn, { post, place });
        if (found) return found;
      }
      return restored && answerInRestored(restored, post, place);
    },
  };
}

/** Whether it is the turn's message that was sent; a source may name another than was planned. */
function isOf({ sourceMessageId, messageId }: TurnInfo, post: AnsweringPost): boolean {
  return (sourceMessageId ?? messageId) === post.messageId;
}

type ApprovalQuestion = AskedQuestion & Required<Pick<AskedQuestion, 'approval'>>;

/** The question about a tool call. */
function approvalOf({ questions }: TurnInfo, approvalId: string): ApprovalQuestion | undefined {
  const question = questions.find(({ questionId }) => questionId === approvalId);
  return question?.approval && (question as ApprovalQuestion);
}

/** The approval that was asked for last: a client that has answered it stopped behind it. */
function lastOf(turn: TurnInfo, approvalIds: string[]): ApprovalQuestion['approval'] | undefined {
  const requests = approvalIds.flatMap((id) => approvalOf(turn, id)?.approval ?? []);
  return requests.sort((one, other) => one.seq - other.seq).at(-1);
}
