import type { Chunk } from '../core/chunks.ts';
import { isObject } from '../core/loose.ts';
import type { TurnInfo } from './log.ts';
import { hasExpired, type Question, questionOf } from './question.ts';

/** A tool call that waits for a client: to be approved, or to be run there. */
type WaitingCall = {
  toolCallId: string;
  /** The number of the chunk that asked. */
  seq: number;
  /** The number of the chunk that ended the step it was asked in: there a client stops to answer. */
  stepEnd?: number;
  /** The call was approved, denied or run, or asked again. */
  isSettled?: true;
};

/** A question of a turn, as far as its chunks tell. */
export type AskedQuestion = Question & {
  /** Of a question about a tool call. */
  call?: Readonly<WaitingCall>;
  /** The log has accepted an answer that the agent has not confirmed yet. */
  isAnswered?: true;
};

/** A call asked to be approved, and the question that says so in words has not come yet. */
export const REQUESTED = 'requested';

/** A turn that asks more forgets its oldest questions. */
const MAX_QUESTIONS = 1_000;

export type TurnProgress = ReturnType<typeof createTurnProgress>;

/**
 * What a turn's chunks tell of where it stands: whether its prompt waits in a queue, and its questions. The one owner
 * of both: logs keep it beside the chunks, so that a reader of `TurnInfo` replays nothing, and a viewer that has to
 * stop at a question follows it chunk by chunk.
 */
export function createTurnProgress(stored?: string) {
  const questions = new Map<string, AskedQuestion>();
  let messageId: string | undefined;
  let isQueued = false;
  let isChanged = false;

  if (stored) {
    const kept = JSON.parse(stored) as Stored;
    ({ messageId, isQueued } = kept);
    for (const question of kept.questions) questions.set(question.questionId, question);
  }

  function put(question: AskedQuestion): void {
    questions.set(question.questionId, question);
    isChanged = true;
    const [oldest] = questions.keys();
    if (questions.size > MAX_QUESTIONS && oldest !== undefined) questions.delete(oldest);
  }

  function change(question: AskedQuestion, call: Partial<WaitingCall>): void {
    if (question.call) put({ ...question, call: { ...question.call, ...call } });
  }

  function settle(question: AskedQuestion | undefined): void {
    if (question?.call && !question.call.isSettled) change(question, { isSettled: true });
  }

  function settleCall(toolCallId: string): void {
    for (const question of questions.values()) {
      if (question.call?.toolCallId === toolCallId) settle(question);
    }
  }

  function ask(question: Question): void {
    const { call } = questions.get(question.questionId) ?? {};
    put({ ...question, ...(call && { call }) });
    if (question.status !== 'open') settle(questions.get(question.questionId));
  }

  return {
    /** Deltas, which change nothing, need not be shown to it. */
    see(seq: number, chunk: Chunk): void {
      switch (chunk.type) {
        case 'start':
          isChanged ||= messageId !== chunk.messageId;
          messageId = chunk.messageId;
          break;
        case 'tool-approval-request': {
          // A client keeps one request a call.
          settleCall(chunk.toolCallId);
          const questionId = chunk.approvalId;
          const known = questions.get(questionId) ?? { questionId, status: REQUESTED };
          put({ ...known, call: { toolCallId: chunk.toolCallId, seq } });
          break;
        }
        case 'tool-approval-response':
          settle(questions.get(chunk.approvalId));
          break;
        case 'tool-output-available':
        case 'tool-output-error':
        case 'tool-output-denied':
          settleCall(chunk.toolCallId);
          break;
        case 'finish-step':
          for (const question of questions.values()) {
            if (question.call && question.call.stepEnd === undefined) {
              change(question, { stepEnd: seq });
            }
          }
          break;
        case 'finish':
          // An ended turn takes no answers.
          for (const question of questions.values()) settle(question);
          break;
        case 'data-queue': {
          const isNow = isObject(chunk.data) && chunk.data.status === 'waiting';
          isChanged ||= isNow !== isQueued;
          isQueued = isNow;
          break;
        }
        case 'data-question':
        case 'data-client-tool': {
          const question = questionOf(chunk);
          if (!question) break;
          ask(question);
          if (question.isClientTool && question.status === 'open') {
            const toolCallId = question.questionId;
            put({ ...question, call: { toolCallId, seq } });
          }
        }
      }
    },
    /** The id that the source has given its message, once it has. */
    get messageId(): string | undefined {
      return messageId;
    },
    /** The turn has said that its prompt waits behind others, and not that it begins. */
    get isQueued(): boolean {
      return isQueued;
    },
    questions: questions as ReadonlyMap<string, AskedQuestion>,
    /** Whether something has changed since this was last asked. */
    takeChange(): boolean {
      const isNew = isChanged;
      isChanged = false;
      return isNew;
    },
    /** As JSON, for a log to keep. */
    encode(): string {
      const kept: Stored = { isQueued, questions: [...questions.values()] };
      return JSON.stringify(messageId === undefined ? kept : { messageId, ...kept });
    },
  };
}

type Stored = { messageId?: string; isQueued: boolean; questions: AskedQuestion[] };

/** As much of `TurnInfo` as follows from a turn's chunks. */
export type Told = Pick<TurnInfo, 'status' | 'questions' | 'sourceMessageId'>;

export function toldBy(
  { messageId, isQueued, questions }: TurnProgress,
  turn: { lastSeq: number; isEnded: boolean; isAnswered(questionId: string): boolean },
): Told {
  const isWaiting = isQueued || turn.lastSeq === 0;
  return {
    status: turn.isEnded ? 'ended' : isWaiting ? 'queued' : 'running',
    questions: Array.from(questions.values(), (question) =>
      turn.isAnswered(question.questionId) ? { ...question, isAnswered: true } : question,
    ),
    ...(messageId !== undefined && { sourceMessageId: messageId }),
  };
}

/** Whether people can still answer it. */
function isOpen(question: AskedQuestion): boolean {
  const isSettled = question.isAnswered || question.call?.isSettled;
  return question.status === 'open' && !isSettled && !hasExpired(question);
}

/** Why a turn that has not ended says nothing, if that is known. */
export function waitsFor({ status, questions }: TurnInfo): 'queue' | 'answer' | undefined {
  if (status === 'queued') return 'queue';
  return questions.some(isOpen) ? 'answer' : undefined;
}
