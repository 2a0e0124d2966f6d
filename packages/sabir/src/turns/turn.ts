import type { Chunk } from '../core/chunks.ts';
import {
  type ErrorKind,
  LOG_FAILED,
  LOG_UNAVAILABLE,
  SabirError,
  TRANSLATOR_FAILED,
  TURN_FENCED,
  TURN_TOO_LARGE,
  UPSTREAM_DROPPED,
  UPSTREAM_UNREACHABLE,
} from '../core/errors.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { toSteeringRefusal } from '../core/steering.ts';
import type { Translator } from '../core/translator.ts';
import { within } from '../core/within.ts';
import { withoutContent } from '../core/without-content.ts';
import { createChunkTranslator } from '../sources/ai-sdk/translate.ts';
import type { Steer } from './log.ts';
import { hasCode, isFence, kindOf } from './log-errors.ts';
import { outcomeOf } from './outcome-of.ts';
import { createQueueState } from './queue-state.ts';
import { readWritten } from './read-written.ts';
import type { SessionLease } from './session-pool.ts';
import { trackProgress } from './track-progress.ts';
import { createTurnClock } from './turn-clock.ts';
import { type Closed, createTurnClosing } from './turn-closing.ts';
import { createTurnHooks, statsOf } from './turn-hooks.ts';
import { createTurnOpening } from './turn-opening.ts';
import type { TakenOver, Turn, TurnOptions } from './turn-options.ts';
import { createTurnQuestions } from './turn-questions.ts';
import {
  type EndsFrom,
  isLive,
  outcomeIn,
  type TurnEvent,
  type TurnState,
  transition,
} from './turn-state.ts';
import { createUnwritten } from './unwritten.ts';
import type { Written } from './upstream.ts';
import { createUpstreamCalls } from './upstream-calls.ts';

/** How long the process that ends a replica may take to, once the turn was stopped. */
const REPLICA_STOP_MS = 2_000;

/**
 * One run of an agent: opens the upstream, sends the prompt, pushes events through the translator into
 * the writer and obeys commands. `turn-state.ts` says which states a run has and what leads from one to
 * the next; `go` is the only place that changes the state. Whatever happens, the turn ends exactly once
 * and its log is closed, or another process owns it.
 */
