import {
  type ErrorKind,
  LOG_FAILED,
  RUNNER_ABSENT,
  SERVER_RESTARTED,
  SHUTTING_DOWN,
} from '../core/errors.ts';
import type { Channel, Logger } from '../core/translator.ts';
import { within } from '../core/within.ts';
import { closingsOf } from '../turns/closings.ts';
import type { OrphanedTurn, TurnLog, TurnWriter } from '../turns/log.ts';
import { readWritten, toMessage } from '../turns/read-written.ts';
import { runTurn } from '../turns/turn.ts';
import type { FinishedTurn, TakenOver, Turn } from '../turns/turn-options.ts';
import type { Prompt, User } from '../turns/upstream.ts';
import type { AgentHosts } from './agent-hosts.ts';
import { type Guard, nameOf } from './guard.ts';
import { limitWriter } from './limited-writer.ts';
import type { Clock, SessionLimits, SessionNotice, SessionTiming } from './options.ts';
import { authorOf, createPromptQueue, type QueuedPrompt } from './prompt-queue.ts';
import {
  channelKeyOf,
  sessionKeyOf,
  toStoredAnswer,
  toUIMessage,
  toUserMessage,
} from './records.ts';
import type { PromptInfo, SessionStorage, StoredPrompt } from './storage.ts';

export type SessionTurnsOptions = {
  sessionId: string;
  storage: SessionStorage;
  log: TurnLog;
  hosts: AgentHosts;
  clock: Clock;
  guard: Guard;
  timing: SessionTiming;
  limits: SessionLimits;
  notify(notice: SessionNotice): void;
  onLimit(limit: keyof SessionLimits): void;
  errorText: ((error: unknown) => string) | undefined;
  logger: Logger | undefined;
};

/** What the log keeps with a turn, so that its session finds it again. */
export type SessionOrigin = { session: string; promptId: string };

/** The turn that runs. Until the log has begun it, `turn` is undefined. */
type Current = { readonly prompt: PromptInfo; readonly user: User; turn?: Turn };

const PROMPT_ALONE = { historyMessages: 0, historyBytes: 0 };
const STORAGE_RETRY_MS = 1_000;
/** How long `close` waits for a turn to be handed over or ended. */
const LAST_WORDS_MS = 1_000;

/**
 * The turns of a session, from the queue to their end, one at a time. A prompt's row decides whether it was asked; its
 * turn begins in the log when the prompt leaves the queue, and its message is stored in the step that ends the turn.
 */
export class SessionTurns {
  readonly queue;
  #options: SessionTurnsOptions;
  #current: Current | undefined;
  /** By turn id: settles when a turn has begun, or never will. */
  #begun = new Map<string, PromiseWithResolvers<boolean>>();
  /** Ends of turns that the storage refused, to be stored before the next turn begins. */
  #unstored: (() => void)[] = [];
  #callOffWait: (() => void) | undefined;
  #callOffRetry: (() => void) | undefined;
  #isClosed = false;

