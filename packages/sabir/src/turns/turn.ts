import type { Chunk } from '../chunks.ts';
import {
  type ErrorKind,
  LOG_FAILED,
  SabirError,
  TOOL_SILENT,
  TURN_FENCED,
  TURN_TOO_LARGE,
  UPSTREAM_DROPPED,
  UPSTREAM_FLOOD,
  UPSTREAM_SILENT,
  UPSTREAM_UNREACHABLE,
} from '../errors.ts';
import { foldChunks } from '../fold.ts';
import type { UIMessage } from '../message.ts';
import type { TurnOutcome, Usage } from '../outcome.ts';
import { createChunkTranslator } from '../sources/chunks/translate.ts';
import type { Logger, Translator, TranslatorStats } from '../translator.ts';
import { chunkBytes } from './chunk-bytes.ts';
import type { AnyTurnLog, TurnLog, TurnWriter } from './log.ts';
import { closingsOf } from './lost.ts';
import { outcomeOf } from './outcome-of.ts';
import type { SessionLease } from './session-pool.ts';
import { afterThisTick, startTimeout, startTimer, type Timer } from './timers.ts';
import { trackProgress } from './track-progress.ts';
import { createTurnQuestions } from './turn-questions.ts';
import type { Prompt, UpstreamTurn } from './upstream.ts';
import { withoutContent } from './without-content.ts';

export type TurnTiming = {
  /** How long the agent may take to be reached. */
  connectMs: number;
  /** How long it may say nothing. Does not run while the prompt is queued or a question is open. */
  idleMs: number;
  /** How long it may say nothing while a tool works. */
  toolLimitMs: number;
};

export type FinishedTurn = {
  message: UIMessage;
  outcome: TurnOutcome;
  usage?: Usage;
  sessionId: string;
  chatId: string;
  turnId: string;
};

export type TurnOptions<Log extends AnyTurnLog = TurnLog> = {
  log: Log;
  writer: TurnWriter;
  prompt: Prompt;
  open(signal: AbortSignal): Promise<SessionLease>;
  timing: TurnTiming;
  /** How much may wait for a slow log. */
  queueBytes: number;
  /** The agent could not be reached. */
  onUnreachable?: () => void;
  /** Runs once, after the end, viewers or none. */
  onFinish?: ((turn: FinishedTurn) => unknown) | undefined;
  /** Runs once, before `onFinish`. */
  onEnd?: (outcome: TurnOutcome, stats: TranslatorStats) => void;
  logger?: Logger | undefined;
};

/** One run of an agent, from the prompt to its one outcome. */
export interface Turn {
  readonly prompt: Prompt;
  /** The id its message has; the source may name another than the prompt's. */
  readonly messageId: string;
  /** The highest number that its log has confirmed; 0 while there is none. */
  readonly lastSeq: number;
  /** It waits for an answer, and whoever keeps it can go on with it another time. */
  readonly canWait: boolean;
  /** Why it says nothing: somebody has to answer, or others come first. */
  readonly waitsFor: 'an answer' | 'others' | undefined;
  /** It has asked for something, whatever came of that. */
  readonly hasAsked: boolean;
  /** Ends it here; the agent behind it is not told to stop. */
  abandon(outcome: TurnOutcome): void;
  /** Settles when everything is written and `onFinish` has run. */
  readonly done: Promise<void>;
}

/** How often a turn looks at its clock, and how long its log may hear nothing of it. */
const TICK_MS = 1_000;
const RENEW_MS = 2_000;

/**
 * Opens the upstream, sends the prompt, pushes events through the translator into the writer and
 * obeys commands. Owns the upstream's handle, the timers and the end; whatever happens, the turn
 * ends exactly once and its log is closed.
 */
