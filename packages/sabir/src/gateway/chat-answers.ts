import { SabirError, SHUTTING_DOWN } from '../core/errors.ts';
import type { Answer, TurnInfo, TurnLog } from '../turns/log.ts';
import { questionOf } from '../turns/question.ts';
import { type AnswerVerdict, createAnswering } from './answer-question.ts';
import {
  type Continuation,
  createReportAnswering,
  type Reported,
  type ReportingPost,
} from './answer-reports.ts';
import type { GivingPost } from './chat-post.ts';
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

/** A POST that answers what a turn has asked, or reports on tools. */
export type AnsweringPost = ReportingPost | GivingPost;

/** An answer that was the first, and counts. */
export type Given = { questionId: string; answer: unknown; turnId?: string };

type Answerer = { place: Place; visit: Visit; onGiven(given: Given): void };

/** The turn ended under the answer and left its question open, as one does whose process closes. */
const CUT = Symbol('cut');
type Tried<T> = T | typeof CUT;

/** Answers that come into a chat, whichever way, and whichever of its turns they are for. */
export function createChatAnswers({ log, turns, restoring, turnsOf }: ChatAnswersOptions) {
  const answering = createAnswering(log);
  const reportAnswering = createReportAnswering({ turns, answering, restoring });

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
    post: ReportingPost,
    place: Place,
    { live, restored, isAgain }: Answerable & { isAgain: boolean },
  ): Promise<Tried<Reported | undefined>> {
    const asked = await turnsOf(place);
    const found = await reportAnswering.answerReports(post, place, { turns: asked, restored });
    if (found && !('left' in found)) return found;
    if (!found) return turns.isClosing ? CUT : undefined;
    return isAgain || (await isCut(found.left, place, live)) ? CUT : undefined;
  }

  function answer(command: Answer, place: Place, visit: Visit): Promise<AnswerVerdict | undefined> {
    return attempt(place, visit, (answerable, isAgain) =>
      tryAnswer(command, place, { ...answerable, isAgain }),
    );
  }

  /** An answer that came too late changes nothing: what happened instead is in what follows. */
  async function answerAll(
    { answers, cursor }: GivingPost,
    { place, visit, onGiven }: Answerer,
  ): Promise<Continuation | undefined> {
    for (const { questionId, answer: said } of answers) {
      const verdict = await answer({ type: 'answer', questionId, answer: said }, place, visit);
      // At once: the next answer may be refused, and nothing may follow any of them.
      if (verdict?.status === 202) onGiven({ questionId, answer: said });
    }
    const answered = new Set(answers.map(({ questionId }) => questionId));
    const turn = await turns.find(cursor.turnId, place);
    if (turn && turn.outcome?.status !== 'paused') {
      return { turn, after: cursor.seq <= turn.lastSeq ? cursor.seq : 0, answered };
    }
    // The turn was kept, and goes on as another turn with numbers of its own.
    const restored = (await turnsOf(place)).find(
      ({ turnId, questions }) =>
        turnId !== cursor.turnId &&
        answers.every((said) => questions.some((asked) => asked.questionId === said.questionId)),
    );
    const after = restored && (await askedAt(restored, answered, visit.request.signal));
    return restored && after ? { turn: restored, after, answered } : undefined;
  }

  /** Where a turn has asked the last of these. */
  async function askedAt(
    { turnId }: TurnInfo,
    questionIds: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const missing = new Set(questionIds);
    for await (const batch of log.read(turnId, 0, signal)) {
      for (const { seq, chunk } of batch) {
        const id = questionOf(chunk)?.questionId;
        if (id !== undefined && missing.delete(id) && missing.size === 0) return seq;
      }
    }
    return undefined;
  }

  return {
    /** How an answer fared; undefined where no turn of the chat has asked that. */
    answer,
    /** A client's answers to what a turn has asked it, and what follows them. */
    async goOn(post: AnsweringPost, answerer: Answerer): Promise<Continuation | undefined> {
      if (post.kind === 'answer') return answerAll(post, answerer);
      if (post.reports.length === 0) return undefined;
      const { place, visit, onGiven } = answerer;
      const reported = await attempt(place, visit, (answerable, isAgain) =>
        tryToGoOn(post, place, { ...answerable, isAgain }),
      );
      if (!reported) return undefined;
      const { given, turn } = reported;
      for (const { questionId, answer: said } of given) {
        onGiven({ questionId, answer: said, turnId: turn.turnId });
      }
      return reported;
    },
  };
}
