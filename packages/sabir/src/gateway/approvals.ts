import { isObject } from '../core/chunk-shapes.ts';
import type { LoggedChunk, TurnLog } from '../turns/log.ts';
import { type Question, questionOf } from '../turns/question.ts';

/** A request for an approval, and the end of the step it was made in. */
type ApprovalRequest = { toolCallId: string; seq: number; stepEnd?: number };
/** The end of a step, and what has waited for an answer since. */
type Pause = { seq: number; waiting: Set<string> };

export type Approvals = ReturnType<typeof trackApprovals>;
export type IsEnough = (approvals: Approvals) => boolean;

/** How long a log may take to give what it has. */
const READ_MS = 5_000;

/**
 * The approvals of one turn: an AI SDK client answers one only after its stream has ended, so at the
 * end of a step with such a question open it is let go. What it has `answered` it is not asked again,
 * and who may not answer stays.
 */
export function trackApprovals({
  answered = new Set(),
  mayAnswer = () => true,
}: {
  answered?: ReadonlySet<string> | undefined;
  mayAnswer?: (question: Question) => boolean;
} = {}) {
  const questions = new Map<string, Question>();
  const requests = new Map<string, ApprovalRequest>();
  /** Those that have no answer, by their calls: a client keeps one a call. */
  const waiting = new Map<string, string>();
  const pauses: Pause[] = [];
  let messageId: string | undefined;
  let isQueued = false;

  function settle(approvalId: string): void {
    const { toolCallId = '' } = requests.get(approvalId) ?? {};
    if (waiting.get(toolCallId) === approvalId) waiting.delete(toolCallId);
    for (const pause of pauses) pause.waiting.delete(approvalId);
  }

  function settleCall(toolCallId: string): void {
    const approvalId = waiting.get(toolCallId);
    if (approvalId !== undefined) settle(approvalId);
  }

  function endStep(seq: number): void {
    for (const request of requests.values()) request.stepEnd ??= seq;
    const open = [...waiting.values()].filter((id) => {
      const question = questions.get(id);
      return question?.status === 'open' && !answered.has(id) && mayAnswer(question);
    });
    if (open.length > 0) pauses.push({ seq, waiting: new Set(open) });
  }

  function see({ seq, chunk }: LoggedChunk): void {
    switch (chunk.type) {
      case 'start':
        messageId = chunk.messageId;
        break;
      case 'tool-approval-request':
        settleCall(chunk.toolCallId);
        requests.set(chunk.approvalId, { toolCallId: chunk.toolCallId, seq });
        waiting.set(chunk.toolCallId, chunk.approvalId);
        break;
      case 'tool-approval-response':
        settle(chunk.approvalId);
        break;
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
        settleCall(chunk.toolCallId);
        break;
      case 'finish-step':
        endStep(seq);
        break;
      case 'finish':
        // What it left open nobody waits for any more.
        waiting.clear();
        pauses.length = 0;
        break;
      case 'data-queue':
        isQueued = isObject(chunk.data) && chunk.data.status === 'waiting';
        break;
      case 'data-question': {
        const question = questionOf(chunk);
        if (!question) break;
        questions.set(question.questionId, question);
        if (question.status !== 'open') settle(question.questionId);
      }
    }
  }

  return {
    see(batch: readonly LoggedChunk[]): void {
      for (const entry of batch) see(entry);
    },
    get messageId() {
      return messageId;
    },
    /** Whether the turn waits for an answer at the end of a step. */
    get isWaiting() {
      return pauses.some((pause) => pause.waiting.size > 0);
    },
    /** Whether the turn has said that it waits behind others, and not that it begins. */
    get isQueued() {
      return isQueued;
    },
    hasAsked: (questionId: string) => questions.has(questionId),
    /** The question behind a request, however it ended; what was not asked both ways is not there. */
    questionBehind: (approvalId: string) =>
      requests.has(approvalId) ? questions.get(approvalId) : undefined,
    /** Where a client that has seen that much is let go to answer, if it is. */
    pauseFrom: (after: number) =>
      pauses.find((pause) => pause.seq >= after && pause.waiting.size > 0)?.seq,
    /** Whether each was asked for, in a step that has ended. */
    hasTold: (approvalIds: readonly string[]) =>
      approvalIds.every((id) => requests.get(id)?.stepEnd !== undefined),
    /** The last of these that was asked for: a client that has answered it was let go behind it. */
    lastOf(approvalIds: readonly string[]): Readonly<ApprovalRequest> | undefined {
      let last: ApprovalRequest | undefined;
      for (const id of approvalIds) {
        const request = requests.get(id);
        if (request && request.seq > (last?.seq ?? 0)) last = request;
      }
      return last;
    },
  };
}

/**
 * What the log has of a turn's approvals now; of one that has just begun, as soon as it is enough, or
 * when that takes too long.
 */
export async function readApprovals(
  log: TurnLog,
  turnId: string,
  { isEnough = () => true, ms = READ_MS }: { isEnough?: IsEnough; ms?: number } = {},
): Promise<Approvals> {
  const approvals = trackApprovals();
  for await (const batch of log.read(turnId, 0, AbortSignal.timeout(ms))) {
    approvals.see(batch);
    if (isEnough(approvals)) break;
  }
  return approvals;
}
