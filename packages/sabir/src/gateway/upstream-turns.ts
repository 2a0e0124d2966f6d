import { type ErrorKind, SabirError, SHUTTING_DOWN } from '../core/errors.ts';
import { createId } from '../core/id.ts';
import { withoutContent } from '../core/without-content.ts';
import { isReplacing, toConnectedUser } from '../sessions/index.ts';
import { closingsOf } from '../turns/closings.ts';
import type { BeginTurn, OrphanedTurn, TurnInfo, TurnWriter } from '../turns/log.ts';
import type { User } from '../turns/upstream.ts';
import type { Admission } from './admission.ts';
import { contentOf, isAskedBy } from './chat-post.ts';
import { chatKeyOf, type Place, userCaller } from './chat-route.ts';
import type { RouteName, UpstreamOption } from './options.ts';
import { createReplacedTurns, isSameRequest } from './replaced-turns.ts';
import type { TurnAccounts } from './turn-accounts.ts';
import type { Asking, Beginning, Begun, TurnHost } from './turn-host.ts';
import { readOrigin, toOrigin } from './turn-origin.ts';
import type { TurnRunner, TurnRunnerOptions } from './turn-runner.ts';

type UpstreamTurnsOptions = TurnRunnerOptions & { admission: Admission };

/** A client that sends a request again does so soon: few turns have begun since. */
const MOST_ENDED = 20;
const NONE: ReadonlySet<string> = new Set();

