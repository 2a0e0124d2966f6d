import {
  LOG_UNAVAILABLE,
  NO_HISTORY,
  SabirError,
  SHUTTING_DOWN,
  UPSTREAM_UNREACHABLE,
} from '../core/errors.ts';
import type { Logger } from '../core/translator.ts';
import { within } from '../core/within.ts';
import { withoutContent } from '../core/without-content.ts';
import { type Sessions, sessionKeyOf } from '../sessions/index.ts';
import type { TurnInfo, TurnLog } from '../turns/log.ts';
import type { SessionLease } from '../turns/session-pool.ts';
import type { UpstreamSession } from '../turns/upstream.ts';
import type { Guard } from './access.ts';
import type { Admission } from './admission.ts';
import { type ChatRoute, contractLogOf, type Place, userCaller } from './chat-route.ts';
import { contractChatOf } from './contract-chat.ts';
import type { GatewayTurns } from './gateway-turns.ts';
import type { GatewayTiming, UpstreamOption } from './options.ts';
import type { OwedReplays } from './owed-replays.ts';
import { sendJson, toJsonBytes } from './responses.ts';
import { channelOf, type Visit } from './visit.ts';

type SessionReadsOptions = {
  log: TurnLog;
  turns: GatewayTurns;
  owed: OwedReplays;
  guard: Guard;
  admission: Admission;
  timing: GatewayTiming;
  logger: Logger | undefined;
  upstream: UpstreamOption | undefined;
  sessions: Sessions | undefined;
  isClosing(): boolean;
};

/** A session that the user may read, and where the log keeps the turns that run in it. */
type SessionPlace = Pick<
  Place,
  'sessionId' | 'user' | 'role' | 'caller' | 'upstream' | 'sessions'
> & {
  logs: { logSession: string; chatId?: string }[];
};

/** What can be read of a session beside its turns: its messages and its channels. */
export function createSessionReads(options: SessionReadsOptions) {
  const { log, turns, owed, guard, admission, timing, logger, isClosing } = options;

  /**
   * Something of the upstream's session, asked for on this user's behalf. It may be large: it counts until its client
   * has taken it.
   */
  async function showOfSession(
    { caller, ...place }: SessionPlace,
    visit: Visit,
    use: (session: UpstreamSession) => Promise<unknown>,
  ): Promise<Response> {
    const seat = admission.takeSeat(caller);
    let lease: SessionLease | undefined;
    let isSending = false;
    try {
      const signal = AbortSignal.timeout(timing.connectMs);
      lease = await turns.lease(place, signal);
      if (isClosing()) throw new SabirError(SHUTTING_DOWN);
      const bytes = toJsonBytes(await use(lease.session));
      const release = admission.holdBytes(caller, bytes.length);
      isSending = true;
      return sendJson(bytes, visit.request.signal, () => {
        release();
        seat.leave();
      });
    } catch (error) {
      // The session was closed under it.
      throw isClosing() ? new SabirError(SHUTTING_DOWN) : error;
    } finally {
      lease?.release();
      if (!isSending) seat.leave();
    }
  }

  /** What a session's own address opens. */
  async function enterSession(sessionId: string, { request }: Visit): Promise<SessionPlace> {
    const { user, role } = await guard.permitRequest(request, sessionId, 'viewer');
    const { upstream, sessions } = options;
    const logs = [{ logSession: sessionKeyOf(sessionId) }];
    // The turns of a minted chat are kept by user and chat.
    const chat = contractChatOf(sessionId);
    if (chat) logs.push({ logSession: contractLogOf(chat) });
    return { sessionId, user, role, caller: userCaller(user), upstream, sessions, logs };
  }

  async function enterChat(route: ChatRoute, chatId: string, visit: Visit): Promise<SessionPlace> {
    const place = await route.enter(visit, chatId, 'viewer');
    return { ...place, logs: [{ logSession: place.logSession, chatId: place.logChat }] };
  }

  function messages(place: SessionPlace, visit: Visit): Promise<Response> {
    const { sessionId, user } = place;
    return showOfSession(place, visit, async (session) => {
      if (!session.history) throw new SabirError(NO_HISTORY);
      // Taken before the history is read: what ends meanwhile may be in it only in part.
      const here = turns.unstoredIn(sessionId);
      const unbegun = turns.unbegunIn(place);
      const elsewhere = await unlessAway(() => liveIn(place));
      const asked = session.history(user, channelOf(visit.url));
      const history = await within(timing.connectMs, asked, () => {
        throw new SabirError(UPSTREAM_UNREACHABLE, 'The agent took too long to give its history.');
      });
      const running = new Set(elsewhere?.map(({ messageId }) => messageId));
      for (const { prompt } of here) running.add(prompt.messageId);
      const excluded = new Set([...running, ...here.map(({ messageId }) => messageId)]);
      const shown = history.filter(({ id }) => !excluded.has(id));
      // The log was asked once already: do not wait for it again.
      const isAway = elsewhere === undefined;
      if (isAway) return shown;
      await unlessAway(async () => {
        await owed.settle(
          user.id,
          shown.map(({ id }) => id),
        );
        const queued = elsewhere.filter(({ status }) => status === 'queued');
        const waiting = new Set([...unbegun, ...queued.map(({ messageId }) => messageId)]);
        for (const messageId of new Set([...running, ...waiting])) {
          await owed.owe(user.id, messageId, waiting.has(messageId));
        }
      });
      return shown;
    });
  }

  /** The turns of a session that run in any gateway. */
  async function liveIn({ logs }: SessionPlace): Promise<TurnInfo[]> {
    const live = await Promise.all(
      logs.map(({ logSession, chatId }) => log.live(logSession, chatId)),
    );
    return live.flat();
  }

  /** A history can be read while the store of the turns is away. */
  async function unlessAway<T>(run: () => Promise<T>): Promise<T | undefined> {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof SabirError) || error.code !== LOG_UNAVAILABLE.code) throw error;
      logger?.warn('the turns of other gateways are not known', { error: withoutContent(error) });
      return undefined;
    }
  }

  function channels(place: SessionPlace, visit: Visit): Promise<Response> {
    return showOfSession(place, visit, async (session) => session.channels?.() ?? []);
  }

  return { enterSession, enterChat, messages, channels };
}
