import { SabirError, SHUTTING_DOWN } from '../core/errors.ts';
import type { Answer, TurnInfo, TurnLog } from '../turns/log.ts';
import {
  type AnsweringPost,
  type Continuation,
  createApprovalAnswering,
} from './answer-approvals.ts';
import { type AnswerVerdict, createAnswering } from './answer-question.ts';
import type { Place } from './chat-route.ts';
import type { GatewayTurns } from './gateway-turns.ts';
import type { Answerable, Restoring } from './restore-turn.ts';
import type { Visit } from './visit.ts';

type ChatAnswersOptions = {
  log: TurnLog;
  turns: GatewayTurns;
  restoring: Restoring;
  /** The turns of a chat that may have asked. */
  turnsOf(place: Place): Promise<TurnInfo[]>;
};

/** The turn ended under the answer and left its question open, as one does whose process closes. */
const CUT = Symbol('cut');
type Tried<T> = T | typeof CUT;

/** Answers that come into a chat, whichever way, and whichever of its turns they are for. */
export function createChatAnswers({ log, turns, restoring, turnsOf }: ChatAnswersOptions) {
  const answering = createAnswering(log);
  const approvalAnswering = createApprovalAnswering({ turns, answering, restoring });

  /** It is not too late for what was cut: it goes on here, or wherever the client is sent next. */
  async function attempt<T>(
    place: Place,
    visit: Visit,
    run: (answerable: Answerable, isAgain: boolean) => Promise<Tried<T>>,
  ): Promise<T> {
    for (const isAgain of [false, true]) {
      const found = await run(await restoring.restoreToAnswer(place, visit), isAgain);
      if (found !== CUT) return found;
    }
    throw new SabirError(SHUTTING_DOWN);
  }

  /** Whether a turn that has left its question open did so only now. */
  async function isCut({ turnId }: TurnInfo, place: Place, live: TurnInfo[]): Promise<boolean> {
    if (turns.isClosing) return true;
    if (!live.some((turn) => turn.turnId === turnId)) return false;
    return (await turns.find(turnId, place))?.outcome?.status === 'paused';
  }

  async function tryAnswer(
    command: Answer,
    place: Place,
    { live, restored, isAgain }: Answerable & { isAgain: boolean },
  ): Promise<Tried<AnswerVerdict | undefined>> {
    const others = (await turnsOf(place)).filter(({ turnId }) => turnId !== restored?.turnId);
    // One that is still being told again is waited for, the others are not.
    for (const turn of restored ? [...others, restored] : others) {
      let asked = turn;
      if (turn === restored) {
        await restoring.untilAsked(turn, place, command.questionId);
        asked = (await turns.find(turn.turnId, place)) ?? turn;
      }
      const verdict = await answering.answer(asked, command, place);
      if (!verdict) continue;
      const isLeft = verdict.status === 410 && verdict.isLeft;
      return isLeft && (isAgain || (await isCut(turn, place, live))) ? CUT : verdict;
    }
    // A log that is being closed knows of nothing.
    return turns.isClosing ? CUT : undefined;
  }

  async function tryToGoOn(
    post: AnsweringPost,
    place: Place,
    { live, restored, isAgain }: Answerable & { isAgain: boolean },
  ): Promise<Tried<Continuation | undefined>> {
    const asked = await turnsOf(place);
    const found = await approvalAnswering.answerApprovals(post, place, { turns: asked, restored });
    if (found && !('left' in found)) return found;
    if (!found) return turns.isClosing ? CUT : undefined;
    return isAgain || (await isCut(found.left, place, live)) ? CUT : undefined;
  }

  return {
    /** How an answer fared; undefined where no turn of the chat has asked that. */
    answer: (command: Answer, place: Place, visit: Visit): Promise<AnswerVerdict | undefined> =>
      attempt(place, visit, (answerable, isAgain) =>
        tryAnswer(command, place, { ...answerable, isAgain }),
      ),
    /** A client's answers to what a turn has asked it, and what follows them. */
    async goOn(post: AnsweringPost, place: Place, visit: Visit): Promise<Continuation | undefined> {
      if (post.approvals.length === 0) return undefined;
      return attempt(place, visit, (answerable, isAgain) =>
        tryToGoOn(post, place, { ...answerable, isAgain }),
      );
    },
  };
}