  constructor(options: SessionTurnsOptions) {
    this.#options = options;
    const { storage } = options;
    this.queue = createPromptQueue(storage);
    const running = storage.openPrompts().filter(({ status }) => status === 'running');
    // A crash may leave one at most; of more than one only the latest can go on.
    const latest = running.pop();
    for (const prompt of running) this.#storeBroken(prompt);
    if (latest) this.#current = { prompt: latest, user: authorOf(latest) };
    options.hosts.onReady = () => this.next();
    options.hosts.onLost = () => {
      if (this.#callOffWait) options.hosts.call();
      this.next();
    };
  }

  get running(): PromptInfo | undefined {
    return this.#current?.prompt;
  }

  get isIdle(): boolean {
    return !this.#current && this.queue.size === 0;
  }

  /** Why the first in the queue waits. */
  get queueReason(): 'busy' | 'waking' {
    return this.#current ? 'busy' : 'waking';
  }

  /** Whether the turn of this prompt has begun in the log; false if it was withdrawn before that. */
  whenBegun({ turnId }: PromptInfo): Promise<boolean> {
    const isWaiting = this.queue.list().some((queued) => queued.turnId === turnId);
    const isOpening = this.#current?.prompt.turnId === turnId && !this.#current.turn;
    if (!isWaiting && !isOpening) return Promise.resolve(true);
    const begun = this.#begun.get(turnId) ?? Promise.withResolvers<boolean>();
    this.#begun.set(turnId, begun);
    return begun.promise;
  }

  add(prompt: StoredPrompt, user: User): void {
    const queued = this.queue.add(prompt, user);
    this.next();
    if (this.queue.positionOf(queued) === 0) return;
    queued.isAnnounced = true;
    this.#options.notify({ type: 'queued', prompt: queued });
  }

  withdraw(queued: QueuedPrompt): void {
    const { storage, clock, notify } = this.#options;
    const { promptId, turnId } = queued;
    const changes = { status: 'ended', outcome: 'withdrawn', endedAt: clock.now() } as const;
    storage.updatePrompt(promptId, changes);
    this.queue.remove(queued);
    this.#settleBegun(turnId, false);
    this.#stopWaiting();
    notify({ type: 'withdrawn', prompt: queued });
    this.next();
    if (this.isIdle) notify({ type: 'idle' });
  }

  /** Takes the next prompt out of the queue, if there is an agent for it. What cannot be stored is tried again. */
  next(): void {
    if (this.#options.guard(() => this.#takeNext())) return;
    this.#callOffRetry?.();
    this.#callOffRetry = this.#options.clock.after(STORAGE_RETRY_MS, () => this.next());
  }

  #takeNext(): void {
    while (this.#unstored[0]) {
      this.#unstored[0]();
      this.#unstored.shift();
    }
    const { hosts } = this.#options;
    const queued = this.queue.first;
    if (!queued) this.#stopWaiting();
    if (this.#current || !queued || this.#isClosed) return;
    if (hosts.isReady) {
      this.#stopWaiting();
      void this.#begin(this.#takeUp(queued));
    } else if (!hosts.isPresent && !this.#callOffWait) {
      this.#waitForRunner(queued);
      hosts.call();
    }
  }

  #waitForRunner(queued: QueuedPrompt): void {
    const { clock, timing, guard, logger, sessionId } = this.#options;
    this.#callOffWait = clock.after(timing.runnerStartMs, () => {
      this.#callOffWait = undefined;
      logger?.warn('no runner has connected in time', { sessionId });
      // The prompt is answered with an error: its author sees it, and so does the history.
      const isTakenUp = guard(() => void this.#begin(this.#takeUp(queued), RUNNER_ABSENT));
      if (!isTakenUp) this.#waitForRunner(queued);
    });
  }

