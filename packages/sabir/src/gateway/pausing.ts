import type { LoggedChunk, TurnInfo } from '../turns/log.ts';
import type { Question } from '../turns/question.ts';
import { createTurnProgress } from '../turns/turn-progress.ts';
import { encodePause, encodeStart } from '../wires/ai-sdk/encode.ts';
import type { Bytes } from '../wires/wire-encoder.ts';

export type PausingOptions = {
  turn: TurnInfo;
  /** The highest number this viewer has seen. */
  after: number;
  /** It has answered these questions, and goes on with the message that its last stream ended in. */
  answered?: ReadonlySet<string> | undefined;
  /** The results that it has given, by their calls: it needs no events for these. */
  knownResults?: ReadonlyMap<string, string> | undefined;
  /** Whether an answer of this viewer would be accepted. */
  mayAnswer(question: Question): boolean;
};

/** Whether the client can answer approvals. Every client can run tools. */
type ClientAbility = { canApprove: boolean };

/** A client that can answer only when its stream has ended. */
export type Pausing = {
  /** What comes before everything else. */
  opening: Bytes | undefined;
  /** What it was asked before its cursor may end its stream: so all of the turn is to be read. */
  needsAll: boolean;
  /** The number behind which its stream ends, if one of these asks for an answer of this viewer. */
  pauseIn(entries: readonly LoggedChunk[]): number | undefined;
  /** What comes last. */
  end(): Bytes;
};

/** The end of a step, and the questions that waited for an answer there. */
type Pause = { seq: number; questionIds: string[] };

/**
 * An AI SDK client sends an approval, or the output of a tool that it ran, only after its stream has ended. So the stream
 * ends with the step that asks for it. A viewer is not asked again what it has answered, and one that may not answer stays.
 */
export function createPausing(
  { turn, after, answered, mayAnswer }: PausingOptions,
  { canApprove }: ClientAbility,
): Pausing {
  const progress = createTurnProgress();
  let pauses: Pause[] = [];

  function isWaiting(questionId: string): boolean {
    const question = progress.questions.get(questionId);
    return question?.call !== undefined && !question.call.isSettled;
  }

  function endStep(seq: number): void {
    const questionIds = [...progress.questions.values()]
      .filter((question) => question.isClientTool || canApprove)
      .filter((question) => question.status === 'open' && mayAnswer(question))
      .map(({ questionId }) => questionId)
      .filter((id) => isWaiting(id) && !answered?.has(id));
    if (questionIds.length > 0) pauses.push({ seq, questionIds });
  }

  return {
    opening: answered && encodeStart(turn, after),
    needsAll: turn.questions.length > 0 || answered !== undefined,
    pauseIn(entries) {
      for (const { seq, chunk } of entries) {
        progress.see(seq, chunk);
        if (chunk.type === 'finish-step') endStep(seq);
        if (chunk.type === 'finish') pauses = [];
      }
      return pauses.find(({ seq, questionIds }) => seq >= after && questionIds.some(isWaiting))
        ?.seq;
    },
    end: () => encodePause(turn),
  };
}
