import { SabirError, UPSTREAM_UNREACHABLE } from '../errors.ts';
import type { Logger } from '../translator.ts';
import type { AnyTurnLog, TurnInfo } from '../turns/log.ts';
import { startTimeout } from '../turns/timers.ts';
import { withoutContent } from '../turns/without-content.ts';
import { readApprovals } from './approvals.ts';
import type { Place } from './chat-route.ts';
import type { GatewayTiming } from './options.ts';
import { chatKeyOf, type TurnRunner } from './turn-runner.ts';
import type { Visit } from './visit.ts';

type RestoringOptions = {
  log: AnyTurnLog;
  runner: TurnRunner;
  timing: GatewayTiming;
  logger: Logger | undefined;
};

/** What such a turn's request is called; those of clients have other names. */
const RESTORED = 'waiting ';
/** How long a turn may take to tell again what it has said. */
const TELLING_MS = 5_000;

/**
 * A turn may wait for an answer for longer than its process lives. Where an agent keeps such a turn,
 * whoever comes back to its chat, or answers in it, finds it running again under the same message.
 */
export function createRestoring({ log, runner, timing, logger }: RestoringOptions) {
  /** Undefined where nothing runs in this chat. */
  async function findLive(place: Place): Promise<TurnInfo | undefined> {
    const [running] = runner.liveIn(place);
    const here = running && (await runner.find(running, place));
    const turn = here || (await log.latest(place.logSession, place.chatId));
    return turn?.outcome ? undefined : turn;
  }

  /** The message of what waits. No session is opened where nothing could. */
  async function findWaiting(place: Place): Promise<string | undefined> {
    const { upstream, sessionId, user, chatId } = place;
    const { connectMs } = timing;
    const agent = await within(connectMs, async () =>
      typeof upstream === 'function' ? upstream(sessionId) : upstream,
    );
    if (!agent.canWait) return undefined;
    const signal = AbortSignal.timeout(connectMs);
    const { session, release } = await runner.lease(sessionId, user, signal, upstream);
    try {
      const chat = { chatId, chatKey: chatKeyOf(place), user };
      const found = await within(connectMs, async () => session.waiting?.(chat));
      const messageId: unknown = found?.messageId;
      return typeof messageId === 'string' && messageId !== '' ? messageId : undefined;
    } finally {
      release();
    }
  }

  async function begin(place: Place, { requestId }: Visit): Promise<TurnInfo | undefined> {
    const askedAt = Date.now();
    const messageId = await findWaiting(place);
    if (messageId === undefined) return undefined;
    const nothingNew = { text: '', attachments: [], messages: [], body: {} };
    const { turn } = await runner.begin(
      {
        ...{ kind: 'prompt', chatId: place.chatId, messageId, isRestored: true, ...nothingNew },
        // Whoever else finds it waiting at the same time finds this turn; once that has ended, what
        // waits under the same message is another.
        ...{ requestId: `${RESTORED}${messageId}`, isWish: true },
      },
      { place, channel: undefined, requestId, askedAt },
    );
    // When it began is told by the log's clock, to everybody.
    const kept = (await runner.find(turn.turnId, place)) ?? turn;
    return kept.outcome ? undefined : kept;
  }

  return {
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
    async restoreToAnswer(place: Place, visit: Visit): Promise<TurnInfo | undefined> {
      const live = await findLive(place);
      if (!live) return begin(place, visit);
      const isTelling = Date.now() - live.startedAt < TELLING_MS;
      return isTelling && live.requestId.startsWith(RESTORED) ? live : undefined;
    },
    /** Waits a while until it has told the question again. */
    async untilAsked({ turnId }: TurnInfo, questionId: string): Promise<void> {
      await readApprovals(log, turnId, ({ hasAsked }) => hasAsked(questionId));
    },
  };
}

/** What an agent says, if it does so in time. Its own error may quote what was said in the chat. */
async function within<T>(ms: number, ask: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = startTimeout(ms, () => late.reject(new Error('It took too long.')));
  try {
    return await Promise.race([ask(), late.promise]);
  } catch (error) {
    throw new SabirError(UPSTREAM_UNREACHABLE, undefined, { cause: withoutContent(error) });
  } finally {
    timer.clear();
  }
}
