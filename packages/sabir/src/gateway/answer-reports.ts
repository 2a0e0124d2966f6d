import { SabirError, UPSTREAM_UNREACHABLE } from '../core/errors.ts';
import type { TurnInfo } from '../turns/log.ts';
import { hasExpired } from '../turns/question.ts';
import { type AskedQuestion, REQUESTED } from '../turns/turn-progress.ts';
import { type Answering, checkAnswerer } from './answer-question.ts';
import type { ChatPost, ToolReport } from './chat-post.ts';
import type { Place } from './chat-route.ts';
import type { GatewayTurns } from './gateway-turns.ts';
import type { Restoring } from './restore-turn.ts';

export type ReportingPost = Extract<ChatPost, { kind: 'acknowledge' }>;

/** Where a client that has answered goes on. */
export type Continuation = {
  turn: TurnInfo;
  after: number;
  answered: ReadonlySet<string>;
  /** The results that the client has given, by their calls: it needs no events for these. */
  knownResults?: ReadonlyMap<string, string>;
};
/** `given` are those whose answer was the first. */
export type Reported = Continuation & { given: ToolReport[] };
/** The turn has ended and left open what the client answers: nobody can take that there. */
type Left = { left: TurnInfo };

type ReportAnsweringOptions = {
  turns: GatewayTurns;
  answering: Answering;
  restoring: Restoring;
};

/**
 * A stock client answers an approval, or gives the output of a tool that it ran, by sending its message again. The answers are
 * given to the turn that asked, unless somebody was faster; the client goes on where it was let go,
 * and sees what came of them either way.
 */
export function createReportAnswering(options: ReportAnsweringOptions) {
  const { turns, restoring } = options;
  const { handOver } = options.answering;

  /** Undefined where the turn is not the message's, or has not asked for any of these. */
  async function answerIn(
    turn: TurnInfo,
    { post, place }: { post: ReportingPost; place: Place },
  ): Promise<Reported | Left | undefined> {
    const { messageId } = post;
    if (!isOf(turn, post)) return undefined;
    const open: ToolReport[] = [];
    const known: string[] = [];
    for (const report of post.reports) {
      const question = callQuestionOf(turn, report);
      // A call that was not asked about in words cannot be answered.
      if (!question || question.status === REQUESTED) continue;
      known.push(report.questionId);
      if (question.status !== 'open') continue;
      // A client that went on there would find its answer not taken, and send it for ever.
      if (turn.outcome) return { left: turn };
      // Before any is given: one that is for somebody else keeps all of them from counting.
      checkAnswerer(question, place);
      // What really happens to one that comes too late, its client sees.
      if (!hasExpired(question)) open.push(report);
    }
    const last = lastOf(turn, known);
    if (!last) return undefined;
    const given: ToolReport[] = [];
    for (const report of open) {
      const { questionId, answer } = report;
      const command = { type: 'answer', questionId, answer } as const;
      if (await handOver(turn, command, place)) given.push(report);
    }
    const now = given.length === open.length ? undefined : await turns.find(turn.turnId, place);
    // It has ended meanwhile: with an answer of somebody else's, or without any.
    if (now?.outcome) {
      return answerIn(now, { post, place });
    }
    const after = last.stepEnd ?? last.seq;
    return { turn: { ...turn, messageId }, after, answered: new Set(known), given };
  }

  /** In a turn that may not have repeated yet what it waits for. */
  async function answerInRestored(turn: TurnInfo, post: ReportingPost, place: Place) {
    if (post.reports.length === 0) return undefined;
    const approvals = post.reports.filter(({ answer }) => 'approved' in answer);
    const { told, isUnsure } = await restoring.untilTold(turn, place, (now) => {
      const isAsked = (report: ToolReport) =>
        callQuestionOf(now, report)?.call.stepEnd !== undefined;
      const isOther = now.sourceMessageId !== undefined && !isOf(now, post);
      if (approvals.length > 0) return isOther || approvals.every(isAsked);
      // A message also reports outputs that the turn does not wait for.
      return isOther || post.reports.some(isAsked) || now.questions.some(waitsAtStepEnd);
    });
    const found = await answerIn(told, { post, place });
    if (!found && isUnsure && isOf(told, post)) throw new SabirError(UPSTREAM_UNREACHABLE);
    return found;
  }

  return {
    /** Undefined where nothing is known of what it answers: then there is nothing to go on with. */
    async answerReports(
      post: ReportingPost,
      place: Place,
      { turns, restored }: { turns: TurnInfo[]; restored: TurnInfo | undefined },
    ): Promise<Reported | Left | undefined> {
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
function isOf({ sourceMessageId, messageId }: TurnInfo, post: ReportingPost): boolean {
  return (sourceMessageId ?? messageId) === post.messageId;
}

function waitsAtStepEnd({ status, call }: AskedQuestion): boolean {
  return status === 'open' && call?.stepEnd !== undefined;
}

type CallQuestion = AskedQuestion & Required<Pick<AskedQuestion, 'call'>>;

/** The question about a tool call that a report answers. */
function callQuestionOf(
  { questions }: TurnInfo,
  { questionId, answer }: ToolReport,
): CallQuestion | undefined {
  const question = questions.find((asked) => asked.questionId === questionId);
  const isFitting = 'approved' in answer ? !question?.isClientTool : question?.isClientTool;
  return isFitting && question?.call ? (question as CallQuestion) : undefined;
}

/** The call that waited last: a client that has answered for it stopped behind it. */
function lastOf({ questions }: TurnInfo, questionIds: string[]): CallQuestion['call'] | undefined {
  const calls = questions.flatMap(({ questionId, call }) =>
    call && questionIds.includes(questionId) ? [call] : [],
  );
  return calls.sort((one, other) => one.seq - other.seq).at(-1);
}