export function runTurn(options: TurnOptions): Turn {
  const { log, writer, prompt, timing, logger, takenOver } = options;
  const { turnId } = writer;
  const ids = { sessionId: prompt.sessionId, chatId: prompt.chatId, turnId };
  const progress = trackProgress(timing.toolLimitMs);
  const finished = Promise.withResolvers<void>();
  const accepted = Promise.withResolvers<TurnOutcome | undefined>();
  const hooks = createTurnHooks(options, ids);
  const upstream = createUpstreamCalls(logger, ids);
  /** Settles when the agent can be given commands, or the turn is over. */
  const begun = Promise.withResolvers<void>();
  /** Settles when the turn has its outcome, or another process owns it. */
  const over = Promise.withResolvers<void>();
  const queue = createQueueState(() => upstream.queuePosition ?? 0);
  let state: TurnState = { name: 'opening' };
  // Until the source has one of its own: an agent that cannot be reached has to end the turn too.
  let translator: Translator<unknown> = createChunkTranslator({ messageId: prompt.messageId });
  let lease: SessionLease | undefined;
  let messageId = prompt.messageId;

  const questions = createTurnQuestions(progress.questions, {
    answer(answer) {
      clock.restart();
      upstream.answer(answer);
    },
    expire: upstream.expire,
  });

  const unwritten = createUnwritten({
    writer,
    lastSeq: takenOver?.lastSeq ?? 0,
    queueBytes: options.queueBytes,
    position: () => upstream.position,
    onWritten: upstream.written,
    onTooMuch(why) {
      if (!isLive(state)) return;
      if (why === LOG_UNAVAILABLE && mayBeTaken()) leave();
      else breakOff(why);
    },
    isOver: () => state.name === 'ending',
    close,
    onError: onLogError,
  });

  const closing = createTurnClosing({
    log,
    writer,
    unwritten,
    hooks,
    messageId: () => messageId,
  });

  const clock = createTurnClock({
    writer,
    timing,
    onRenewError,
    onSilence: breakOff,
    writtenAt: () => unwritten.writtenAt,
    expireQuestions: questions.expireUntil,
    isSilenceExpected: () =>
      !upstream.isTaken || upstream.isQueued || upstream.isReplica || questions.isAsking,
    isToolWorking: () => progress.tools.size > 0,
  });

  const opening = createTurnOpening({
    open: options.open,
    takenOver,
    timing,
    onLate: () => fail(UPSTREAM_UNREACHABLE),
    onAway,
  });

  /** The viewers here should not wait for an agent that is away. */
  function onAway(): void {
    if (isLive(state)) options.onCutOff?.();
  }

  /** False where the event changes nothing in the present state. */
  function go(event: TurnEvent): boolean {
    const next = transition(state, event);
    if (!next) return false;
    const wasLive = isLive(state);
    state = next;
    if (wasLive && !isLive(next)) {
      accepted.resolve(outcomeIn(next));
      release();
    }
    return true;
  }

  /** The agent, its connection and the timers are needed no more. */
  function release(): void {
    opening.end();
    queue.leave();
    clock.clear();
    upstream.release();
    lease?.release();
    begun.resolve();
    over.resolve();
  }

  function see(chunk: Chunk): void {
    progress.see(chunk);
    if (chunk.type === 'start' && chunk.messageId) messageId = chunk.messageId;
  }

  function push(chunks: Chunk[]): void {
    if (chunks.length > 0) queue.leave();
    for (const chunk of chunks) if (chunk.type !== 'text-delta') see(chunk);
    // One that was taken over has begun already.
    const isBegun = takenOver !== undefined && takenOver.lastSeq > 0;
    unwritten.add(isBegun ? chunks.filter(({ type }) => type !== 'start') : chunks);
  }

  /** The application's translator may throw, and the agent's own code calls this. */
  function onEvent(event: unknown): void {
    if (!isLive(state)) return;
    try {
      translate(event);
    } catch (error) {
      logTranslatorError(error);
      breakOff(TRANSLATOR_FAILED, 'log');
    }
  }

  function logTranslatorError(error: unknown): void {
    logger?.error?.('the translator of the agent failed', { ...ids, error });
  }

  function translate(event: unknown): void {
    const chunks = translator.push(event);
    // An event without chunks (a person joins, a ping) is no sign of life from the agent.
    if (chunks.length > 0) clock.heard();
    if (translator.ended) settle(outcomeOf(chunks), chunks);
    else push(chunks);
  }

  /** Only a translator that has seen all of the turn knows what is open. */
  function endsFromNow(): EndsFrom {
    const hasSeenAll = state.name === 'running' || (state.name === 'opening' && !takenOver);
    return hasSeenAll ? 'translator' : 'log';
  }

  function end(outcome: TurnOutcome, endsFrom = endsFromNow()): void {
    if (!isLive(state)) return;
    let chunks: Chunk[] = [];
    let from = endsFrom;
    try {
      if (from === 'translator') chunks = translator.end(outcome);
    } catch (error) {
      logTranslatorError(error);
      from = 'log';
    }
    settle(outcome, chunks, from);
  }

  /** The one place where a turn gets its outcome. */
  function settle(outcome: TurnOutcome, chunks: Chunk[], endsFrom = endsFromNow()): void {
    if (!go({ type: 'settled', outcome, endsFrom })) return;
    try {
      push(chunks);
    } catch (error) {
      logTranslatorError(error);
      go({ type: 'translator-failed' });
    }
    unwritten.flushSoon();
  }

  function fail({ code, userMessage: message }: ErrorKind, endsFrom?: EndsFrom): void {
    end({ status: 'failed', code, message }, endsFrom);
  }

  /** Ends a turn without a request to stop: the agent gets the reason. */
  function breakOff(why: ErrorKind, endsFrom?: EndsFrom): void {
    stopUpstream(why);
    fail(why, endsFrom);
  }

  /** Never after the end: the agent may be busy with another turn by then. */
  function stopUpstream(why?: ErrorKind): void {
    if (isLive(state)) upstream.stop(why && new SabirError(why));
  }

  /** Everything is written that the turn has said. */
  async function close(): Promise<void> {
    if (state.name !== 'ending') return;
    const { outcome, endsFrom } = state;
    await finish(
      await (endsFrom === 'log' ? closing.closeFromLog(outcome) : closing.close(outcome)),
    );
  }

  async function finish({ outcome, message }: Closed): Promise<void> {
    await hooks.end(outcome, message, statsOf(translator));
    go({ type: 'closed', outcome });
    finished.resolve();
  }

  /** What was refused is not in the log: what closes the turn follows from what is. */
  async function onLogError(error: unknown): Promise<void> {
    const isFenced = isFence(error);
    const kind = kindOf(error);
    const isLeft = isFenced ? log.outlivesProcess : kind === LOG_UNAVAILABLE && mayBeTaken();
    if (isLeft || state.name === 'left') {
      leave();
      return;
    }
    const failed: TurnOutcome = isFenced
      ? { status: 'lost' }
      : { status: 'failed', code: kind.code, message: kind.userMessage };
    stopUpstream(isFenced ? TURN_FENCED : kind);
    settle(failed, [], 'log');
    unwritten.clear();
    const isTooLarge = kind === TURN_TOO_LARGE;
    logger?.error?.(`the turn ended: ${isFenced ? TURN_FENCED.code : kind.code}`, {
      ...ids,
      ...(!isTooLarge && !isFenced && { error: withoutContent(error) }),
    });
    let outcome = failed;
    let decided = outcomeIn(state) ?? failed;
    try {
      if (!isFenced) return await finish(await closing.closeAfterError(failed, decided));
    } catch (second) {
      // Its lease runs out, or has: the process that notices ends the turn.
      if (isFence(second)) outcome = { status: 'lost' };
      logger?.error?.('the turn could not be closed', { ...ids, error: withoutContent(second) });
      // That process also calls `onFinish`, which runs once. A turn that the log has lost has no other process.
      const isLost = hasCode(error, LOG_FAILED) && !isFence(second) && (await closing.isGone());
      if (log.outlivesProcess && !isLost) {
        leave();
        return;
      }
    }
    if (outcome.status === 'lost') decided = outcome;
    await finish(await closing.closeUnstored(outcome, decided));
  }

  /** After a full lease without contact, another process may own the turn. */
  function mayBeTaken(): boolean {
    return log.outlivesProcess && !writer.isHeld && canGoOnElsewhere();
  }

  function canGoOnElsewhere(): boolean {
    return Boolean(options.isKept && lease?.session.attach);
  }

  /** Another process owns the turn, or will: its agent goes on where that process can attach to it. */
  function leave(): void {
    if (!canGoOnElsewhere()) stopUpstream(TURN_FENCED);
    letOthersTake();
    // If no process has the turn yet, the next one need not wait for the lease.
    writer.release().catch(() => undefined);
    finished.resolve();
  }

  function letOthersTake(): void {
    if (!go({ type: 'left' })) return;
    unwritten.clear();
    options.onTaken?.();
  }

  async function handOver(): Promise<boolean> {
    if (!isLive(state) || !log.outlivesProcess || !canGoOnElsewhere()) return false;
    // The agent repeats what is not written yet to the process that goes on.
    letOthersTake();
    try {
      await writer.release();
    } catch (error) {
      // Its lease runs out.
      logger?.warn('the turn could not be handed over', { ...ids, error: withoutContent(error) });
    }
    finished.resolve();
    return true;
  }

  async function steer(message: Steer): Promise<void> {
    if (isLive(state) && upstream.canSteer) return upstream.steer(message);
    // Nothing may come before the turn's `start`.
    await queue.whenBegun();
    if (isLive(state)) push([toSteeringRefusal(message)]);
  }

  async function obey(): Promise<void> {
    for await (const command of writer.commands()) {
      if (state.name === 'left') return;
      if (command.type === 'answer') {
        void begun.promise.then(() => {
          if (isLive(state)) questions.answer(command);
        });
      } else if (command.type === 'steer') {
        void begun.promise.then(() => steer(command));
      } else {
        const { reason } = command;
        // The agent of a turn that was taken over is at work: it has to be reached before it can be stopped.
        if (takenOver) await begun.promise;
        stopUpstream();
        if (upstream.isReplica) await within(REPLICA_STOP_MS, over.promise);
        end({ status: 'stopped', ...(reason && { reason }) });
      }
    }
  }

  /** A renewal that failed is tried again; the lease is longer than that. */
  function onRenewError(error: unknown): void {
    if (!isLive(state)) return;
    if (!isFence(error)) {
      logger?.warn('the lease could not be renewed', { ...ids, error });
      // The log has lost the turn.
      if (hasCode(error, LOG_FAILED)) breakOff(LOG_FAILED);
      return;
    }
    if (log.outlivesProcess) {
      leave();
      return;
    }
    stopUpstream(TURN_FENCED);
    end({ status: 'lost' });
  }

  /** Of a turn that was taken over: ends it where nothing can follow what is written. */
  async function readTakenOver({ lastSeq, mark, canAttach }: TakenOver): Promise<Written> {
    const chunks = lastSeq > 0 ? await readWritten(log, turnId, lastSeq) : [];
    for (const chunk of chunks) see(chunk);
    if (chunks.some(({ type }) => type === 'finish' || type === 'error')) {
      settle(outcomeOf(chunks), []);
    } else if (!canAttach) end({ status: 'lost' });
    return { chunks, mark };
  }

  async function start(): Promise<void> {
    const written = takenOver && (await readTakenOver(takenOver));
    if (!isLive(state)) return;
    try {
      const opened = await opening.open();
      if (!isLive(state)) return opened.release();
      lease = opened;
    } catch (error) {
      const outcome = outcomeIn(state);
      if (state.name === 'left' || (outcome && outcome.status !== 'failed')) return;
      logger?.warn('the agent could not be reached', { ...ids, error });
      options.onUnreachable?.();
      return fail(UPSTREAM_UNREACHABLE);
    }
    const { session } = lease;
    if (written && !session.attach) {
      end({ status: 'lost' });
      return;
    }
    try {
      const sink = { event: onEvent, close: (outcome: TurnOutcome) => end(outcome) };
      const turn =
        written && session.attach
          ? session.attach(prompt, sink, written)
          : session.prompt(prompt, sink);
      translator = upstream.take(turn);
      turn.onQueue = queue.change;
      turn.onUnreachable = onAway;
      // It was refused while it was being sent.
      if (!isLive(state)) return upstream.release();
      void Promise.resolve(turn.accepted).then(() => accepted.resolve(outcomeIn(state)));
      clock.restart();
      go({ type: 'begun' });
      begun.resolve();
    } catch (error) {
      logger?.error?.('the prompt could not be sent', { ...ids, error: withoutContent(error) });
      fail(UPSTREAM_DROPPED);
    }
  }

  void obey().catch((error) => {
    logger?.error?.('the commands could not be read', { ...ids, error: withoutContent(error) });
    breakOff(LOG_FAILED);
  });
  void start().catch((error) => {
    logger?.error?.('the turn could not be read', { ...ids, error: withoutContent(error) });
    fail(LOG_FAILED);
  });
  return {
    prompt,
    get messageId() {
      return messageId;
    },
    get lastSeq() {
      return unwritten.lastSeq;
    },
    get isQueued() {
      return upstream.isQueued;
    },
    queue,
    get canWait() {
      return questions.isAsking && lease?.session.waiting !== undefined;
    },
    abandon: (outcome) => end(outcome),
    handOver,
    accepted: accepted.promise,
    done: finished.promise,
  };
}
