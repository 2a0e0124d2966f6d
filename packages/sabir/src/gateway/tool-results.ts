import { SabirError, UPSTREAM_UNREACHABLE } from '../core/errors.ts';
import type { Loose } from '../core/loose.ts';
import type { TurnInfo } from '../turns/log.ts';
import type { AskedQuestion } from '../turns/turn-progress.ts';
import type { Continuation } from './answer-reports.ts';
import type { GivingPost, SaidAnswer, ToolResults } from './chat-post.ts';
import type { Place } from './chat-route.ts';
import type { Restoring } from './restore-turn.ts';
import type { Visit } from './visit.ts';

type ToolResultsOptions = {
  restoring: Restoring;
  turnsOf(place: Place): Promise<TurnInfo[]>;
};

/**
 * An AG-UI client gives the output of a tool that it runs as a message. Its messages have the results of all tools: the output of
 * a call that no turn waits for answers nothing.
 */
export function createToolResults({ restoring, turnsOf }: ToolResultsOptions) {
  return {
    /** The outputs that a turn of the chat waits for. */
    async openIn(
      { results, cursor, isBeforePrompt }: GivingPost,
      place: Place,
      visit: Visit,
    ): Promise<SaidAnswer[]> {
      if (results.outputs.size === 0) return [];
      // A new prompt needs no turn that waits in another process; with a cursor, the other answers find it.
      if (!isBeforePrompt && !cursor) {
        const { restored } = await restoring.restoreToAnswer(place, visit);
        const isAsked = (turn: TurnInfo) => callsOf(turn, results).length > 0;
        const repeated = restored && (await restoring.untilTold(restored, place, isAsked));
        if (repeated?.isUnsure) throw new SabirError(UPSTREAM_UNREACHABLE);
      }
      const asked = (await turnsOf(place)).flatMap((turn) => callsOf(turn, results));
      return asked.flatMap(({ questionId, status }) => {
        const output = status === 'open' ? results.outputs.get(questionId) : undefined;
        return output ? [{ questionId, answer: output, output }] : [];
      });
    },
    /** The turn that asked for these outputs, and its last call that the client has: there its run has ended. */
    async askedIn(
      { results }: GivingPost,
      place: Place,
    ): Promise<Pick<Continuation, 'turn' | 'after'> | undefined> {
      const turn = (await turnsOf(place)).find((one) => callsOf(one, results).length > 0);
      if (!turn) return undefined;
      const seqs = turn.questions.map(({ call }) =>
        call && results.callIds.includes(call.toolCallId) ? call.seq : 0,
      );
      return { turn, after: Math.max(...seqs) };
    },
  };
}

/** The calls of a turn that a client runs, and whose outputs are here. */
function callsOf({ questions }: TurnInfo, { outputs }: ToolResults): AskedQuestion[] {
  return questions.filter(
    ({ questionId, isClientTool }) => isClientTool && outputs.has(questionId),
  );
}

/** The results that the client has of the tools that it runs, as the texts that their events have. */
export function knownResultsOf(turn: TurnInfo, results: ToolResults): ReadonlyMap<string, string> {
  const known = new Map<string, string>();
  for (const { questionId } of callsOf(turn, results)) {
    const { output, errorText = output } = results.outputs.get(questionId) as Loose;
    known.set(questionId, typeof errorText === 'string' ? errorText : JSON.stringify(errorText));
  }
  return known;
}
