import type { Chunk } from '../core/chunks.ts';
import {
  type ErrorKind,
  LOG_FAILED,
  LOG_UNAVAILABLE,
  SabirError,
  TOOL_SILENT,
  TRANSLATOR_FAILED,
  TURN_FENCED,
  TURN_TOO_LARGE,
  UPSTREAM_DROPPED,
  UPSTREAM_SILENT,
  UPSTREAM_UNREACHABLE,
} from '../core/errors.ts';
import type { UIMessage } from '../core/message.ts';
import { NO_LONGER_NEEDED } from '../core/no-longer-needed.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { monotonicNow, startTimeout, startTimer, steadyNow, type Timer } from '../core/timers.ts';
import type { Translator } from '../core/translator.ts';
import { withoutContent } from '../core/without-content.ts';
import { createChunkTranslator } from '../sources/ai-sdk/translate.ts';
import { createCatchUp, type TakenOver } from './catch-up.ts';
import { closingsOf } from './closings.ts';
import { hasCode, isFence, kindOf, nothingIfLost } from './log-errors.ts';
import { outcomeOf } from './outcome-of.ts';
import { readWritten } from './read-written.ts';
import type { SessionLease } from './session-pool.ts';
import { trackProgress } from './track-progress.ts';
import { createTurnHooks, statsOf } from './turn-hooks.ts';
import type { Turn, TurnOptions } from './turn-options.ts';
import { createTurnQuestions } from './turn-questions.ts';
import { createUnwritten } from './unwritten.ts';
import { createUpstreamCalls } from './upstream-calls.ts';

/** How often a turn looks at its clock, and how long its log may hear nothing of it. */
const TICK_MS = 1_000;
const REOPEN_MS = 200;

/**
 * Opens the upstream, sends the prompt, pushes events through the translator into the writer and
 * obeys commands. Owns the upstream's handle, the timers and the end; whatever happens, the turn
 * ends exactly once and its log is closed.
 */
