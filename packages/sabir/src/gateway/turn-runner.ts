import { SabirError, SHUTTING_DOWN, UPSTREAM_UNREACHABLE } from '../errors.ts';
import { createId } from '../id.ts';
import type { Channel } from '../translator.ts';
import type { AnyTurnLog, BeginTurn, TurnInfo, TurnWriter } from '../turns/log.ts';
import { closingsOf } from '../turns/lost.ts';
import { createSessionPool, type SessionLease, type SessionPool } from '../turns/session-pool.ts';
import { startTimer } from '../turns/timers.ts';
import { type FinishedTurn, runTurn, type Turn } from '../turns/turn.ts';
import type { User } from '../turns/upstream.ts';
import { withoutContent } from '../turns/without-content.ts';
import type { ChatPost } from './chat-post.ts';
import type { Place } from './chat-route.ts';
import { findTurn } from './find-turn.ts';
import type { GatewayMetrics } from './metrics.ts';
import type {
  ChatGatewayOptions,
  GatewayLimits,
  GatewayTiming,
  UpstreamOption,
} from './options.ts';

type PromptPost = Extract<ChatPost, { kind: 'prompt' }>;

/** What a turn begins with. One that goes on has its message already. */
type Beginning = PromptPost & { messageId?: string; isRestored?: true };

export type TurnRunnerOptions = ChatGatewayOptions & {
  log: AnyTurnLog;
  timing: GatewayTiming;
  limits: GatewayLimits;
  metrics: GatewayMetrics;
  /** A turn has ended, here. */
  onTurnEnd(turnId: string, messageId: string): void;
};

type LiveTurn = { turn: Turn; info: Omit<TurnInfo, 'lastSeq'> };

/** Where a chat's turns are. */
type Kept = Pick<Place, 'logSession' | 'chatId'>;

type Where = {
  place: Place;
  channel: Channel | undefined;
  requestId: string;
  askedAt: number;
};

/** How long an abandoned turn may take to write its end and store its message. */
const LAST_WORDS_MS = 1_000;
/** How often to look whether a turn has come to wait while everything ends. */
const PAUSE_MS = 50;
const PAUSED = { status: 'paused' } as const;
/** Which of a chat's turns somebody wants to see: the one that says something. */
const RANKS = { 'an answer': 1, others: 2 } as const;

export type TurnRunner = ReturnType<typeof createTurnRunner>;

