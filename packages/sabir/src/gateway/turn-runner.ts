import { type ErrorKind, SabirError, SHUTTING_DOWN, UPSTREAM_UNREACHABLE } from '../core/errors.ts';
import { createId } from '../core/id.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { Role } from '../core/roles.ts';
import { startTimer } from '../core/timers.ts';
import type { Channel, TranslatorStats } from '../core/translator.ts';
import { within } from '../core/within.ts';
import { withoutContent } from '../core/without-content.ts';
import { closingsOf } from '../turns/closings.ts';
import { createGroups } from '../turns/groups.ts';
import type { BeginTurn, OrphanedTurn, TurnInfo, TurnLog, TurnWriter } from '../turns/log.ts';
import { createSessionPool, type SessionLease, type SessionPool } from '../turns/session-pool.ts';
import { runTurn } from '../turns/turn.ts';
import type { FinishedTurn, TakenOver, Turn, TurnOptions } from '../turns/turn-options.ts';
import type { Prompt, SessionIdentity, User } from '../turns/upstream.ts';
import type { Admission } from './admission.ts';
import type { PromptPost } from './chat-post.ts';
import { type Place, userCaller } from './chat-route.ts';
import { createHostedTurns, type HostedTurn, type HostedTurns } from './hosted-turns.ts';
import type { GatewayMetrics } from './metrics.ts';
import type {
  ChatGatewayOptions,
  GatewayLimits,
  GatewayTiming,
  RouteName,
  UpstreamOption,
} from './options.ts';
import type { QueueWatch } from './queued-viewer.ts';
import { type TurnTrace, traceTurn } from './trace-turn.ts';
import { readOrigin, toOrigin } from './turn-origin.ts';

/** What a turn begins with. One that goes on has its message already. */
type Beginning = PromptPost & { messageId?: string; isRestored?: true };

export type TurnRunnerOptions = Omit<ChatGatewayOptions, 'metrics'> & {
  log: TurnLog;
  timing: GatewayTiming;
  limits: GatewayLimits;
  metrics: GatewayMetrics;
  admission: Admission;
  /** A turn has ended, here. Its source may have called its message something else than was planned. */
  onTurnEnd(turnId: string, planned: string, messageId: string): void;
};

/** A turn that is to run here. */
type Running = {
  writer: TurnWriter;
  prompt: Omit<Prompt, 'turnId'>;
  /** What its user may do in the session. */
  role: Role;
  upstream: UpstreamOption;
  /** The request that it was asked by. */
  requestId?: string;
  takenOver?: TakenOver;
  trace: TurnTrace | undefined;
  /** Enough is kept for another gateway to go on with it. */
  isKept: boolean;
  /** Gives back what it takes of the limits. */
  release: () => void;
};

/** A turn that was begun, or found. */
type Begun = {
  turn: TurnInfo;
  isNew: boolean;
  /** Of a new one: see `Turn`. */
  accepted?: Promise<TurnOutcome | undefined> | undefined;
};

/** A place among the live turns, or why there is none. */
type Slot = { release?: () => void; refusal?: SabirError };

type LiveTurn = { turn: Turn; trace: TurnTrace | undefined };

/** Where a chat's turns are. */
type Kept = Pick<Place, 'logSession' | 'logChat'>;

type Where = {
  place: Place;
  channel: Channel | undefined;
  requestId: string;
  askedAt: number;
  /** Of the request that it was asked by. */
  headers: Headers;
  /** The client sends it again because nobody answered. */
  isRepeat?: boolean;
  /** Called once, when a turn that was begun for it has ended here. */
  onEnd?: () => void;
};

/** How long an abandoned turn may take to write its end and store its message. */
const LAST_WORDS_MS = 1_000;
/** How often to look whether a turn has come to wait while everything ends. */
const PAUSE_MS = 50;
const PAUSED = { status: 'paused' } as const;

export type TurnRunner = ReturnType<typeof createTurnRunner>;