export function runTurn(options: TurnOptions): Turn {
  const { log, writer, prompt, timing, logger, takenOver } = options;
  const { turnId } = writer;
  const ids = { sessionId: prompt.sessionId, chatId: prompt.chatId, turnId };
  const opening = new AbortController();
  const progress = trackProgress(timing.toolLimitMs);
  const finished = Promise.withResolvers<void>();
  const accepted = Promise.withResolvers<TurnOutcome | undefined>();
  const hooks = createTurnHooks(options, ids);
  // Until the source has one of its own: something must be able to say that it never will.
  let translator: Translator<unknown> = createChunkTranslator({ messageId: prompt.messageId });
  const upstream = createUpstreamCalls(logger, ids);
  let lease: SessionLease | undefined;
  let outcome: TurnOutcome | undefined;
  let messageId = prompt.messageId;
  /** By the monotonic clock: neither a step of the wall clock nor a sleep of this machine is the agent's silence. */
  let lastEventAt = monotonicNow();
  /** The agent has said something since the clock was last read. */
  let isAlive = false;
  let renewedAt = steadyNow();
  /** Not after it has thrown: what closes the turn then follows from what is written. */
  let isTranslating = true;
  const catchUp = createCatchUp(takenOver);
  /** Somebody else writes it from now on. */
  let isTaken = false;
  const questions = createTurnQuestions(progress.questions, {
    answer(answer) {
      lastEventAt = monotonicNow();
      upstream.answer(answer);
    },
    expire: upstream.expire,
  });

  const unwritten = createUnwritten({
    ...{ writer, lastSeq: takenOver?.lastSeq ?? 0, queueBytes: options.queueBytes },
    position: () => catchUp.position,
    onTooMuch(why) {
      if (outcome || isTaken) return;
      if (why === LOG_UNAVAILABLE && mayBeTaken()) onTaken();
      else breakOff(why);
    },
    isOver: () => outcome !== undefined && !isTaken,
    close,
    onError: onLogError,
  });

  function see(chunk: Chunk): void {
    progress.see(chunk);
    if (chunk.type === 'start' && chunk.messageId) messageId = chunk.messageId;
  }

  function push(chunks: Chunk[]): void {
    for (const chunk of chunks) if (chunk.type !== 'text-delta') see(chunk);
    // One that was taken over has begun already.
    const isBegun = takenOver !== undefined && takenOver.lastSeq > 0;
    unwritten.add(isBegun ? chunks.filter(({ type }) => type !== 'start') : chunks);
  }

  /** The application's translator may throw, and the agent's own code calls this. */
  function onEvent(event: unknown): void {
    if (outcome || isTaken) return;
    try {
      translate(event);
    } catch (error) {
      onTranslatorError(error);
      breakOff(TRANSLATOR_FAILED);
    }
  }

  function onTranslatorError(error: unknown): void {
    isTranslating = false;
    logger?.error?.('the translator of the agent failed', { ...ids, error });
  }

  function translate(event: unknown): void {
    const isKnown = catchUp.isKnown(upstream.position);
    const chunks = translator.push(event);
    if (isKnown) {
      onKnownEvent(chunks);
      return;
    }
    // Somebody coming, going or pinging is no sign of life from the agent.
    if (chunks.length > 0) isAlive = true;
    if (translator.ended) settle(outcomeOf(chunks), chunks);
    else push(chunks);
  }

  /** It is in the log already, and was told only so that the translator knows it too. */
  function onKnownEvent(chunks: Chunk[]): void {
    isAlive = true;
    for (const chunk of chunks) see(chunk);
    catchUp.seen();
    if (translator.ended) settle(outcomeOf(chunks), []);
  }

  function end(given: TurnOutcome): void {
    if (outcome || isTaken) return;
    let chunks: Chunk[] = [];
    try {
      // Otherwise what is to be closed follows from what is written, which is read first.
      if (catchUp.isDone && isTranslating) chunks = translator.end(given);
    } catch (error) {
      onTranslatorError(error);
    }
    settle(given, chunks);
  }

  async function closeFromLog(final: TurnOutcome): Promise<void> {
    const chunks = await readWritten(log, turnId, unwritten.lastSeq);
    const closings = closingsOf(chunks, messageId, final);
    if (closings.length > 0) await unwritten.append(closings);
  }

  function fail({ code, userMessage: message }: ErrorKind): void {
    end({ status: 'failed', code, message });
  }

  /** Nobody asked for it: the agent is told why. */
  function breakOff(why: ErrorKind): void {
    stopUpstream(why);
    fail(why);
  }

  /** Never after the end: the agent may be busy with another turn by then. */
  function stopUpstream(why?: ErrorKind): void {
    if (!outcome) upstream.stop(why && new SabirError(why));
  }

  function letGo(): void {
    opening.abort(NO_LONGER_NEEDED);
    late.clear();
    watchdog.clear();
    upstream.release();
    lease?.release();
    catchUp.letGo();
  }

  /** The one place where a turn gets its outcome. */
  function settle(final: TurnOutcome, chunks: Chunk[]): void {
    outcome = final;
    accepted.resolve(final);
    letGo();
    try {
      push(chunks);
    } catch (error) {
      onTranslatorError(error);
    }
    unwritten.flushSoon();
  }

  async function close(): Promise<void> {
    const final = outcome as TurnOutcome;
    if (!catchUp.isDone || !isTranslating) await closeFromLog(final);
    // Read before it is closed: a log that retains nothing has forgotten it afterwards.
    const message = await hooks.readMessage(unwritten.lastSeq, messageId);
    await writer.close(final);
    await tellEnd(final, message);
  }

  async function tellEnd(final: TurnOutcome, message: UIMessage): Promise<void> {
    await hooks.end(final, message, statsOf(translator));
    finished.resolve();
  }

  /** What was refused is not in the log: what closes the turn follows from what is. */
  async function onLogError(error: unknown): Promise<void> {
    const isFenced = isFence(error);
    const kind = kindOf(error);
    const isLeft = isFenced ? log.outlivesProcess : kind === LOG_UNAVAILABLE && mayBeTaken();
    if (isLeft || isTaken) {
      onTaken();
      return;
    }
    const isTooLarge = kind === TURN_TOO_LARGE;
    let final: TurnOutcome = isFenced
      ? { status: 'lost' }
      : { status: 'failed', code: kind.code, message: kind.userMessage };
    stopUpstream(isFenced ? TURN_FENCED : kind);
    if (!outcome) settle(final, []);
    unwritten.clear();
    logger?.error?.(`the turn ended: ${isFenced ? TURN_FENCED.code : kind.code}`, {
      ...ids,
      ...(!isTooLarge && !isFenced && { error: withoutContent(error) }),
    });
    let message: UIMessage | undefined;
    try {
      if (!isFenced) {
        const written = await readWritten(log, turnId, unwritten.lastSeq).catch(nothingIfLost);
        const closings = closingsOf(written, messageId, final);
        if (closings.length > 0) await writer.append(closings);
        // All of it was stored, and only the closing failed.
        else final = outcome ?? final;
        message = await hooks.readMessage(unwritten.lastSeq, messageId);
        await writer.close(final);
      }
    } catch (second) {
      // Its lease runs out, or has: whoever notices ends it.
      if (isFence(second)) final = { status: 'lost' };
      logger?.error?.('the turn could not be closed', { ...ids, error: withoutContent(second) });
      // And tells of it: it is told of once. One that the log has lost is nobody else's.
      const isLost = hasCode(error, LOG_FAILED) && !isFence(second) && (await isGone());
      if (log.outlivesProcess && !isLost) {
        onTaken();
        return;
      }
    }
    await tellEnd(final, message ?? (await hooks.readMessage(unwritten.lastSeq, messageId)));
  }

  async function isGone(): Promise<boolean> {
    try {
      return (await log.get(turnId)) === undefined;
    } catch {
      return false;
    }
  }

  /** Who heard nothing of the log for so long does not stop what another may have gone on with. */
  function mayBeTaken(): boolean {
    return log.outlivesProcess && !writer.isHeld && canGoOnElsewhere();
  }

  function canGoOnElsewhere(): boolean {
    return Boolean(options.isKept && lease?.session.attach);
  }

  /** Whoever has the turn now sees to it: its agent goes on, if they can ask it for the rest. */
  function onTaken(): void {
    if (!isTaken && !canGoOnElsewhere()) stopUpstream(TURN_FENCED);
    if (!isTaken) leaveToOthers();
    // If it is nobody's yet, nobody has to wait.
    writer.release().catch(() => undefined);
    finished.resolve();
  }

  function leaveToOthers(): void {
    isTaken = true;
    accepted.resolve(undefined);
    unwritten.clear();
    letGo();
    options.onTaken?.();
  }

  async function handOver(): Promise<boolean> {
    if (outcome || isTaken || !log.outlivesProcess || !canGoOnElsewhere()) return false;
    // What is not written yet is told again to whoever goes on.
    leaveToOthers();
    try {
      await writer.release();
    } catch (error) {
      // Its lease runs out.
      logger?.warn('the turn could not be handed over', { ...ids, error: withoutContent(error) });
    }
    finished.resolve();
    return true;
  }

  async function obey(): Promise<void> {
    for await (const command of writer.commands()) {
      if (isTaken) return;
      if (command.type === 'answer') {
        // Who took the turn over has to hear of the question first.
        void catchUp.whenDone.then(() => {
          if (!outcome && !isTaken) questions.answer(command);
        });
      } else {
        const { reason } = command;
        await catchUp.whenAttached;
        stopUpstream();
        end({ status: 'stopped', ...(reason && { reason }) });
      }
    }
  }

  const { renewMs } = writer;
  const tickMs = Math.min(TICK_MS, renewMs / 2, Math.max(timing.idleMs / 4, 10));
  const watchdog: Timer = startTimer(tickMs, () => {
    const renewAt = Math.max(unwritten.writtenAt, renewedAt) + renewMs;
    if (steadyNow() >= renewAt) {
      renewedAt = steadyNow();
      writer.renew().catch(onRenewError);
    }
    questions.expireUntil(Date.now());
    const now = monotonicNow();
    // The clock is read once a tick, not once an event.
    if (isAlive || !upstream.isTaken || upstream.isQueued || questions.isAsking) {
      isAlive = false;
      lastEventAt = now;
      return;
    }
    const isToolWorking = progress.tools.size > 0;
    if (now - lastEventAt < (isToolWorking ? timing.toolLimitMs : timing.idleMs)) return;
    breakOff(isToolWorking ? TOOL_SILENT : UPSTREAM_SILENT);
  });

  /** One that was missed is tried again; the lease is longer than that. */
  function onRenewError(error: unknown): void {
    if (outcome || isTaken) return;
    if (!isFence(error)) {
      logger?.warn('the lease could not be renewed', { ...ids, error });
      // It is not there any more.
      if (hasCode(error, LOG_FAILED)) breakOff(LOG_FAILED);
      return;
    }
    if (log.outlivesProcess) {
      onTaken();
      return;
    }
    stopUpstream(TURN_FENCED);
    end({ status: 'lost' });
  }

  const late: Timer = startTimeout(timing.connectMs, () => fail(UPSTREAM_UNREACHABLE));

  /** Whoever takes a turn over may come at a bad moment: it is tried until it is too late. */
  async function open(): Promise<SessionLease> {
    for (;;) {
      try {
        return await options.open(opening.signal);
      } catch (error) {
        if (!takenOver?.canAttach || opening.signal.aborted) throw error;
      }
      await new Promise<void>((resolve) => void startTimeout(REOPEN_MS, resolve));
    }
  }

  /** Of one that was taken over: whether nothing can follow what is written. */
  async function hasEnded({ lastSeq: written, canAttach }: TakenOver): Promise<boolean> {
    const chunks = written > 0 ? await readWritten(log, turnId, written) : [];
    if (chunks.some(({ type }) => type === 'finish' || type === 'error')) {
      if (!outcome) settle(outcomeOf(chunks), []);
    } else if (!canAttach) end({ status: 'lost' });
    return outcome !== undefined;
  }

  async function start(): Promise<void> {
    if (takenOver && (await hasEnded(takenOver))) return;
    try {
      const opened = await open();
      if (outcome || isTaken) return opened.release();
      lease = opened;
    } catch (error) {
      if (isTaken) return;
      if (outcome && outcome.status !== 'failed') return;
      logger?.warn('the agent could not be reached', { ...ids, error });
      options.onUnreachable?.();
      return fail(UPSTREAM_UNREACHABLE);
    } finally {
      late.clear();
    }
    const { session } = lease;
    if (takenOver && !session.attach) {
      end({ status: 'lost' });
      return;
    }
    try {
      const sink = { event: onEvent, close: (final: TurnOutcome) => end(final) };
      const begun =
        takenOver && session.attach ? session.attach(prompt, sink) : session.prompt(prompt, sink);
      translator = upstream.take(begun);
      void Promise.resolve(begun.accepted).then(() => accepted.resolve(outcome));
      lastEventAt = monotonicNow();
      catchUp.attached();
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
    get canWait() {
      return questions.isAsking && lease?.session.waiting !== undefined;
    },
    abandon: end,
    handOver,
    accepted: accepted.promise,
    done: finished.promise,
  };
}
