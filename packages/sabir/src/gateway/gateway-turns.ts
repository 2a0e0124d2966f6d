import { SabirError, SHUTTING_DOWN } from '../core/errors.ts';
import type { Steer, TurnInfo } from '../turns/log.ts';
import type { SessionLease } from '../turns/session-pool.ts';
import { waitsFor } from '../turns/turn-progress.ts';
import type { SessionIdentity } from '../turns/upstream.ts';
import type { Admission } from './admission.ts';
import type { Place } from './chat-route.ts';
import type { ChatEvents, ChatWatch } from './chat-watch.ts';
import { createHostedTurns } from './hosted-turns.ts';
import type { QueueWatch } from './queued-viewer.ts';
import { createTurnAccounts } from './turn-accounts.ts';
import type { Asking, Beginning, Begun, TurnHost } from './turn-host.ts';
import { createTurnRunner, type TurnRunnerOptions } from './turn-runner.ts';
import { createUpstreamTurns } from './upstream-turns.ts';

export type GatewayTurnsOptions = TurnRunnerOptions & { admission: Admission };

/** A place among the live turns, or why there is none. */
type Slot = { release?: () => void; refusal?: SabirError };

const RANKS = { answer: 1, queue: 2 } as const;

export type GatewayTurns = ReturnType<typeof createGatewayTurns>;

/** The turns that this gateway begins, finds and stops: on an upstream, or in sessions of this process. */
export function createGatewayTurns(options: GatewayTurnsOptions) {
  const { log, sessions, admission } = options;
  const accounts = createTurnAccounts(options);
  const runner = createTurnRunner(options, accounts);
  const onUpstreams = createUpstreamTurns(options, runner, accounts);
  const inSessions = sessions && createHostedTurns(sessions, options, runner, accounts);
  const { adopt } = onUpstreams;
  const stopAdopting = sessions ? sessions.adoptOthers(adopt) : log.onOrphan(adopt);

  function hostOf(place: Pick<Place, 'sessions'>): TurnHost {
    return (place.sessions && inSessions) || onUpstreams;
  }

  /** Counts the turn to be begun; one that goes on is never refused. */
  function takeSlot({ isRestored }: Beginning, { caller }: Place): Slot {
    if (isRestored) return { release: admission.countTurn(caller) };
    try {
      return { release: admission.takeTurn(caller) };
    } catch (error) {
      if (!(error instanceof SabirError)) throw error;
      return { refusal: error };
    }
  }

  async function beginNow(post: Beginning, asking: Asking): Promise<Begun> {
    if (runner.isClosing) throw new SabirError(SHUTTING_DOWN);
    const { release, refusal } = takeSlot(post, asking.place);
    const onEnd = () => {
      release?.();
      asking.onEnd?.();
    };
    let isNew = false;
    try {
      const begun = await hostOf(asking.place).begin(post, { ...asking, onEnd }, refusal);
      isNew = begun.isNew;
      return begun;
    } finally {
      if (!isNew) release?.();
    }
  }

  return {
    begin(post: Beginning, asking: Asking): Promise<Begun> {
      const begun = beginNow(post, asking);
      // What the log has begun is to be ended.
      runner.awaitAtClose(begun);
      return begun;
    },
    /** For what is read of a session beside its turns. */
    async lease(
      place: SessionIdentity & Pick<Place, 'upstream' | 'sessions'>,
      signal: AbortSignal,
    ): Promise<SessionLease> {
      if (runner.isClosing) throw new SabirError(SHUTTING_DOWN);
      return hostOf(place).lease(place, signal);
    },
    /** A turn of this chat by its id; one that is not in it is not there. */
    async find(turnId: string, place: Place): Promise<TurnInfo | undefined> {
      const isIt = (turn: TurnInfo) => turn.turnId === turnId;
      const found = (await log.get(turnId)) ?? (await hostOf(place).queued(place)).find(isIt);
      const isHere = found?.sessionId === place.logSession && found.chatId === place.logChat;
      return isHere ? found : undefined;
    },
    /**
     * The turns of a conversation that have not ended, whichever gateway they run in: those that say something, then those
     * that wait for an answer, then those that wait behind others. Of a turn that runs here it is known whether its prompt
     * waits, also before it has said anything.
     */
    async live(place: Place): Promise<TurnInfo[]> {
      const { logSession, logChat } = place;
      const turns = (await log.live(logSession, logChat)).map((turn): TurnInfo => {
        const here = runner.turnHere(turn.turnId);
        return here ? { ...turn, status: here.isQueued ? 'queued' : 'running' } : turn;
      });
      const queued = await hostOf(place).queued(place);
      return [...turns, ...queued].sort((one, other) => rankOf(one) - rankOf(other));
    },
    /** Of these turns of a conversation, those that this user has asked for in this chat, and that wait behind others. */
    waitingOf: (live: TurnInfo[], place: Place): TurnInfo[] =>
      live.filter((turn) => turn.status === 'queued' && hostOf(place).isAskedBy(turn, place)),
    unbegunIn: (place: Pick<Place, 'sessionId' | 'sessions'>): string[] =>
      hostOf(place).unbegun(place),
    hasMessage: (messageId: string, place: Place): boolean | undefined =>
      hostOf(place).hasMessage(messageId, place),
    queueOf: (turn: TurnInfo, place: Place): QueueWatch | undefined =>
      hostOf(place).queueOf(turn, place),
    stop: (turn: TurnInfo, place: Place, reason: string): Promise<boolean> =>
      hostOf(place).stop(turn, place, reason),
    steer: (turn: TurnInfo, message: Steer, place: Place): Promise<boolean> =>
      hostOf(place).steer(turn, message, place),
    /**
     * Of the turns of a conversation that have not ended, those that a stop in this chat is for: what was asked for in this
     * chat, where that is known, and of that what has begun. A prompt that waits behind it may be another user's.
     */
    toStop(live: TurnInfo[], place: Place): TurnInfo[] {
      const ofChat = live.filter((turn) => hostOf(place).isOfChat(turn, place));
      const meant = ofChat.length > 0 ? ofChat : live;
      const begun = meant.filter(({ status }) => status !== 'queued');
      return begun.length > 0 ? begun : meant;
    },
    /** The last viewer of a prompt that waits has left. */
    withdrawUnwatched: (turnId: string): boolean => inSessions?.withdrawUnwatched(turnId) ?? false,
    /** Whether people on sockets of a session see its turns. */
    isWatchedElsewhere: (turn: TurnInfo): boolean => inSessions?.isWatched(turn) ?? false,
    /** A user begins to watch. Gives the function to call when they leave. */
    enter: (place: Place): (() => void) => hostOf(place).enter(place),
    watch: (place: Place, on: ChatEvents): ChatWatch => hostOf(place).watch(place, on),
    retireSessions: runner.retireSessions,
    get isClosing() {
      return runner.isClosing;
    },
    turnHere: runner.turnHere,
    traceOf: runner.traceOf,
    unstoredIn: runner.unstoredIn,
    async close(): Promise<void> {
      stopAdopting();
      inSessions?.awaitRecovered();
      await runner.close();
      inSessions?.close();
    },
  };
}

function rankOf(turn: TurnInfo): number {
  const waiting = waitsFor(turn);
  return waiting ? RANKS[waiting] : 0;
}
