import { SabirError, UPSTREAM_UNREACHABLE } from '../core/errors.ts';
import type { Logger } from '../core/translator.ts';
import { within } from '../core/within.ts';
import { withoutContent } from '../core/without-content.ts';
import type { TurnInfo, TurnLog } from '../turns/log.ts';
import { REQUESTED } from '../turns/turn-progress.ts';
import type { User, WaitingTurn } from '../turns/upstream.ts';
import { chatKeyOf, type Place } from './chat-route.ts';
import type { GatewayTurns } from './gateway-turns.ts';
import type { GatewayTiming } from './options.ts';
import type { Visit } from './visit.ts';

type RestoringOptions = {
  log: TurnLog;
  turns: GatewayTurns;
  timing: GatewayTiming;
  logger: Logger | undefined;
};

/** What such a turn's request is called; those of clients have other names. */
const RESTORED = 'waiting ';

/** For whoever answers: what runs in the chat, and of it what may not have told all of it yet. */
export type Answerable = { live: TurnInfo[]; restored: TurnInfo | undefined };

export type Restoring = ReturnType<typeof createRestoring>;

/**
 * A turn may wait for an answer for longer than its process lives. Where an agent keeps such a turn,
 * whoever comes back to its chat, or answers in it, finds it running again under the same message.
 */
export function createRestoring(options: RestoringOptions) {
  const { log, turns, timing, logger } = options;

  /** No session is opened where nothing could wait. */
  async function findWaiting(place: Place): Promise<Waiting | undefined> {
    const { upstream, sessionId, user, role, chatId } = place;
    const { connectMs } = timing;
    // A session in this process continues its turns by itself.
    if (!upstream) return undefined;
    const agent = await askAgent(connectMs, async () =>
      typeof upstream === 'function' ? upstream(sessionId) : upstream,
    );
    if (!agent.canWait) return undefined;
    const signal = AbortSignal.timeout(connectMs);
    const { session, release } = await turns.lease({ sessionId, user, role, upstream }, signal);
    try {
      const chat = { chatId, chatKey: chatKeyOf(place), user };
      const found = await askAgent(connectMs, async () => session.waiting?.(chat));
      return waitingOf(found, place);
    } finally {
      release();
    }
  }

  async function begin(
    place: Place,
    { requestId, request: { headers } }: Visit,
  ): Promise<TurnInfo | undefined> {
    const askedAt = Date.now();
    const waiting = await findWaiting(place);
    if (!waiting) return undefined;
    const { messageId, user } = waiting;
    // It was asked for a while: somebody may have been faster, here or elsewhere.
    const [live] = await turns.live(place);
    if (live) return live;
    const nothingNew = { text: '', attachments: [], messages: [], body: {} };
    const { turn } = await turns.begin(
      {
        kind: 'prompt',
        chatId: place.chatId,
        messageId,
        isRestored: true,
        trigger: 'submit-message',
        ...nothingNew,
        // Whoever else finds it waiting at the same time finds this turn; once that has ended, what
        // waits under the same message is another.
        requestId: `${RESTORED}${messageId}`,
        isWish: true,
      },
      { place: { ...place, user }, channel: undefined, requestId, askedAt, headers },
    );
    // When it began is told by the log's clock, to everybody.
    const kept = (await turns.find(turn.turnId, place)) ?? turn;
    return kept.outcome ? undefined : kept;
  }

  /** One that was begun to go on, and may be at telling again what it has said. */
  function isTelling({ requestId, startedAt }: TurnInfo): boolean {
    return requestId.startsWith(RESTORED) && Date.now() - startedAt < timing.connectMs;
  }

  /**
   * Waits until a restored turn has repeated enough. `isUnsure`: it took too long, or the turn has failed before it
   * repeated everything.
   */
  async function untilTold(
    turn: TurnInfo,
    place: Place,
    isEnough: (told: TurnInfo) => boolean,
  ): Promise<{ told: TurnInfo; isUnsure: boolean }> {
    const { turnId, lastSeq } = turn;
    const signal = AbortSignal.timeout(timing.connectMs);
    let told = turn;
    const batches = isEnough(told) ? [] : log.read(turnId, lastSeq, signal);
    for await (const _ of batches) {
      told = (await turns.find(turnId, place)) ?? told;
      if (isEnough(told)) break;
    }
    if (isEnough(told)) return { told, isUnsure: false };
    told = (await turns.find(turnId, place)) ?? told;
    const status = told.outcome?.status;
    return { told, isUnsure: status !== 'finished' && status !== 'stopped' };
  }

  return {
    untilTold,
    /**
     * The turn that goes on in a chat where nothing runs, if one waited. For whoever only looks: a
     * chat can be read while its agent is away.
     */
    async restore(place: Place, visit: Visit): Promise<TurnInfo | undefined> {
      try {
        return await begin(place, visit);
      } catch (error) {
        const { requestId } = visit;
        const { sessionId, chatId } = place;
        const ids = { requestId, sessionId, chatId };
        logger?.warn('what waits could not be found', { ...ids, error: withoutContent(error) });
        return undefined;
      }
    },
    /** The same for whoever answers, or one that runs and may not have told all of it again yet. */
    async restoreToAnswer(place: Place, visit: Visit): Promise<Answerable> {
      const live = await turns.live(place);
      if (live.length > 0) return { live, restored: live.find(isTelling) };
      const begun = await begin(place, visit);
      const isRestored = begun?.requestId.startsWith(RESTORED);
      return { live: begun ? [begun] : [], restored: isRestored ? begun : undefined };
    },
    /** Waits a while until it has told the question again. */
    async untilAsked(turn: TurnInfo, place: Place, questionId: string): Promise<void> {
      const { isUnsure } = await untilTold(turn, place, ({ questions }) =>
        questions.some((asked) => asked.questionId === questionId && asked.status !== REQUESTED),
      );
      if (isUnsure) throw new SabirError(UPSTREAM_UNREACHABLE);
    },
  };
}

/** What waits, and who it runs as. */
type Waiting = { messageId: string; user: User };

/** Nothing runs in the name of somebody who may only watch, nor of somebody who is not understood. */
function waitingOf(found: WaitingTurn | undefined, { user, role }: Place): Waiting | undefined {
  const { messageId, userId }: { messageId?: unknown; userId?: unknown } = found ?? {};
  if (typeof messageId !== 'string' || messageId === '') return undefined;
  if (userId === user.id) return { messageId, user };
  if (userId === undefined || userId === null) {
    return role === 'viewer' ? undefined : { messageId, user };
  }
  return typeof userId === 'string' && userId !== ''
    ? { messageId, user: { id: userId } }
    : undefined;
}

/** What an agent says, if it does so in time. Its own error may quote what was said in the chat. */
async function askAgent<T>(ms: number, ask: () => Promise<T>): Promise<T> {
  try {
    return await within(ms, ask(), () => {
      throw new Error('It took too long.');
    });
  } catch (error) {
    throw new SabirError(UPSTREAM_UNREACHABLE, undefined, { cause: withoutContent(error) });
  }
}
