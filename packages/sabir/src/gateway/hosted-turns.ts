import { NOT_FOUND, SabirError, SHUTTING_DOWN } from '../core/errors.ts';
import type { UIMessage } from '../core/message.ts';
import type { TurnOutcome, Usage } from '../core/outcome.ts';
import { startTimeout } from '../core/timers.ts';
import type { Channel } from '../core/translator.ts';
import { within } from '../core/within.ts';
import { withoutContent } from '../core/without-content.ts';
import {
  channelKeyOf,
  DEFAULT_CHANNEL,
  historyOf,
  isReplacing,
  isSameChannel,
  type PromptInfo,
  promptIdOf,
  type Session,
  type Sessions,
  sessionKeyOf,
  toUIMessage,
  toUserMessage,
  userMessageIdOf,
} from '../sessions/index.ts';
import type { TurnInfo } from '../turns/log.ts';
import type { Place } from './chat-route.ts';
import { watchHostedChat } from './hosted-chat.ts';
import type { TurnTrace } from './trace-turn.ts';
import type { TurnAccounts } from './turn-accounts.ts';
import type { Asking, Beginning, TurnHost } from './turn-host.ts';
import type { TurnRunner, TurnRunnerOptions } from './turn-runner.ts';

type HostedEnd = { outcome: TurnOutcome; message: UIMessage; usage?: Usage };

/** How a turn was asked for. After a restart, only what the session has stored is known. */
type Asked = Pick<Place, 'chatId' | 'user'> & {
  requestId?: string;
  userMessage?: UIMessage | undefined;
};

/** A turn that was asked for here and has not ended. */
type OpenTurn = { session: Session; prompt: PromptInfo; place: Place };

export type HostedTurns = TurnHost & {
  /** The last viewer of a prompt that waits, and was asked for here, has left. */
  withdrawUnwatched(turnId: string): boolean;
  /** Whether people on sockets of the session see its turns. */
  isWatched(turn: TurnInfo): boolean;
  /** `runner.close` waits for the turns of an earlier process too, as it does for those that were asked for here. */
  awaitRecovered(): void;
  close(): void;
};

/**
 * Turns of sessions in this process. The sessions decide what was asked already, queue, begin and run the turns in the
 * log that the gateway reads; the gateway asks on behalf of its users, counts the turns, and reports their ends.
 */
