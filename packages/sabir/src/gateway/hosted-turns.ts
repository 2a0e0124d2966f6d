import { NOT_FOUND, SabirError, SHUTTING_DOWN } from '../core/errors.ts';
import type { UIMessage } from '../core/message.ts';
import type { TurnOutcome, Usage } from '../core/outcome.ts';
import { startTimeout } from '../core/timers.ts';
import { within } from '../core/within.ts';
import {
  channelKeyOf,
  DEFAULT_CHANNEL,
  historyOf,
  type PromptInfo,
  type Session,
  type Sessions,
  sessionKeyOf,
} from '../sessions/index.ts';
import type { TurnInfo } from '../turns/log.ts';
import type { SessionLease } from '../turns/session-pool.ts';
import type { PromptPost } from './chat-post.ts';
import type { Place } from './chat-route.ts';
import type { GatewayTiming } from './options.ts';
import type { QueueWatch } from './queued-viewer.ts';

/** A turn that a session in this process has been asked for by this gateway. */
export type HostedTurn = {
  readonly place: Place;
  readonly prompt: PromptInfo;
  /** Settles when the turn has ended, with its message; or when it will not end here. */
  readonly ended: Promise<HostedEnd | 'withdrawn' | 'left'>;
};

export type HostedEnd = { outcome: TurnOutcome; message: UIMessage; usage?: Usage };

export type HostedTurns = ReturnType<typeof createHostedTurns>;

type HostedTiming = Pick<GatewayTiming, 'acceptMs' | 'lingerMs'>;

type Asking = {
  place: Place;
  traceparent: string | undefined;
  askedAt: number;
  isRepeat: boolean;
  /** Why no new turn may begin. */
  refusal: SabirError | undefined;
};

/**
 * Turns of sessions in this process. The sessions decide what was asked already, queue, begin and run the turns in the
 * log that the gateway reads; the gateway asks on behalf of its users.
 */