/** The turns that this gateway begins in its log and runs on an upstream. */
export function createUpstreamTurns(
  options: UpstreamTurnsOptions,
  runner: TurnRunner,
  accounts: TurnAccounts,
): TurnHost & { adopt(orphan: OrphanedTurn): Promise<boolean> } {
  const { log, metrics, admission, logger } = options;
  const { keepUser = ({ id }: User) => ({ id }) } = options;
  const replaced = createReplacedTurns(log, runner);

  /** Ends a turn that will never run, so that its viewers get an error instead of waiting. */
  async function callOff(
    writer: TurnWriter,
    { messageId }: BeginTurn,
    { code, userMessage: message }: ErrorKind | SabirError,
  ): Promise<void> {
    const outcome = { status: 'failed', code, message } as const;
    try {
      await writer.append(closingsOf([], messageId, outcome));
      await writer.close(outcome);
    } catch (error) {
      // Its lease runs out, if the log is not gone as well.
      const { turnId } = writer;
      logger?.error?.('the turn could not be closed', { turnId, error: withoutContent(error) });
    }
  }

  /** Whether this may be a message that was sent before, and begins nothing. */
  async function isKnown(post: Beginning, place: Place): Promise<boolean> {
    const { logSession, logChat } = place;
    const live = await log.live(logSession, logChat);
    const latest = await log.latest(logSession, logChat);
    const isIt = (turn: TurnInfo) =>
      isReplacing(post) ? isSameRequest(turn, post) : turn.requestId.startsWith(post.requestId);
    return live.some(isIt) || (latest !== undefined && isIt(latest));
  }

  /**
   * Ends what a regenerate or an edit replaces, and gives the ids of the turns that ran. Where the log is full and refuses the
   * new turn, what runs goes on.
   */
  async function makeWay(post: Beginning, place: Place): Promise<ReadonlySet<string>> {
    const { max = Infinity, use } = log.limits.liveBytes ?? {};
    const isFull = use !== undefined && use() > max;
    if (!isReplacing(post) || isOfServer(place) || isFull) return NONE;
    return replaced.stop(post, place);
  }

  /** The turn of a regenerate or an edit that is sent again, if it has arrived before. */
  async function findOwn(post: Beginning, { logSession, logChat }: Place) {
    const live = await log.live(logSession, logChat);
    const ended = await log.ended(logSession, logChat, MOST_ENDED);
    return [...ended, ...live].findLast((turn) => isSameRequest(turn, post));
  }

  /** Whether a turn that the same request began once is not meant this time: another one is asked for. */
  async function isEarlier(
    { turnId, messageId, outcome, endedAt = Infinity }: TurnInfo,
    post: Beginning,
    { askedAt, isRepeat, place }: Asking,
  ): Promise<boolean> {
    const { isWish, replaces } = post;
    if (messageId === post.answerId) return false;
    const isNamed = post.answerId !== undefined;
    // A client that asked before that turn had ended asked for it, unless it names another attempt.
    if (!outcome || (!isRepeat && endedAt > askedAt)) return isNamed && isReplacing(post);
    if (isWish && (!isRepeat || isNamed)) return true;
    const isAnswered = outcome.status === 'finished' || outcome.status === 'paused';
    if (isRepeat && isNamed && !isAnswered) return true;
    const latest = await log.latest(place.logSession, place.logChat);
    if (!latest || latest.turnId === turnId) return false;
    // A client that sends again without a name for its attempt means the latest one.
    if (isRepeat && !isNamed) return latest.requestId.startsWith(`${post.requestId} after`);
    // An edit back to earlier words: the same user has replaced that turn meanwhile.
    return replaces !== undefined && isAskedBy(latest.requestId, place.user.id);
  }

  /** Begins the turn in the log, or finds the one that was begun for the same message. */
  async function beginInLog(
    info: BeginTurn,
    post: Beginning,
    asking: Asking,
    waitedFor: ReadonlySet<string>,
  ): ReturnType<typeof log.begin> {
    const tryToBegin = () =>
      log.begin(info).catch((error) => {
        admission.countLogRefusal(error);
        throw error;
      });
    let begun = await tryToBegin();
    while ('existing' in begun && (await isEarlier(begun.existing, post, asking))) {
      // One that began while this request waited for others to end.
      const { outcome, turnId } = begun.existing;
      if (!outcome && !waitedFor.has(turnId)) await makeWay(post, asking.place);
      info.requestId = `${post.requestId} after ${turnId}`;
      begun = await tryToBegin();
    }
    return begun;
  }

  async function begin(
    post: Beginning,
    asking: Asking,
    refusal: SabirError | undefined,
  ): Promise<Begun> {
    const { place, channel, requestId, askedAt, headers, isRepeat, onEnd } = asking;
    const own = isReplacing(post) && isRepeat ? await findOwn(post, place) : undefined;
    if (own) return { turn: own, isNew: false };
    if (refusal && !(await isKnown(post, place))) throw refusal;
    const waitedFor = refusal ? NONE : await makeWay(post, place);
    const { text, attachments, messages, body, isRestored, answerId = createId() } = post;
    const { messageId = answerId } = post;
    const { trigger, replaces, userMessage } = post;
    const { route, user, role, sessionId, chatId, upstream } = place;
    const asked = {
      sessionId,
      chatId,
      chatKey: chatKeyOf(place),
      user,
      text,
      attachments,
      messages,
      body,
      trigger,
      ...(replaces !== undefined && { replaces }),
      ...(userMessage && { userMessage }),
      ...(channel && { channel }),
      ...(isRestored && { isRestored }),
    };
    // What the log keeps for a takeover names this span.
    const traced = { route, sessionId, chatId, requestId, startedAt: askedAt, headers };
    const trace = accounts.trace(traced);
    const { traceparent } = trace ?? {};
    const origin =
      log.outlivesProcess &&
      toOrigin(route, { ...asked, ...(traceparent && { traceparent }) }, { role, keepUser });
    const info: BeginTurn = {
      sessionId: place.logSession,
      chatId,
      requestId: post.requestId,
      messageId,
      userId: user.id,
      ...(isRepeat && { isRepeat }),
      ...(origin && { origin }),
    };
    const begun = await beginInLog(info, post, asking, waitedFor);
    if (runner.isClosing) {
      if ('writer' in begun) await callOff(begun.writer, info, SHUTTING_DOWN);
      throw new SabirError(SHUTTING_DOWN);
    }
    if ('existing' in begun) return { turn: begun.existing, isNew: false };
    const { writer } = begun;
    if (refusal) {
      await callOff(writer, info, refusal);
      throw refusal;
    }
    const { accepted } = runner.run({
      writer,
      prompt: { ...asked, messageId },
      role,
      upstream: upstream as UpstreamOption,
      requestId,
      isKept: origin && origin.asked !== undefined,
      trace,
      release: () => onEnd?.(),
    });
    const { origin: _, isRepeat: __, ...known } = info;
    const turn: TurnInfo = {
      ...known,
      turnId: writer.turnId,
      startedAt: Date.now(),
      lastSeq: 0,
      status: 'queued',
      questions: [],
    };
    return { turn, isNew: true, accepted };
  }

  function ownRoute(route: RouteName) {
    return (route !== 'sessions' && options.routes?.[route]) || undefined;
  }

  return {
    begin,
    lease: runner.lease,
    // The log has a turn from the moment its prompt is taken.
    queued: async () => [],
    queueOf(turn, place) {
      if (!isOfServer(place)) return undefined;
      // Whether it waits is known only when its upstream has been reached.
      const { queue } = runner.turnHere(turn.turnId) ?? {};
      return turn.lastSeq === 0 && !queue?.hasBegun ? queue : undefined;
    },
    stop: ({ turnId }, _place, reason) => log.command(turnId, { type: 'stop', reason }),
    steer: ({ turnId }, message) => log.command(turnId, message),
    isOfChat: () => true,
    isAskedBy: ({ userId }, { user }) => userId === undefined || userId === user.id,
    unbegun: () => [],
    hasMessage: () => undefined,
    enter: () => () => undefined,
    // Its session is elsewhere: here only its turns are known.
    watch: () => ({
      stateFor: () => ({ queue: [], people: [], agent: { isConnected: true } }),
      askedIn({ turnId }) {
        const { messages, user, replaces } = runner.turnHere(turnId)?.prompt ?? {};
        const message = messages?.findLast(({ role }) => role === 'user');
        return {
          ...(message && { message }),
          ...(user && { author: toConnectedUser(user) }),
          ...(replaces !== undefined && { replaces }),
        };
      },
      events: () => [],
      leave: () => undefined,
    }),
    /** A turn of a gateway that is gone: goes on with it, or ends it for its viewers. */
    async adopt({ turn, origin, mark, writer }) {
      const kept = readOrigin(origin);
      if (!kept) return false;
      metrics.takeovers.add();
      const { sessionId, route, user, role, channel, isRestored, asked, traceparent } = kept;
      const { userMessage, body = {}, trigger = 'submit-message', replaces } = asked ?? {};
      const { text, attachments } = contentOf(userMessage);
      const { lastSeq, chatId, messageId } = turn;
      const startedAt = Date.now();
      const { upstream = options.upstream, public: isPublic } = ownRoute(route) ?? {};
      runner.run({
        writer,
        role,
        trace: accounts.trace({ route, sessionId, chatId, startedAt, takenOverFrom: traceparent }),
        prompt: {
          sessionId,
          chatId,
          chatKey: chatKeyOf({ logSession: turn.sessionId, logChat: chatId }),
          messageId,
          user,
          text,
          attachments,
          messages: [],
          body,
          trigger,
          ...(replaces !== undefined && { replaces }),
          ...(userMessage && { userMessage }),
          ...(channel && { channel }),
          ...(isRestored && { isRestored }),
        },
        upstream: upstream as UpstreamOption,
        takenOver: { lastSeq, mark, canAttach: asked !== undefined },
        isKept: asked !== undefined,
        release: admission.countTurn(isPublic ? undefined : userCaller(user)),
      });
      return true;
    },
  };
}

/** A session server elsewhere queues prompts, and decides what they replace. */
function isOfServer({ upstream }: Pick<Place, 'upstream'>): boolean {
  return typeof upstream === 'object' && upstream.hasQueue === true;
}
