import { SabirError, SHUTTING_DOWN, UPSTREAM_UNREACHABLE } from '../core/errors.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { Role } from '../core/roles.ts';
import { startTimer } from '../core/timers.ts';
import { within } from '../core/within.ts';
import { createGroups } from '../turns/groups.ts';
import type { TurnLog, TurnWriter } from '../turns/log.ts';
import { createSessionPool, type SessionLease, type SessionPool } from '../turns/session-pool.ts';
import { runTurn } from '../turns/turn.ts';
import type { FinishedTurn, TakenOver, Turn, TurnOptions } from '../turns/turn-options.ts';
import type { Prompt, SessionIdentity } from '../turns/upstream.ts';
import type { Place } from './chat-route.ts';
import type { GatewayMetrics } from './metrics.ts';
import type {
  ChatGatewayOptions,
  GatewayLimits,
  GatewayTiming,
  UpstreamOption,
} from './options.ts';
import { noteEnd } from './replaced-turns.ts';
import { wasRefused } from './session-refusal.ts';
import type { TurnTrace } from './trace-turn.ts';
import type { TurnAccounts } from './turn-accounts.ts';

export type TurnRunnerOptions = Omit<ChatGatewayOptions, 'metrics'> & {
  log: TurnLog;
  timing: GatewayTiming;
  limits: GatewayLimits;
  metrics: GatewayMetrics;
  /** A turn has ended, here. Its source may have called its message something else than was planned. */
  onTurnEnd(turnId: string, planned: string, messageId: string): void;
  /** What a turn is copied from cannot be reached: its streams are to end, the turn goes on. */
  onCutOff(turnId: string): void;
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

type LiveTurn = { turn: Turn; trace: TurnTrace | undefined };

/** How long an abandoned turn may take to write its end and store its message. */
const LAST_WORDS_MS = 1_000;
/** How often to look whether a turn has come to wait while everything ends. */
const PAUSE_MS = 50;
const PAUSED = { status: 'paused' } as const;
const CLOSED = {
  status: 'failed',
  code: SHUTTING_DOWN.code,
  message: SHUTTING_DOWN.userMessage,
} as const;

export type TurnRunner = ReturnType<typeof createTurnRunner>;

/** The turns that run in this process, and the connections to what answers them. */
export function createTurnRunner(options: TurnRunnerOptions, accounts: TurnAccounts) {
  const { log, timing, limits, metrics, logger } = options;
  const live = new Map<string, LiveTurn>();
  /** Those whose answer may be missing from a history: until `onFinish` has stored it. */
  const unstored = createGroups<string, Turn>();
  /** What `close` waits for. A turn's `onFinish` may still be storing when the turn has ended. */
  const unfinished = new Set<Promise<void>>();
  /** One for each agent: routes with the same one share its connections. */
  const pools = new Map<UpstreamOption, SessionPool>();
  let isClosing = false;

  function poolOf(upstream: UpstreamOption): SessionPool {
    let pool = pools.get(upstream);
    if (!pool) {
      const upstreamOf = typeof upstream === 'function' ? upstream : () => upstream;
      pool = createSessionPool(upstreamOf, timing.lingerMs);
      pools.set(upstream, pool);
    }
    return pool;
  }

  function awaitAtClose(work: Promise<unknown>): void {
    const end = work.then(
      () => void unfinished.delete(end),
      () => void unfinished.delete(end),
    );
    unfinished.add(end);
  }

  /** The end of a turn may add its `onFinish`. */
  async function untilFinished(): Promise<void> {
    while (unfinished.size > 0) await Promise.all(unfinished);
  }

  return {
    run(running: Running): Turn {
      const { writer, prompt, upstream, requestId, takenOver, isKept, trace } = running;
      const { turnId } = writer;
      const { sessionId, chatId, user, isRestored } = prompt;
      const { userMessage, trigger = 'submit-message', replaces } = prompt;
      const ids = { ...(requestId && { requestId }), sessionId, chatId, turnId };
      const account = accounts.begin(ids, trace, takenOver !== undefined);
      let ended: TurnOutcome | undefined;
      /** A gateway that slept past its lease may have taken its own turn over: that one is another. */
      const forget = () => {
        if (live.get(turnId)?.turn === turn) live.delete(turnId);
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
            // An application that stores by the message's id would lose what the message had.
            if (isRestored && hasToldNothing(finished)) return undefined;
            // The message is in no conversation, and may be a forged edit of another person's.
            if (wasRefused(finished)) return undefined;
            return options.onFinish?.({
              ...finished,
              user,
              ...(userMessage && { userMessage }),
              trigger,
              ...(replaces !== undefined && { replaces }),
            });
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
        onCutOff() {
          metrics.openFailures.add();
          options.onCutOff(turnId);
        },
        onTaken() {
          forget();
          running.release();
          account.leave();
        },
        onEnd(outcome, stats) {
          ended = outcome;
          forget();
          running.release();
          options.onTurnEnd(turnId, prompt.messageId, turn.messageId);
          account.end(outcome, stats);
        },
      };
      const turn = trace ? trace.run(() => runTurn(turnOptions)) : runTurn(turnOptions);
      live.set(turnId, { turn, trace });
      unstored.add(sessionId, turn);
      const noteDone = async () => {
        unstored.delete(sessionId, turn);
        if (ended) await noteEnd(log, turnId, ended);
      };
      awaitAtClose(turn.done.then(noteDone));
      return turn;
    },
    awaitAtClose,
    /** A connection to a session, for what is read of it beside its turns. */
    async lease(
      { sessionId, user, role, upstream }: SessionIdentity & Pick<Place, 'upstream'>,
      signal: AbortSignal,
    ): Promise<SessionLease> {
      try {
        return await poolOf(upstream as UpstreamOption).lease({ sessionId, user, role }, signal);
      } catch (cause) {
        if (isClosing) throw new SabirError(SHUTTING_DOWN);
        metrics.openFailures.add();
        throw new SabirError(UPSTREAM_UNREACHABLE, undefined, { cause });
      }
    },
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
    /** Waits a while for what runs, then ends it: a viewer who comes back later gets what happened. */
    async close(): Promise<void> {
      isClosing = true;
      // A gateway that shares the log goes on with what it can, and no viewer notices.
      const handOver = () => [...live.values()].map(({ turn }) => turn.handOver());
      await within(timing.shutdownMs, Promise.all(handOver()));
      // They wait for a person, and another process can go on with them.
      const pause = () => {
        for (const { turn } of live.values()) if (turn.canWait) turn.abandon(PAUSED);
      };
      pause();
      const pausing = startTimer(PAUSE_MS, () => {
        // One may have reached its agent only now.
        handOver();
        pause();
      });
      await within(timing.shutdownMs, untilFinished());
      pausing.clear();
      for (const { turn } of live.values()) turn.abandon(turn.canWait ? PAUSED : CLOSED);
      await within(LAST_WORDS_MS, untilFinished());
      for (const pool of pools.values()) pool.close();
    },
  };
}

function hasToldNothing({ message, outcome }: FinishedTurn): boolean {
  return message.parts.length === 0 && outcome.status !== 'finished';
}