export function runTurn(options: TurnOptions<AnyTurnLog>): Turn {
  const { log, writer, prompt, timing, logger } = options;
  const { turnId } = writer;
  const ids = { sessionId: prompt.sessionId, chatId: prompt.chatId, turnId };
  const opening = new AbortController();
  const progress = trackProgress(timing.toolLimitMs);
  const finished = Promise.withResolvers<void>();
  // Until the source has one of its own: something must be able to say that it never will.
  let translator: Translator<unknown> = createChunkTranslator({ messageId: prompt.messageId });
  let upstream: UpstreamTurn | undefined;
  let lease: SessionLease | undefined;
  let outcome: TurnOutcome | undefined;
  let messageId = prompt.messageId;
  let lastSeq = 0;
  let pending: Chunk[] = [];
  let pendingBytes = 0;
  let isScheduled = false;
  let isWriting = false;
  let lastEventAt = Date.now();
  /** The agent has said something since the clock was last read. */
  let isAlive = false;
  let lastWriteAt = lastEventAt;
  let hasAsked = false;
  const questions = createTurnQuestions(progress.questions, {
    answer(answer) {
      lastEventAt = Date.now();
      tell('answer', () => upstream?.answer(answer));
    },
    expire: (questionId) => tell('expire', () => upstream?.expire?.(questionId)),
  });

  function push(chunks: Chunk[]): void {
    for (const chunk of chunks) {
      pending.push(chunk);
      if (chunk.type === 'text-delta') continue;
      progress.see(chunk);
      hasAsked ||= chunk.type === 'data-question' || chunk.type === 'tool-approval-request';
      if (chunk.type === 'start' && chunk.messageId) messageId = chunk.messageId;
    }
    // Only a log that is slower than the agent lets anything pile up.
    if (isWriting) {
      for (const chunk of chunks) pendingBytes += chunkBytes(chunk);
      if (pendingBytes > options.queueBytes && !outcome) {
        breakOff(UPSTREAM_FLOOD);
      }
      return;
    }
    if (isScheduled || pending.length === 0) return;
    isScheduled = true;
    afterThisTick(flush);
  }

  /** Everything of one tick in one write. */
  async function flush(): Promise<void> {
    isScheduled = false;
    isWriting = true;
    try {
      while (pending.length > 0) {
        const chunks = pending;
        pending = [];
        pendingBytes = 0;
        lastWriteAt = Date.now();
        lastSeq = await writer.append(chunks);
      }
      isWriting = false;
      if (outcome) await close(outcome);
    } catch (error) {
      await onLogError(error);
    }
  }

  function onEvent(event: unknown): void {
    if (outcome) return;
    const chunks = translator.push(event);
    // Somebody coming, going or pinging is no sign of life from the agent.
    if (chunks.length > 0) isAlive = true;
    if (translator.ended) settle(outcomeOf(chunks), chunks);
    else push(chunks);
  }

  function end(given: TurnOutcome): void {
    if (!outcome) settle(given, translator.end(given));
  }

  function fail({ code, userMessage: message }: ErrorKind): void {
    end({ status: 'failed', code, message });
  }

  /** Nobody asked for it: the agent is told why. */
  function breakOff(why: ErrorKind): void {
    stopUpstream(why);
    fail(why);
  }

  /** An agent that fails at what it is told does not keep its turn from ending. */
  function tell(what: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      logger?.error?.(`the agent could not be told: ${what}`, {
        ...ids,
        error: withoutContent(error),
      });
    }
  }

  /** Never after the end: the agent may be busy with another turn by then. */
  function stopUpstream(why?: ErrorKind): void {
    if (!outcome) tell('stop', () => upstream?.stop(why && new SabirError(why)));
  }

  /** The one place where a turn gets its outcome. */
  function settle(final: TurnOutcome, chunks: Chunk[]): void {
    outcome = final;
    opening.abort();
    late.clear();
    watchdog.clear();
    tell('release', () => upstream?.release());
    lease?.release();
    push(chunks);
    if (!isScheduled && !isWriting) {
      isScheduled = true;
      afterThisTick(flush);
    }
  }

  async function close(final: TurnOutcome): Promise<void> {
    // Read before it is closed: a log that retains nothing has forgotten it afterwards.
    const message = await readMessage();
    await writer.close(final);
    await tellEnd(final, message);
  }

  async function tellEnd(final: TurnOutcome, message: UIMessage): Promise<void> {
    const usage = final.status === 'finished' ? final.usage : undefined;
    await complain('onEnd', () => options.onEnd?.(final, translator.stats));
    await complain('onFinish', () =>
      options.onFinish?.({ message, outcome: final, ...(usage && { usage }), ...ids }),
    );
    finished.resolve();
  }

  async function complain(hook: string, run: () => unknown): Promise<void> {
    try {
      await run();
    } catch (error) {
      logger?.error?.(`${hook} threw`, { ...ids, error: withoutContent(error) });
    }
  }

  async function readChunks(): Promise<Chunk[]> {
    // Whoever reads a live turn that has nothing waits until it has. A log may have stored what it
    // did not confirm, so it is asked if it can be.
    if (!(log.get ? (await log.get(turnId))?.lastSeq : lastSeq)) return [];
    const reading = new AbortController();
    // The first batch is all there is; nothing is written meanwhile.
    for await (const batch of log.read(turnId, 0, reading.signal)) {
      return batch.map(({ chunk }) => chunk);
    }
    return [];
  }

  /** For `onFinish`, which runs also when the log cannot be read: then nothing of it is known. */
  async function readMessage(): Promise<UIMessage> {
    let chunks: Chunk[] = [];
    try {
      if (options.onFinish) chunks = await readChunks();
    } catch (error) {
      logger?.error?.('the turn could not be read', { ...ids, error: withoutContent(error) });
    }
    return foldChunks(chunks.length > 0 ? chunks : [{ type: 'start', messageId }]);
  }

  /** What was refused is not in the log: what closes the turn follows from what is. */
  async function onLogError(error: unknown): Promise<void> {
    const isFenced = isFence(error);
    const isTooLarge = error instanceof SabirError && error.code === TURN_TOO_LARGE.code;
    const kind = isTooLarge ? TURN_TOO_LARGE : LOG_FAILED;
    let final: TurnOutcome = isFenced
      ? { status: 'lost' }
      : { status: 'failed', code: kind.code, message: kind.userMessage };
    stopUpstream(isFenced ? TURN_FENCED : kind);
    if (!outcome) settle(final, []);
    pending = [];
    logger?.error?.(`the turn ended: ${isFenced ? TURN_FENCED.code : kind.code}`, {
      ...ids,
      ...(!isTooLarge && !isFenced && { error: withoutContent(error) }),
    });
    let message: UIMessage | undefined;
    try {
      if (!isFenced) {
        const closings = closingsOf(await readChunks(), messageId, final);
        if (closings.length > 0) await writer.append(closings);
        // All of it was stored, and only the closing failed.
        else final = outcome ?? final;
        message = await readMessage();
        await writer.close(final);
      }
    } catch (second) {
      // Its lease runs out, or has: whoever notices ends it.
      if (isFence(second)) final = { status: 'lost' };
      logger?.error?.('the turn could not be closed', { ...ids, error: withoutContent(second) });
    }
    isWriting = false;
    await tellEnd(final, message ?? (await readMessage()));
  }

  async function obey(): Promise<void> {
    for await (const command of writer.commands()) {
      if (command.type === 'answer') questions.answer(command);
      else {
        const { reason } = command;
        stopUpstream();
        end({ status: 'stopped', ...(reason && { reason }) });
      }
    }
  }

  const watchdog: Timer = startTimer(Math.min(TICK_MS, Math.max(timing.idleMs / 4, 10)), () => {
    const now = Date.now();
    if (now - lastWriteAt >= RENEW_MS) {
      lastWriteAt = now;
      writer.renew().catch(onRenewError);
    }
    questions.expireUntil(now);
    // The clock is read once a tick, not once an event.
    if (isAlive || !upstream || upstream.isQueued || questions.isAsking) {
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
    if (outcome) return;
    if (!isFence(error)) {
      logger?.warn('the lease could not be renewed', { ...ids, error });
      return;
    }
    stopUpstream(TURN_FENCED);
    end({ status: 'lost' });
  }

  const late: Timer = startTimeout(timing.connectMs, () => fail(UPSTREAM_UNREACHABLE));

  async function start(): Promise<void> {
    try {
      const opened = await options.open(opening.signal);
      if (outcome) return opened.release();
      lease = opened;
    } catch (error) {
      if (outcome && outcome.status !== 'failed') return;
      logger?.warn('the agent could not be reached', { ...ids, error });
      options.onUnreachable?.();
      return fail(UPSTREAM_UNREACHABLE);
    } finally {
      late.clear();
    }
    try {
      upstream = lease.session.prompt(prompt, {
        event: onEvent,
        close: (final) => end(final),
      });
      translator = upstream.translator;
      lastEventAt = Date.now();
    } catch (error) {
      logger?.error?.('the prompt could not be sent', { ...ids, error: withoutContent(error) });
      fail(UPSTREAM_DROPPED);
    }
  }

  void obey().catch((error) => {
    logger?.error?.('the commands could not be read', { ...ids, error: withoutContent(error) });
    breakOff(LOG_FAILED);
  });
  void start();
  return {
    prompt,
    get messageId() {
      return messageId;
    },
    get lastSeq() {
      return lastSeq;
    },
    get canWait() {
      return questions.isAsking && lease?.session.waiting !== undefined;
    },
    get waitsFor() {
      return upstream?.isQueued ? 'others' : questions.isAsking ? 'an answer' : undefined;
    },
    get hasAsked() {
      return hasAsked;
    },
    abandon: end,
    done: finished.promise,
  };
}

function isFence(error: unknown): boolean {
  return error instanceof SabirError && error.code === TURN_FENCED.code;
}