export function createHostedTurns(
  sessions: Sessions,
  options: TurnRunnerOptions,
  runner: TurnRunner,
  accounts: TurnAccounts,
): HostedTurns {
  const { timing, metrics, logger } = options;
  const { log } = sessions;
  /** By turn id. */
  const open = new Map<string, OpenTurn>();
  const stopListening = sessions.onRecoveredEnd((ended, session) => {
    const { prompt } = ended;
    const { chatId, authorId: id, authorName: name } = prompt;
    if (chatId === undefined) return;
    const user = { id, ...(name !== undefined && { name }) };
    runner.awaitAtClose(finish(session, prompt, ended, { chatId, user }));
  });

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

  /**
   * Whether a prompt that was asked before is to be asked anew: its turn has not answered it, or is forgotten, or another
   * prompt has replaced it, as where an edit is taken back by another edit. Another attempt of a client that names its attempts
   * is asked anew also while an earlier one runs.
   */
  async function isToBeAskedAnew(
    { storage }: Session,
    prompt: PromptInfo,
    post: Beginning,
    { askedAt, isRepeat }: Asking,
  ): Promise<boolean> {
    if (prompt.status !== 'ended') {
      const isNamed = post.answerId !== undefined && isReplacing(post);
      return isNamed && prompt.messageId !== post.answerId;
    }
    const isForgotten = (await log.get(prompt.turnId)) === undefined;
    if (isForgotten || prompt.messageId === post.answerId) return isForgotten;
    // A client that sends again without a name for its attempt means the latest one.
    if (isRepeat && post.answerId === undefined) {
      return storage.promptInfo('promptId', promptIdAfter(post, prompt)) !== undefined;
    }
    const isAnswered = prompt.outcome === 'finished' || prompt.outcome === 'paused';
    if (isReplacing(post)) {
      const message = storage.message(userMessageIdOf(prompt));
      if (!message || promptIdOf(message) !== prompt.promptId) return true;
    }
    return !isAnswered || (post.isWish && (prompt.endedAt ?? Infinity) <= askedAt);
  }

  async function ask(
    session: Session,
    post: Beginning,
    asking: Asking & { traceparent: string | undefined; refusal: SabirError | undefined },
  ) {
    const { place, traceparent, refusal } = asking;
    const { user, role, channel = DEFAULT_CHANNEL } = place;
    const { text, attachments, body, trigger, replaces, userMessage } = post;
    const bytes = attachments.reduce((sum, { url }) => sum + url.length, text.length);
    const asked = {
      text,
      attachments,
      body,
      bytes,
      ...channel,
      trigger,
      ...(replaces !== undefined && { replaces }),
      ...(userMessage?.id && { userMessageId: userMessage.id }),
      chatId: place.chatId,
      ...(post.answerId !== undefined && { messageId: post.answerId }),
      ...(traceparent && { traceparent }),
    };
    for (let promptId = post.requestId; ; ) {
      const known = session.storage.promptInfo('promptId', promptId);
      if (!known && refusal) throw refusal;
      if (isReplacing(post)) await session.makeWay({ ...asked, promptId }, { user, role });
      const found = session.prompt({ ...asked, promptId }, { user, role });
      if (found.isNew || !(await isToBeAskedAnew(session, found.prompt, post, asking)))
        return found;
      promptId = promptIdAfter(post, found.prompt);
    }
  }

  /** Settles when the turn has ended, with its message; or when it will not end here. */
  function whenEnded(session: Session, turnId: string): Promise<HostedEnd | 'withdrawn' | 'left'> {
    const { promise, resolve } = Promise.withResolvers<HostedEnd | 'withdrawn' | 'left'>();
    const unsubscribe = session.subscribe((notice) => {
      const isEnd = notice.type === 'ended' || notice.type === 'withdrawn';
      if (notice.type !== 'closed' && !(isEnd && notice.prompt.turnId === turnId)) return;
      unsubscribe();
      open.delete(turnId);
      if (notice.type === 'ended') resolve(notice);
      else resolve(notice.type === 'closed' ? 'left' : 'withdrawn');
    });
    return promise;
  }

  /** Counts the turn, and calls `onFinish` with its message. */
  async function follow(
    { session, prompt, place }: OpenTurn,
    { requestId }: Asking,
    userMessage: UIMessage | undefined,
    trace: TurnTrace | undefined,
    release: () => void,
  ): Promise<void> {
    const { turnId, messageId } = prompt;
    const { sessionId, chatId, user } = place;
    const ids = { requestId, sessionId, chatId, turnId };
    const account = accounts.begin(ids, trace, false);
    const ended = await whenEnded(session, turnId);
    release();
    if (ended === 'left') return account.leave();
    const isWithdrawn = ended === 'withdrawn';
    account.end(isWithdrawn ? { status: 'stopped', reason: ended } : ended.outcome);
    options.onTurnEnd(turnId, messageId, messageId);
    if (!isWithdrawn)
      await finish(session, prompt, ended, { requestId, chatId, user, userMessage });
  }

  /** Calls `onFinish`. */
  async function finish(
    session: Session,
    prompt: PromptInfo,
    { outcome, message, usage }: HostedEnd,
    { requestId, chatId, user, userMessage }: Asked,
  ): Promise<void> {
    const { onFinish } = options;
    if (!onFinish) return;
    const ids = { sessionId: session.sessionId, chatId, turnId: prompt.turnId };
    try {
      const asked = toFinished(session, prompt, userMessage);
      const ended = { outcome, message, ...(usage && { usage }) };
      const hook = (async () => onFinish({ ...ended, ...asked, ...ids, user }))();
      await within(timing.hookMs, hook, () => metrics.hookTimeouts.add({ hook: 'onFinish' }));
    } catch (error) {
      const details = { ...(requestId !== undefined && { requestId }), ...ids };
      logger?.error?.('onFinish failed', { ...details, error: withoutContent(error) });
    }
  }

  /**
   * What was asked, for `onFinish`. It is what the session has for a regenerate, where the client may have sent other words,
   * and after a restart.
   */
  function toFinished({ storage }: Session, prompt: PromptInfo, sent: UIMessage | undefined) {
    const { trigger = 'submit-message', replaces } = prompt;
    const isAgain = trigger === 'regenerate-message';
    const stored = isAgain || !sent ? storage.prompt(prompt.promptId) : undefined;
    const message = stored
      ? toUIMessage(toUserMessage(stored, stored.askedAt))
      : sent && { ...sent, id: userMessageIdOf(prompt) };
    return {
      trigger,
      ...(message && { userMessage: message }),
      ...(replaces !== undefined && { replaces }),
    };
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
    async begin(post, asking, refusal) {
      const { place, requestId, askedAt, headers, onEnd } = asking;
      const { route, sessionId, chatId } = place;
      const traced = { route, sessionId, chatId, requestId, startedAt: askedAt, headers };
      const trace = accounts.trace(traced);
      const { session, release } = sessions.hold(sessionId);
      let isFollowed = false;
      try {
        const given = { ...asking, traceparent: trace?.traceparent, refusal };
        const { prompt, isNew } = await ask(session, post, given);
        if (isNew) {
          isFollowed = true;
          const turn = { session, prompt, place };
          open.set(prompt.turnId, turn);
          const leave = () => {
            release();
            onEnd?.();
          };
          runner.awaitAtClose(follow(turn, asking, post.userMessage, trace, leave));
        }
        const isWaiting = session.queue.positionOf(prompt) > 0;
        const begun = !isWaiting && (await within(timing.acceptMs, session.whenBegun(prompt)));
        const turn = begun ? await log.get(prompt.turnId) : undefined;
        return { turn: turn ?? toQueued(prompt, place), isNew };
      } finally {
        if (!isFollowed) release();
      }
    },
    async queued(place) {
      return withSession(place, async ({ queue, running }) => {
        const isBeginning = running && (await log.get(running.turnId)) === undefined;
        return [...(isBeginning ? [running] : []), ...queue.list()]
          .filter((prompt) => isAt(prompt, place))
          .map((prompt) => toQueued(prompt, place));
      });
    },
    isOfChat: ({ turnId }, { chatId }) => open.get(turnId)?.place.chatId === chatId,
    isAskedBy({ turnId }, { chatId, user }) {
      const { place } = open.get(turnId) ?? {};
      return place?.chatId === chatId && place.user.id === user.id;
    },
    unbegun({ sessionId }) {
      const { session, release } = sessions.hold(sessionId);
      release();
      return session.queue.list().map(({ messageId }) => messageId);
    },
    hasMessage(messageId, { sessionId, channel = DEFAULT_CHANNEL }) {
      const { session, release } = sessions.hold(sessionId);
      release();
      const { storage } = session;
      const message = storage.message(messageId);
      const isHere = (one: Channel | undefined) => one !== undefined && isSameChannel(one, channel);
      const isIt = (prompt: PromptInfo) => userMessageIdOf(prompt) === messageId && isHere(prompt);
      return (
        isHere(message) ||
        storage.wasReplaced(messageId, channel) ||
        storage.openPrompts().some(isIt)
      );
    },
    queueOf({ turnId, requestId: promptId, lastSeq, outcome }, { sessionId }) {
      if (lastSeq > 0 || outcome) return undefined;
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
    async stop({ turnId }, place, reason) {
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
    async steer({ turnId }, message, place) {
      const { user, role } = place;
      return withSession(place, async (session) => {
        const prompt = session.storage.promptInfo('turnId', turnId);
        return prompt?.status === 'running' && session.steer(prompt, message, { user, role });
      });
    },
    withdrawUnwatched(turnId) {
      const { session, prompt, place } = open.get(turnId) ?? {};
      if (!session || !prompt || !place || session.queue.positionOf(prompt) === 0) return false;
      session.withdraw(prompt, { user: place.user, role: place.role });
      return true;
    },
    isWatched: ({ sessionId }) =>
      sessions
        .all()
        .some((one) => sessionKeyOf(one.sessionId) === sessionId && one.people.sockets > 0),
    enter({ sessionId, user, role }) {
      const { session, release } = sessions.hold(sessionId);
      const leave = session.people.enter(user, role, 'stream');
      // A page watches one turn after another: in between, its user is still there.
      return () =>
        void startTimeout(timing.lingerMs, () => {
          leave();
          release();
        });
    },
    awaitRecovered() {
      if (!options.onFinish) return;
      for (const { session, prompt } of sessions.recovered()) {
        if (prompt.chatId !== undefined) runner.awaitAtClose(whenEnded(session, prompt.turnId));
      }
    },
    close: stopListening,
    watch: (place, on) => watchHostedChat(sessions, place, on),
    async lease({ sessionId }) {
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

/** The prompt that asks anew what an earlier prompt asked. */
function promptIdAfter({ requestId }: Beginning, { turnId }: PromptInfo): string {
  return `${requestId} after ${turnId}`;
}