  #stopWaiting(): void {
    this.#callOffWait?.();
    this.#callOffWait = undefined;
  }

  /** Out of the queue, into the history: from now on it is the turn that runs. */
  #takeUp(queued: QueuedPrompt): Current {
    const { storage, clock, notify } = this.#options;
    const { promptId, user } = queued;
    const startedAt = clock.now();
    const message = toUserMessage(storage.prompt(promptId) as StoredPrompt, startedAt);
    storage.transaction(() => {
      storage.updatePrompt(promptId, { status: 'running', startedAt });
      storage.addMessage(message);
    });
    this.queue.remove(queued);
    const { excerpt: _, bytes: __, user: ___, isAnnounced, ...info } = queued;
    const current = { prompt: { ...info, status: 'running' as const, startedAt }, user };
    this.#current = current;
    notify({ type: 'asked', message });
    if (isAnnounced) notify({ type: 'dequeued', prompt: queued });
    return current;
  }

  /** With a `failure`, the turn ends with it before any agent is asked. */
  async #begin(current: Current, failure?: ErrorKind): Promise<void> {
    const { log, clock, logger, sessionId } = this.#options;
    const { turnId } = current.prompt;
    try {
      const begun = await log.begin(this.#toBeginning(current.prompt));
      // If an earlier try has begun it, the log offers its writer when the lease has run out.
      if (!('writer' in begun)) return;
      if (failure) await this.#callOff(begun.writer, current, failure);
      else this.#run(current, begun.writer);
    } catch (error) {
      logger?.error?.('a turn could not be begun', { sessionId, turnId, error: nameOf(error) });
      if (await this.#isTaken(current.prompt)) this.#giveUp(current);
      else if (!this.#isClosed) {
        clock.after(STORAGE_RETRY_MS, () => void this.#begin(current, failure));
      }
    }
  }

  /** A gateway has named its turn with the id of a turn of another conversation. */
  async #isTaken(prompt: PromptInfo): Promise<boolean> {
    const known = await this.#options.log.get(prompt.turnId).catch(() => undefined);
    const { sessionId, chatId } = this.#toBeginning(prompt);
    return known !== undefined && (known.sessionId !== sessionId || known.chatId !== chatId);
  }

  #giveUp(current: Current): void {
    const { prompt } = current;
    this.#options.guard(() => {
      const finished = this.#storeBroken(prompt, LOG_FAILED);
      this.#settleBegun(prompt.turnId, true);
      this.#end(current, finished);
    });
  }

  #toBeginning({ promptId, turnId, messageId, ...channel }: PromptInfo) {
    const { sessionId } = this.#options;
    const origin: SessionOrigin = { session: sessionId, promptId };
    const chatId = channelKeyOf(channel);
    return {
      sessionId: sessionKeyOf(sessionId),
      chatId,
      turnId,
      requestId: promptId,
      messageId,
      origin,
    };
  }

  #run(current: Current, writer: TurnWriter, takenOver?: TakenOver): void {
    const { log, hosts, timing, limits, storage, notify, logger, onLimit } = this.#options;
    const { prompt } = current;
    const turn = runTurn({
      log,
      writer: limitWriter(writer, { limits, storedBytes: storage.bytes(), onLimit }),
      prompt: this.#toPrompt(current),
      takenOver,
      isKept: true,
      open: async () => ({ session: hosts.session, release: () => undefined }),
      timing: { ...timing, connectMs: Infinity },
      queueBytes: limits.turnBytes,
      store: (finished) => this.#storeEnd(prompt, finished),
      onFinish: (finished) => this.#end(current, finished),
      onTaken: () => this.#leave(current),
      logger,
    });
    current.turn = turn;
    notify({ type: 'begun', prompt });
    this.#settleBegun(prompt.turnId, true);
  }

  #toPrompt({ prompt: info, user }: Current): Prompt {
    const { sessionId, storage, hosts, limits, errorText } = this.#options;
    const { promptId, turnId, messageId, channelType, channelId, traceparent } = info;
    const { text, attachments, body } = storage.prompt(promptId) as StoredPrompt;
    const channel: Channel = { channelType, channelId };
    const chatId = channelKeyOf(channel);
    return {
      sessionId,
      chatId,
      chatKey: JSON.stringify([sessionKeyOf(sessionId), chatId]),
      turnId,
      messageId,
      promptId,
      user,
      text,
      attachments,
      body,
      channel,
      messages: this.#historyOf(promptId, channel, hosts.needsHistory ? limits : PROMPT_ALONE),
      ...(traceparent !== undefined && { traceparent }),
      ...(errorText && { errorText }),
    };
  }

  /** What was said in the channel, the prompt last, as far as it fits. */
  #historyOf(
    promptId: string,
    channel: Channel,
    { historyMessages: limit, historyBytes: maxBytes }: typeof PROMPT_ALONE,
  ) {
    const { storage } = this.#options;
    const before = storage.messages({ channel, before: promptId, limit, maxBytes });
    const prompt = storage.prompt(promptId) as StoredPrompt;
    return [...before, toUserMessage(prompt, prompt.askedAt)].map(toUIMessage);
  }

  #storeEnd(prompt: PromptInfo, { message, outcome }: FinishedTurn): void {
    const { storage, clock } = this.#options;
    const endedAt = clock.now();
    const error = outcome.status === 'failed' ? outcome.message : undefined;
    storage.transaction(() => {
      storage.addMessage(toStoredAnswer(message, prompt, outcome));
      const ended = { status: 'ended', endedAt, outcome: outcome.status } as const;
      storage.updatePrompt(prompt.promptId, { ...ended, ...(error !== undefined && { error }) });
    });
  }

  #end(current: Current, finished: FinishedTurn): void {
    const { outcome, message, usage } = finished;
    if (this.#current !== current) return;
    this.#current = undefined;
    const { notify, storage } = this.#options;
    const { prompt } = current;
    // The log has the end, and the storage does not: they are not on one database.
    const isStored = storage.promptInfo('promptId', prompt.promptId)?.status === 'ended';
    if (!isStored) this.#unstored.push(() => this.#storeEnd(prompt, finished));
    notify({ type: 'ended', prompt, outcome, message, ...(usage && { usage }) });
    if (this.#isClosed) return;
    this.next();
    if (this.isIdle) notify({ type: 'idle' });
  }

  /** The log could not store the turn's end, and offers the turn again. */
  #leave(current: Current): void {
    delete current.turn;
  }

  /** Ends a turn that no agent was asked for. */
  async #callOff(writer: TurnWriter, current: Current, kind: ErrorKind): Promise<void> {
    const { prompt } = current;
    const { messageId, turnId } = prompt;
    const outcome = { status: 'failed', code: kind.code, message: kind.userMessage } as const;
    const closings = closingsOf([], messageId, outcome);
    await writer.append(closings);
    this.#options.notify({ type: 'begun', prompt });
    this.#settleBegun(turnId, true);
    const { sessionId, chatId } = this.#toBeginning(prompt);
    const finished = {
      message: toMessage(closings, messageId),
      outcome,
      sessionId,
      chatId,
      turnId,
    };
    await writer.close(outcome, () => this.#storeEnd(prompt, finished));
    this.#end(current, finished);
  }

  /** Of a process that ended. A turn that the log still has comes to `adopt`. */
  async recover(): Promise<void> {
    const current = this.#current;
    if (!current || current.turn) {
      this.next();
      return;
    }
    const { log } = this.#options;
    const known = await log.get(current.prompt.turnId);
    if (known?.outcome) {
      // Its message was not stored: log and storage are two databases, and the process ended in between.
      const { turnId, messageId } = current.prompt;
      const message = toMessage(await readWritten(log, turnId, known.lastSeq), messageId);
      const { sessionId, chatId, outcome } = known;
      const finished = { message, outcome, sessionId, chatId, turnId };
      this.#storeEnd(current.prompt, finished);
      this.#end(current, finished);
    } else if (!known && log.outlivesProcess) await this.#begin(current);
    else if (!known) {
      this.#end(current, this.#storeBroken(current.prompt));
    }
  }

  /** A turn of this session whose writer is gone, with this prompt. */
  adopt({ turn, mark, writer }: OrphanedTurn, promptId: string): boolean {
    const current = this.#current;
    if (current?.prompt.promptId !== promptId || current.turn || this.#isClosed) return false;
    this.#run(current, writer, { lastSeq: turn.lastSeq, mark, canAttach: true });
    return true;
  }

  /** Nothing can go on with it: its message says so. */
  #storeBroken(prompt: PromptInfo, kind = SERVER_RESTARTED): FinishedTurn {
    const { code, userMessage } = kind;
    const outcome = { status: 'failed', code, message: userMessage } as const;
    const { sessionId, chatId, turnId, messageId } = this.#toBeginning(prompt);
    const message = toMessage(closingsOf([], messageId, outcome), messageId);
    const finished = { message, outcome, sessionId, chatId, turnId };
    this.#storeEnd(prompt, finished);
    return finished;
  }

  #settleBegun(turnId: string, hasBegun: boolean): void {
    this.#begun.get(turnId)?.resolve(hasBegun);
    this.#begun.delete(turnId);
  }

  /** Leaves what runs to the next process, or ends it where no other process can go on with it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopWaiting();
    this.#callOffRetry?.();
    for (const turnId of [...this.#begun.keys()]) this.#settleBegun(turnId, false);
    const { turn, prompt } = this.#current ?? {};
    if (!turn || !prompt || (this.#isAtRunner(prompt) && (await turn.handOver()))) return;
    const { code, userMessage: message } = SHUTTING_DOWN;
    turn.abandon({ status: 'failed', code, message });
    await within(LAST_WORDS_MS, turn.done);
  }

  /** An agent in this process ends with it. */
  #isAtRunner({ promptId }: PromptInfo): boolean {
    const { storage, guard } = this.#options;
    let isAtRunner = false;
    guard(() => {
      isAtRunner = storage.promptInfo('promptId', promptId)?.runnerId !== undefined;
    });
    return isAtRunner;
  }
}