export function createHostedTurns(sessions: Sessions, { acceptMs, lingerMs }: HostedTiming) {
  const { log } = sessions;
  /** The turns that were asked for here and have not ended, by their ids. */
  const open = new Map<string, { session: Session; prompt: PromptInfo; place: Place }>();

  async function withSession<T>(
    { sessionId }: Pick<Place, 'sessionId'>,
    run: (session: Session) => T | Promise<T>,
  ): Promise<T> {
    const { session, release } = sessions.hold(sessionId);
    try {
      return await run(session);
    } finally {
      release();
    }
  }

  /** Whether a prompt that was asked before is to be asked anew: its turn has not answered it, or is forgotten. */
  async function isToBeAskedAnew(
    prompt: PromptInfo,
    { isWish }: PromptPost,
    { askedAt, isRepeat }: Asking,
  ): Promise<boolean> {
    if (prompt.status !== 'ended') return false;
    const isForgotten = (await log.get(prompt.turnId)) === undefined;
    if (isRepeat) return isForgotten;
    const isAnswered = prompt.outcome === 'finished' || prompt.outcome === 'paused';
    return isForgotten || !isAnswered || (isWish && (prompt.endedAt ?? Infinity) <= askedAt);
  }

  async function ask(session: Session, post: PromptPost, asking: Asking) {
    const { place, traceparent, refusal } = asking;
    const { user, role, channel = DEFAULT_CHANNEL } = place;
    const { text, attachments, body } = post;
    const bytes = attachments.reduce((sum, { url }) => sum + url.length, text.length);
    const asked = {
      text,
      attachments,
      body,
      bytes,
      ...channel,
      ...(traceparent && { traceparent }),
    };
    for (let promptId = post.requestId; ; ) {
      const known = session.storage.promptInfo('promptId', promptId);
      if (!known && refusal) throw refusal;
      const found = session.prompt({ ...asked, promptId }, { user, role });
      if (found.isNew || !(await isToBeAskedAnew(found.prompt, post, asking))) return found;
      promptId = `${post.requestId} after ${found.prompt.turnId}`;
    }
  }

  function watchEnd(session: Session, { turnId }: PromptInfo, release: () => void) {
    const { promise, resolve } = Promise.withResolvers<HostedEnd | 'withdrawn' | 'left'>();
    const unsubscribe = session.subscribe((notice) => {
      const isEnd = notice.type === 'ended' || notice.type === 'withdrawn';
      if (notice.type !== 'closed' && !(isEnd && notice.prompt.turnId === turnId)) return;
      unsubscribe();
      open.delete(turnId);
      release();
      if (notice.type === 'ended') resolve(notice);
      else resolve(notice.type === 'closed' ? 'left' : 'withdrawn');
    });
    return promise;
  }

  /** A turn that has not begun, as the log would tell it. */
  function toQueued(prompt: PromptInfo, place: Place): TurnInfo {
    const { turnId, messageId, promptId, askedAt } = prompt;
    return {
      sessionId: place.logSession,
      chatId: place.logChat,
      requestId: promptId,
      messageId,
      turnId,
      status: 'queued',
      questions: [],
      lastSeq: 0,
      startedAt: askedAt,
    };
  }

  function isAt(prompt: PromptInfo, { logChat }: Pick<Place, 'logChat'>): boolean {
    return channelKeyOf(prompt) === logChat;
  }

  return {
    log,
    /** Asks the session. Throws where it refuses. */
    async begin(
      post: PromptPost,
      asking: Asking,
    ): Promise<{ turn: TurnInfo; hosted: HostedTurn | undefined }> {
      const { place } = asking;
      const { session, release } = sessions.hold(place.sessionId);
      let isHeld = false;
      try {
        const { prompt, isNew } = await ask(session, post, asking);
        let hosted: HostedTurn | undefined;
        if (isNew) {
          isHeld = true;
          open.set(prompt.turnId, { session, prompt, place });
          hosted = { place, prompt, ended: watchEnd(session, prompt, release) };
        }
        const isWaiting = () => session.queue.positionOf(prompt) > 0;
        const begun = isWaiting() ? false : await within(acceptMs, session.whenBegun(prompt));
        const turn = begun ? await log.get(prompt.turnId) : undefined;
        return { turn: turn ?? toQueued(prompt, place), hosted };
      } finally {
        if (!isHeld) release();
      }
    },
    /** The prompts of this conversation whose turns have not begun. */
    async queued(place: Place): Promise<TurnInfo[]> {
      return withSession(place, async ({ queue, running }) => {
        const isBeginning = running && (await log.get(running.turnId)) === undefined;
        return [...(isBeginning ? [running] : []), ...queue.list()]
          .filter((prompt) => isAt(prompt, place))
          .map((prompt) => toQueued(prompt, place));
      });
    },
    /** Whether a turn was asked for in this very chat; a conversation may be seen as several chats. */
    isOfChat: ({ turnId }: TurnInfo, { chatId }: Place) =>
      open.get(turnId)?.place.chatId === chatId,
    /** Where a turn waits that has not begun; undefined once it has. */
    queueOf(
      { turnId, requestId: promptId }: TurnInfo,
      { sessionId }: Place,
    ): QueueWatch | undefined {
      const { session, release } = sessions.hold(sessionId);
      const prompt = session.storage.promptInfo('turnId', turnId);
      release();
      if (!prompt || (prompt.status !== 'queued' && session.running?.promptId !== promptId)) {
        return undefined;
      }
      return {
        position() {
          const place = session.queue.positionOf(prompt);
          // While the agent is only being started, no prompt is in front of the first.
          return session.queueReason === 'waking' ? Math.max(0, place - 1) : place;
        },
        subscribe: (listener) => session.subscribe(() => listener()),
        async whenBegun() {
          const hasBegun = await session.whenBegun(prompt);
          if (!hasBegun && session.isClosed) throw new SabirError(SHUTTING_DOWN);
          return hasBegun;
        },
      };
    },
    /** Stops a turn, or withdraws its prompt if it waits; false if it has ended, or is not theirs to stop. */
    async stop({ turnId }: TurnInfo, place: Place, reason: string): Promise<boolean> {
      const { user, role } = place;
      return withSession(place, async (session) => {
        const prompt = session.storage.promptInfo('turnId', turnId);
        try {
          return prompt !== undefined && !!(await session.stop(prompt, { user, role }, reason));
        } catch (error) {
          if (error instanceof SabirError && error.status < 500) return false;
          throw error;
        }
      });
    },
    /** The last viewer of a prompt that waits, and was asked for here, has left. */
    withdrawUnwatched(turnId: string): boolean {
      const { session, prompt, place } = open.get(turnId) ?? {};
      if (!session || !prompt || !place || session.queue.positionOf(prompt) === 0) return false;
      session.withdraw(prompt, { user: place.user, role: place.role });
      return true;
    },
    /** Whether people on sockets of the session see its turns. */
    isWatched: ({ sessionId }: TurnInfo): boolean =>
      sessions
        .all()
        .some((one) => sessionKeyOf(one.sessionId) === sessionId && one.people.sockets > 0),
    /** The user is in the session for as long as they watch. Gives the function to call when they leave. */
    enter({ sessionId, user, role }: Place): () => void {
      const { session, release } = sessions.hold(sessionId);
      const leave = session.people.enter(user, role, 'stream');
      // A page watches one turn after another: in between, its user is still there.
      return () =>
        void startTimeout(lingerMs, () => {
          leave();
          release();
        });
    },
    /** For what is read of a session beside its turns. */
    lease({ sessionId }: Pick<Place, 'sessionId'>): SessionLease {
      const { session, release } = sessions.hold(sessionId);
      if (session.isClosed) throw new SabirError(SHUTTING_DOWN);
      return {
        release,
        session: {
          isClosed: false,
          prompt() {
            throw new SabirError(NOT_FOUND, 'A session in this process is asked by `begin`.');
          },
          history: async (_, channel = DEFAULT_CHANNEL) => historyOf(session, channel),
          channels: () => session.storage.channels(),
          close: () => undefined,
        },
      };
    },
  };
}
