import { SabirError, SHUTTING_DOWN } from '../core/errors.ts';
import type { TurnInfo, TurnLog } from '../turns/log.ts';
import { questionOf } from '../turns/question.ts';
import { type AnswerVerdict, createAnswering } from './answer-question.ts';
import {
  type Continuation,
  createReportAnswering,
  type Reported,
  type ReportingPost,
} from './answer-reports.ts';
import type { GivingPost, SaidAnswer } from './chat-post.ts';
import type { Place } from './chat-route.ts';
import type { GatewayTurns } from './gateway-turns.ts';
import type { Answerable, Restoring } from './restore-turn.ts';
import { createToolResults, knownResultsOf } from './tool-results.ts';
import type { Cursor, Visit } from './visit.ts';

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

/** How an answer fared, and in which form it was given. */
type Fared = AnswerVerdict & { given: unknown };

/** The turn ended under the answer and left its question open, as one does whose process closes. */
const CUT = Symbol('cut');
type Tried<T> = T | typeof CUT;

/** Answers that come into a chat, whichever way, and whichever of its turns they are for. */
export function createChatAnswers({ log, turns, restoring, turnsOf }: ChatAnswersOptions) {
  const answering = createAnswering(log);
  const reportAnswering = createReportAnswering({ turns, answering, restoring });
  const results = createToolResults({ restoring, turnsOf });

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
    said: SaidAnswer,
    place: Place,
    { live, restored, isAgain }: Answerable & { isAgain: boolean },
  ): Promise<Tried<Fared | undefined>> {
    const { questionId } = said;
    const others = (await turnsOf(place)).filter(({ turnId }) => turnId !== restored?.turnId);
    // One that is still being told again is waited for, the others are not.
    for (const turn of restored ? [...others, restored] : others) {
      let asked = turn;
      if (turn === restored) {
        await restoring.untilAsked(turn, place, questionId);
        asked = (await turns.find(turn.turnId, place)) ?? turn;
      }
      const command = { type: 'answer', questionId, answer: answerIn(asked, said) } as const;
      const verdict = await answering.answer(asked, command, place);
      if (!verdict) continue;
      const isLeft = verdict.status === 410 && verdict.isLeft;
      if (isLeft && (isAgain || (await isCut(turn, place, live)))) return CUT;
      return { ...verdict, given: command.answer };
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

  function answer(said: SaidAnswer, place: Place, visit: Visit): Promise<Fared | undefined> {
    return attempt(place, visit, (answerable, isAgain) =>
      tryAnswer(said, place, { ...answerable, isAgain }),
    );
  }

  /** An answer that came too late changes nothing: what happened instead is in what follows. */
  async function answerAll(
    post: GivingPost,
    { place, visit, onGiven }: Answerer,
  ): Promise<Continuation | undefined> {
    const outputs = await results.openIn(post, place, visit);
    for (const said of [...post.answers, ...outputs]) {
      const { questionId } = said;
      const verdict = await answer(said, place, visit);
      // At once: the next answer may be refused, and nothing may follow any of them.
      if (verdict?.status === 202) onGiven({ questionId, answer: verdict.given });
    }
    const answered = new Set(post.answers.map(({ questionId }) => questionId));
    const from = post.cursor
      ? await continuedFrom(post.cursor, answered, { place, visit })
      : await results.askedIn(post, place);
    if (!from) return undefined;
    for (const callId of post.results.outputs.keys()) answered.add(callId);
    return { ...from, answered, knownResults: knownResultsOf(from.turn, post.results) };
  }

  async function continuedFrom(
    cursor: Cursor,
    answered: ReadonlySet<string>,
    { place, visit }: Pick<Answerer, 'place' | 'visit'>,
  ): Promise<Pick<Continuation, 'turn' | 'after'> | undefined> {
    const turn = await turns.find(cursor.turnId, place);
    if (turn && turn.outcome?.status !== 'paused') {
      return { turn, after: cursor.seq <= turn.lastSeq ? cursor.seq : 0 };
    }
    // The turn was kept, and goes on as another turn with numbers of its own.
    const restored = (await turnsOf(place)).find(
      ({ turnId, questions }) =>
        turnId !== cursor.turnId &&
        [...answered].every((id) => questions.some(({ questionId }) => questionId === id)),
    );
    const after = restored && (await askedAt(restored, answered, visit.request.signal));
    return restored && after ? { turn: restored, after } : undefined;
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

/** A question that is a call which clients run takes an output. */
function answerIn({ questions }: TurnInfo, { questionId, answer, output }: SaidAnswer): unknown {
  const question = questions.find((asked) => asked.questionId === questionId);
  return question?.isClientTool && output !== undefined ? output : answer;
}