/** The turns that run in this process, and the sessions they run in. */
export function createTurnRunner(options: TurnRunnerOptions) {
  const { log, timing, limits, metrics, admission, telemetry, logger } = options;
  const { keepUser = ({ id }: User) => ({ id }) } = options;
  const live = new Map<string, LiveTurn>();
  /** Those whose answer may be missing from a history: until `onFinish` has stored it. */
  const unstored = createGroups<string, Turn>();
  /** The ends of turns, `onFinish` included: it may still be storing when the turn has ended. */
  const ends = new Set<Promise<void>>();
  /** One for each agent: routes with the same one share its connections. */
  const pools = new Map<UpstreamOption, SessionPool>();
  const hosted = options.sessions && createHostedTurns(options.sessions, timing);
  let isClosing = false;
  const { sessions } = options;
  const stopAdopting = sessions ? sessions.adoptOthers(adopt) : log.onOrphan(adopt);
  const { code: closingCode, userMessage: closingMessage } = SHUTTING_DOWN;
  const closed = { status: 'failed', code: closingCode, message: closingMessage } as const;

  /** Where sessions in this process answer. */
  function hostOf({ sessions }: Pick<Place, 'sessions'>): HostedTurns | undefined {
    return sessions && hosted;
  }

  function poolOf(upstream: UpstreamOption): SessionPool {
    let pool = pools.get(upstream);
    if (!pool) {
      const upstreamOf = typeof upstream === 'function' ? upstream : () => upstream;
      pool = createSessionPool(upstreamOf, timing.lingerMs);
      pools.set(upstream, pool);
    }
    return pool;
  }

  /** For what is asked of a session beside its turns. */
  async function lease(
    place: SessionIdentity & Pick<Place, 'upstream' | 'sessions'>,
    signal: AbortSignal,
  ): Promise<SessionLease> {
    if (isClosing) throw new SabirError(SHUTTING_DOWN);
    const { sessionId, user, role, upstream } = place;
    const hosted = hostOf(place);
    if (hosted) return hosted.lease(place);
    try {
      return await poolOf(upstream as UpstreamOption).lease({ sessionId, user, role }, signal);
    } catch (cause) {
      if (isClosing) throw new SabirError(SHUTTING_DOWN);
      metrics.openFailures.add();
      throw new SabirError(UPSTREAM_UNREACHABLE, undefined, { cause });
    }
  }

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

  /** `close()` waits for it: what the log has begun is to be ended. */
  function begin(post: Beginning, where: Where): Promise<Begun> {
    const begun = beginNow(post, where);
    const end = begun.then(
      () => void ends.delete(end),
      () => void ends.delete(end),
    );
    ends.add(end);
    return begun;
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

  /** Whether this may be a message that was sent before, and begins nothing. */
  async function isKnown({ requestId }: Beginning, place: Place): Promise<boolean> {
    const { logSession, logChat } = place;
    const live = await log.live(logSession, logChat);
    const turns = [...live, await log.latest(logSession, logChat)];
    return turns.some((turn) => turn?.requestId.startsWith(requestId));
  }

  async function beginNow(post: Beginning, where: Where): Promise<Begun> {
    const slot = takeSlot(post, where.place);
    const host = hostOf(where.place);
    if (host) return beginInSession(host, slot, post, where);
    if (slot.refusal && !(await isKnown(post, where.place))) throw slot.refusal;
    let isRunning = false;
    try {
      const begun = await beginWith(slot, post, where);
      isRunning = begun.isNew;
      return begun;
    } finally {
      if (!isRunning) slot.release?.();
    }
  }

  async function beginWith(
    slot: Slot,
    post: Beginning,
    { place, channel, requestId, askedAt, headers, isRepeat = false, onEnd }: Where,
  ): Promise<Begun> {
    if (isClosing) throw new SabirError(SHUTTING_DOWN);
    const { text, attachments, messages, body, messageId = createId(), isRestored } = post;
    const { user, role, sessionId, chatId, upstream } = place;
    const asked = {
      sessionId,
      chatId,
      chatKey: chatKeyOf(place),
      user,
      text,
      attachments,
      messages,
      body,
      ...(channel && { channel }),
      ...(isRestored && { isRestored }),
    };
    const { route } = place;
    const traced = { route, sessionId, chatId, requestId, startedAt: askedAt, headers };
    // Before the log knows the turn: what it keeps for a takeover names this span.
    const trace = telemetry && traceTurn(telemetry, traced, logger);
    const { traceparent } = trace ?? {};
    const origin =
      log.outlivesProcess &&
      toOrigin(route, { ...asked, ...(traceparent && { traceparent }) }, { role, keepUser });
    const isKept = origin && origin.asked !== undefined;
    const info: BeginTurn = {
      sessionId: place.logSession,
      chatId,
      requestId: post.requestId,
      messageId,
      ...(isRepeat && { isRepeat }),
      ...(origin && { origin }),
    };
    let begun = await log.begin(info).catch((error) => {
      admission.countLogRefusal(error);
      throw error;
    });
    const isWish = post.isWish && !isRepeat;
    // Whoever asked before that turn had ended asked for it; whoever asks later asks for another.
    while (isWish && 'existing' in begun && (begun.existing.endedAt ?? Infinity) <= askedAt) {
      info.requestId = `${post.requestId} after ${begun.existing.turnId}`;
      begun = await log.begin(info);
    }
    if (isClosing) {
      if ('writer' in begun) await callOff(begun.writer, info, SHUTTING_DOWN);
      throw new SabirError(SHUTTING_DOWN);
    }
    if ('existing' in begun) return { turn: begun.existing, isNew: false };
    if (slot.refusal) {
      await callOff(begun.writer, info, slot.refusal);
      throw slot.refusal;
    }
    const { writer } = begun;
    const { origin: _, isRepeat: __, ...known } = info;
    const prompt = { ...asked, messageId };
    const release = () => {
      slot.release?.();
      onEnd?.();
    };
    runHere({
      writer,
      prompt,
      role,
      upstream: upstream as UpstreamOption,
      requestId,
      isKept,
      trace,
      release,
    });
    const turn: TurnInfo = {
      ...known,
      turnId: writer.turnId,
      startedAt: Date.now(),
      lastSeq: 0,
      status: 'queued',
      questions: [],
    };
    return { turn, isNew: true, accepted: live.get(turn.turnId)?.turn.accepted };
  }

  /** The session runs the turn; this gateway counts it, and reports its end. */
  async function beginInSession(
    host: HostedTurns,
    slot: Slot,
    post: Beginning,
    { place, requestId, askedAt, headers, isRepeat = false, onEnd }: Where,
  ): Promise<Begun> {
    const release = () => {
      slot.release?.();
      onEnd?.();
    };
    let isNew = false;
    try {
      if (isClosing) throw new SabirError(SHUTTING_DOWN);
      const { route, sessionId, chatId } = place;
      const traced = { route, sessionId, chatId, requestId, startedAt: askedAt, headers };
      const trace = telemetry && traceTurn(telemetry, traced, logger);
      const { traceparent } = trace ?? {};
      const { refusal } = slot;
      const asking = { place, traceparent, askedAt, isRepeat, refusal };
      const { turn, hosted: begun } = await host.begin(post, asking);
      isNew = begun !== undefined;
      if (begun) follow(begun, { requestId, trace, release });
      return { turn, isNew };
    } finally {
      if (!isNew) release();
    }
  }

  function follow(
    { place, prompt, ended }: HostedTurn,
    { requestId, trace, release }: Pick<Running, 'trace' | 'release'> & { requestId: string },
  ): void {
    const { turnId, messageId } = prompt;
    const { sessionId, chatId, user } = place;
    const ids = { requestId, sessionId, chatId, turnId };
    const account = beginAccount(ids, trace, false);
    const end = (async () => {
      const finished = await ended;
      release();
      if (finished === 'left') return account.leave();
      const isWithdrawn = finished === 'withdrawn';
      account.end(isWithdrawn ? { status: 'stopped', reason: finished } : finished.outcome);
      options.onTurnEnd(turnId, messageId, messageId);
      if (isWithdrawn || !options.onFinish) return;
      const { onFinish } = options;
      const hook = (async () => onFinish({ ...finished, sessionId, chatId, turnId, user }))();
      await within(timing.hookMs, hook, () => metrics.hookTimeouts.add({ hook: 'onFinish' }));
    })()
      .catch((error: unknown) => {
        logger?.error?.('onFinish failed', { ...ids, error: withoutContent(error) });
      })
      .then(() => void ends.delete(end));
    ends.add(end);
  }

  /** Counts a turn that runs, and its end. */
  function beginAccount(
    ids: Record<string, unknown> & { turnId: string },
    trace: TurnTrace | undefined,
    isTakenOver: boolean,
  ) {
    const startedAt = Date.now();
    logger?.info?.(isTakenOver ? 'turn taken over' : 'turn began', ids);
    metrics.liveTurns.add(1);
    trace?.begin(ids.turnId, isTakenOver);
    return {
      /** The turn goes on in another process. */
      leave(): void {
        metrics.liveTurns.add(-1);
        metrics.handovers.add();
        trace?.handOver();
        logger?.info?.('turn left to another gateway', ids);
      },
      end(outcome: TurnOutcome, stats: TranslatorStats = { unknown: {}, malformed: {} }): void {
        trace?.end(outcome);
        metrics.liveTurns.add(-1);
        metrics.turns.add({ outcome: outcome.status });
        metrics.turnDuration.observe((Date.now() - startedAt) / 1000);
        for (const [type, count] of Object.entries(stats.unknown)) {
          metrics.unknownEvents.add({ type }, count);
        }
        for (const [type, count] of Object.entries(stats.malformed)) {
          metrics.malformedEvents.add({ type }, count);
        }
        const code = outcome.status === 'failed' ? outcome.code : undefined;
        if (outcome.status === 'failed' || outcome.status === 'lost') {
          metrics.requestErrors.add({ code: code ?? outcome.status });
          metrics.requestFailures.add();
          if (code !== UPSTREAM_UNREACHABLE.code) metrics.aborts.add({ side: 'server' });
        }
        const durationMs = Date.now() - startedAt;
        const how = { outcome: outcome.status, ...(code && { code }), durationMs };
        logger?.info?.('turn ended', { ...ids, ...how });
      },
    };
  }

  function runHere(running: Running): void {
    const { writer, prompt, upstream, requestId, takenOver, isKept, trace } = running;
    const { turnId } = writer;
    const { sessionId, chatId, user, isRestored } = prompt;
    const ids = { ...(requestId && { requestId }), sessionId, chatId, turnId };
    const account = beginAccount(ids, trace, takenOver !== undefined);
    /** A gateway that slept past its lease may have taken its own turn over: that one is another. */
    const forget = () => {
      if (live.get(turnId)?.turn !== turn) return;
      live.delete(turnId);
    };
    const turnOptions: TurnOptions = {
      log,
      writer: trace?.watch(writer) ?? writer,
      timing,
      takenOver,
      isKept,
      queueBytes: limits.queueBytes,
      logger,
      onFinish:
        options.onFinish &&
        ((finished) => {
          // Whoever stores by its id would lose what the message had.
          if (isRestored && hasToldNothing(finished)) return undefined;
          return options.onFinish?.({ ...finished, user });
        }),
      prompt: {
        ...prompt,
        turnId,
        ...(trace?.traceparent && { traceparent: trace.traceparent }),
        ...(options.errorText && { errorText: (error) => options.errorText?.(error) ?? '' }),
      },
      open: (signal) => poolOf(upstream).lease({ sessionId, user, role: running.role }, signal),
      onHookTimeout: (hook) => metrics.hookTimeouts.add({ hook }),
      onUnreachable: () => metrics.openFailures.add(),
      onTaken() {
        forget();
        running.release();
        account.leave();
      },
      onEnd(outcome, stats) {
        forget();
        running.release();
        options.onTurnEnd(turnId, prompt.messageId, turn.messageId);
        account.end(outcome, stats);
      },
    };
    const turn = trace ? trace.run(() => runTurn(turnOptions)) : runTurn(turnOptions);
    live.set(turnId, { turn, trace });
    unstored.add(sessionId, turn);
    const end = turn.done.then(() => {
      unstored.delete(sessionId, turn);
      ends.delete(end);
    });
    ends.add(end);
  }

  /** A turn of a gateway that is gone: goes on with it, or ends it for those who watch it. */
  async function adopt({ turn, origin, mark, writer }: OrphanedTurn): Promise<boolean> {
    const kept = readOrigin(origin);
    if (!kept) return false;
    metrics.takeovers.add();
    const { sessionId, route, user, role, channel, isRestored, asked, traceparent } = kept;
    const { text = '', attachments = [], body = {} } = asked ?? {};
    const { lastSeq, chatId, messageId } = turn;
    const chatKey = chatKeyOf({ logSession: turn.sessionId, logChat: chatId });
    const startedAt = Date.now();
    const traced = { route, sessionId, chatId, startedAt, takenOverFrom: traceparent };
    runHere({
      writer,
      role,
      trace: telemetry && traceTurn(telemetry, traced, logger),
      prompt: {
        sessionId,
        chatId,
        chatKey,
        messageId,
        user,
        text,
        attachments,
        messages: [],
        body,
        ...(channel && { channel }),
        ...(isRestored && { isRestored }),
      },
      upstream: upstreamOf(route),
      takenOver: { lastSeq, mark, canAttach: asked !== undefined },
      isKept: asked !== undefined,
      release: admission.countTurn(isPublic(route) ? undefined : userCaller(user)),
    });
    return true;
  }

  function isPublic(route: RouteName): boolean {
    const { routes = {} } = options;
    const own = route === 'sessions' ? undefined : routes[route];
    return own ? own.public === true : false;
  }

  function upstreamOf(route: RouteName): UpstreamOption {
    const { routes = {} } = options;
    const own = route === 'sessions' ? undefined : routes[route];
    return ((own ? own.upstream : undefined) ?? options.upstream) as UpstreamOption;
  }

  /** The prompts of a conversation that wait in a session of this process. */
  async function queuedIn(place: Place): Promise<TurnInfo[]> {
    return (await hostOf(place)?.queued(place)) ?? [];
  }

  return {
    begin,
    lease,
    /** A turn of this chat by its id; one that is not in it is not there. */
    async find(turnId: string, place: Place): Promise<TurnInfo | undefined> {
      const found =
        (await log.get(turnId)) ??
        (await queuedIn(place)).find((queued) => queued.turnId === turnId);
      const isHere = found?.sessionId === place.logSession && found.chatId === place.logChat;
      return isHere ? found : undefined;
    },
    queuedIn,
    /** Where a turn waits, or may come to wait, that has not begun; undefined once it has. */
    queueOf(turn: TurnInfo, place: Place): QueueWatch | undefined {
      const host = hostOf(place);
      if (host) return turn.lastSeq === 0 && !turn.outcome ? host.queueOf(turn, place) : undefined;
      if (typeof place.upstream !== 'object' || !place.upstream.hasQueue) return undefined;
      // Whether it waits is known only when its upstream has been reached.
      const { queue } = live.get(turn.turnId)?.turn ?? {};
      return turn.lastSeq === 0 && !queue?.hasBegun ? queue : undefined;
    },
    /** Stops a turn, or withdraws its prompt if it waits. False if neither could be done. */
    async stop(turn: TurnInfo, place: Place, reason: string): Promise<boolean> {
      const host = hostOf(place);
      if (host) return host.stop(turn, place, reason);
      return log.command(turn.turnId, { type: 'stop', reason });
    },
    /**
     * Of the turns of a conversation that have not ended, those that a stop in this chat is for: what was asked for in this
     * chat, where that is known, and of that what has begun. A prompt that waits behind it may be another user's.
     */
    toStop(live: TurnInfo[], place: Place): TurnInfo[] {
      const ofChat = live.filter((turn) => hostOf(place)?.isOfChat(turn, place));
      const meant = ofChat.length > 0 ? ofChat : live;
      const begun = meant.filter(({ status }) => status !== 'queued');
      return begun.length > 0 ? begun : meant;
    },
    /** The last viewer of a prompt that waits has left. */
    withdrawUnwatched: (turnId: string): boolean => hosted?.withdrawUnwatched(turnId) ?? false,
    /** Whether people on sockets of a session see its turns. */
    isWatchedElsewhere: (turn: TurnInfo): boolean => hosted?.isWatched(turn) ?? false,
    /** A user begins to watch. Gives the function to call when they leave. */
    enter: (place: Place): (() => void) => hostOf(place)?.enter(place) ?? (() => undefined),
    /** No new turn or history of this person uses a connection that is open now. */
    retireSessions(userId: string): void {
      for (const pool of pools.values()) pool.retire(userId);
    },
    get isClosing() {
      return isClosing;
    },
    /** A turn that is running here. */
    turnHere: (turnId: string): Turn | undefined => live.get(turnId)?.turn,
    /** The trace of a turn that is running here, if telemetry is on. */
    traceOf: (turnId: string): TurnTrace | undefined => live.get(turnId)?.trace,
    unstoredIn: (sessionId: string): Turn[] => unstored.get(sessionId),
    /** Waits a while for what runs, then ends it: whoever comes back later is told what happened. */
    async close(): Promise<void> {
      isClosing = true;
      stopAdopting();
      // Whoever shares the log goes on with what it can, and nobody notices.
      const handOver = () => [...live.values()].map(({ turn }) => turn.handOver());
      await allWithin(timing.shutdownMs, handOver());
      // They wait for a person, and somebody else can go on with them.
      const pause = () => {
        for (const { turn } of live.values()) if (turn.canWait) turn.abandon(PAUSED);
      };
      pause();
      const pausing = startTimer(PAUSE_MS, () => {
        // One may have reached its agent only now.
        handOver();
        pause();
      });
      await allWithin(timing.shutdownMs, ends);
      pausing.clear();
      for (const { turn } of live.values()) turn.abandon(turn.canWait ? PAUSED : closed);
      await allWithin(LAST_WORDS_MS, ends);
      for (const pool of pools.values()) pool.close();
    },
  };
}

/** What an agent may keep a chat's turns under, whoever's chat it is. */
export function chatKeyOf({ logSession, logChat }: Kept): string {
  return JSON.stringify([logSession, logChat]);
}

async function allWithin(ms: number, promises: Iterable<Promise<unknown>>): Promise<void> {
  await within(ms, Promise.all(promises));
}

function hasToldNothing({ message, outcome }: FinishedTurn): boolean {
  return message.parts.length === 0 && outcome.status !== 'finished';
}