/** The turns that run in this process, and the sessions they run in. */
export function createTurnRunner(options: TurnRunnerOptions) {
  const { log, timing, limits, metrics, logger } = options;
  const live = new Map<string, LiveTurn>();
  /** Those whose answer may be missing from a history: until `onFinish` has stored it. */
  const unstored = new Map<string, Turn>();
  /** The ends of turns, `onFinish` included: it may still be storing when the turn has ended. */
  const ends = new Set<Promise<void>>();
  /** One for each agent: routes with the same one share its connections. */
  const pools = new Map<UpstreamOption, SessionPool>();
  let isClosing = false;
  const { code: closingCode, userMessage: closingMessage } = SHUTTING_DOWN;
  const closed = { status: 'failed', code: closingCode, message: closingMessage } as const;

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
    sessionId: string,
    user: User,
    signal: AbortSignal,
    upstream: UpstreamOption = options.upstream,
  ): Promise<SessionLease> {
    if (isClosing) throw new SabirError(SHUTTING_DOWN);
    try {
      return await poolOf(upstream).lease(sessionId, user, signal);
    } catch (cause) {
      if (isClosing) throw new SabirError(SHUTTING_DOWN);
      metrics.openFailures.add();
      throw new SabirError(UPSTREAM_UNREACHABLE, undefined, { cause });
    }
  }

  /** Takes a turn that will never run out of the log: whoever reads it is told, and does not wait. */
  async function callOff(writer: TurnWriter, { messageId }: BeginTurn): Promise<void> {
    try {
      await writer.append(closingsOf([], messageId, closed));
      await writer.close(closed);
    } catch (error) {
      // Its lease runs out, if the log is not gone as well.
      const { turnId } = writer;
      logger?.error?.('the turn could not be closed', { turnId, error: withoutContent(error) });
    }
  }

  /** `close()` waits for it: what the log has begun is to be ended. */
  function begin(post: Beginning, where: Where): Promise<{ turn: TurnInfo; isNew: boolean }> {
    const begun = beginNow(post, where);
    const end = begun.then(
      () => void ends.delete(end),
      () => void ends.delete(end),
    );
    ends.add(end);
    return begun;
  }

  async function beginNow(
    post: Beginning,
    { place, channel, requestId, askedAt }: Where,
  ): Promise<{ turn: TurnInfo; isNew: boolean }> {
    if (isClosing) throw new SabirError(SHUTTING_DOWN);
    const { text, attachments, messages, body, messageId = createId(), isRestored } = post;
    const { user, sessionId, chatId, upstream } = place;
    const info = { sessionId: place.logSession, chatId, requestId: post.requestId, messageId };
    let begun = await log.begin(info);
    // Whoever asked before that turn had ended asked for it; whoever asks later asks for another.
    while (post.isWish && 'existing' in begun && (begun.existing.endedAt ?? Infinity) <= askedAt) {
      info.requestId = `${post.requestId} after ${begun.existing.turnId}`;
      begun = await log.begin(info);
    }
    if (isClosing) {
      if ('writer' in begun) await callOff(begun.writer, info);
      throw new SabirError(SHUTTING_DOWN);
    }
    if ('existing' in begun) return { turn: begun.existing, isNew: false };
    const { writer } = begun;
    const { turnId } = writer;
    const startedAt = Date.now();
    const ids = { requestId, sessionId, chatId, turnId };
    logger?.info?.('turn began', ids);
    metrics.liveTurns.add(1);
    const turn = runTurn({
      log,
      writer,
      timing,
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
        sessionId,
        chatId,
        chatKey: chatKeyOf(place),
        turnId,
        messageId,
        user,
        text,
        attachments,
        messages,
        body,
        ...(channel && { channel }),
        ...(isRestored && { isRestored }),
        ...(options.errorText && { errorText: (error) => options.errorText?.(error) ?? '' }),
      },
      open: (signal) => poolOf(upstream).lease(sessionId, user, signal),
      onUnreachable: () => metrics.openFailures.add(),
      onEnd(outcome, stats) {
        live.delete(turnId);
        options.onTurnEnd(turnId, turn.messageId);
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
          if (code !== UPSTREAM_UNREACHABLE.code) metrics.aborts.add({ side: 'server' });
        }
        logger?.info?.('turn ended', {
          ...ids,
          outcome: outcome.status,
          ...(code && { code }),
          durationMs: Date.now() - startedAt,
        });
      },
    });
    const begunInfo = { ...info, turnId, startedAt };
    live.set(turnId, { turn, info: begunInfo });
    unstored.set(turnId, turn);
    const end = turn.done.then(() => {
      unstored.delete(turnId);
      ends.delete(end);
    });
    ends.add(end);
    return { turn: { ...begunInfo, lastSeq: 0 }, isNew: true };
  }

  /** What is known here of a turn that is running here. */
  function liveInfo(turnId: string): TurnInfo | undefined {
    const found = live.get(turnId);
    return found && { ...found.info, lastSeq: found.turn.lastSeq };
  }

  return {
    begin,
    lease,
    /** A turn of this chat by its id; one that is not in it is not there. */
    async find(turnId: string, { logSession: sessionId, chatId }: Kept) {
      const kept = await findTurn(log, turnId, { sessionId, chatId });
      const here = live.get(turnId);
      // Its beginning is told to viewers: by one clock, whichever of the two is asked later.
      if (kept && here) here.info.startedAt = kept.startedAt;
      const found = kept ?? liveInfo(turnId);
      return found?.sessionId === sessionId && found.chatId === chatId ? found : undefined;
    },
    get isClosing() {
      return isClosing;
    },
    /**
     * The turns of a chat that are running here: those that say something, then what waits for an
     * answer, then what waits behind others; the oldest first.
     */
    liveIn: ({ logSession, chatId }: Kept): string[] =>
      [...live.values()]
        .filter(({ info }) => info.sessionId === logSession && info.chatId === chatId)
        .sort((one, other) => rankOf(one.turn) - rankOf(other.turn))
        .map(({ info }) => info.turnId),
    /** A turn that is running here. */
    turnHere: (turnId: string): Turn | undefined => live.get(turnId)?.turn,
    unstoredIn: (sessionId: string) =>
      [...unstored].filter(([, { prompt }]) => prompt.sessionId === sessionId),
    /** Waits a while for what runs, then ends it: whoever comes back later is told what happened. */
    async close(): Promise<void> {
      isClosing = true;
      // They wait for a person, and somebody else can go on with them.
      const pause = () => {
        for (const { turn } of live.values()) if (turn.canWait) turn.abandon(PAUSED);
      };
      pause();
      const pausing = startTimer(PAUSE_MS, pause);
      await within(timing.shutdownMs, ends);
      pausing.clear();
      for (const { turn } of live.values()) turn.abandon(turn.canWait ? PAUSED : closed);
      await within(LAST_WORDS_MS, ends);
      for (const pool of pools.values()) pool.close();
    },
  };
}

/** What an agent may keep a chat's turns under, whoever's chat it is. */
export function chatKeyOf({ logSession, chatId }: Kept): string {
  return JSON.stringify([logSession, chatId]);
}

function rankOf({ waitsFor }: Turn): number {
  return waitsFor ? RANKS[waitsFor] : 0;
}

function hasToldNothing({ message, outcome }: FinishedTurn): boolean {
  return message.parts.length === 0 && outcome.status !== 'finished';
}

/** Waits for all of them, but not for ever. */
async function within(ms: number, promises: Iterable<Promise<void>>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([Promise.all(promises), late]);
  clearTimeout(timer);
}
