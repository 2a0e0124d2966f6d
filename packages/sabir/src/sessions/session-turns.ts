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
import type { OrphanedTurn, TurnInfo, TurnLog, TurnWriter } from '../turns/log.ts';
import { isFence } from '../turns/log-errors.ts';
import { readWritten, toMessage } from '../turns/read-written.ts';
import { runTurn } from '../turns/turn.ts';
import type { FinishedTurn, TakenOver, Turn } from '../turns/turn-options.ts';
import type { User } from '../turns/upstream.ts';
import type { AgentHosts } from './agent-hosts.ts';
import { type Guard, nameOf } from './guard.ts';
import { limitWriter } from './limited-writer.ts';
import type { Clock, SessionLimits, SessionNotice, SessionTiming } from './options.ts';
import { authorOf, createPromptQueue, type QueuedPrompt } from './prompt-queue.ts';
import { isSameChannel, toUserMessage } from './records.ts';
import type { PromptInfo, SessionStorage, StoredPrompt } from './storage.ts';
import { createStoredTurns } from './stored-turns.ts';

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

/** The turn that runs. */
type Current = {
  readonly prompt: PromptInfo;
  readonly user: User;
  /** From when the log has begun the turn. */
  writer?: TurnWriter;
  /** While this process runs the turn. */
  turn?: Turn;
};

const RETRY_MS = 1_000;
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
  /** Ends of turns that may not be stored, to be stored before the next turn begins. */
  #unstored: (() => void)[] = [];
  #stored;
  #callOffWait: (() => void) | undefined;
  #callOffRetry: (() => void) | undefined;
  /** There was something to do, and subscribers do not know that it is done. */
  #isBusy = false;
  #isClosed = false;

  constructor(options: SessionTurnsOptions) {
    this.#options = options;
    const { storage } = options;
    this.#stored = createStoredTurns(options);
    this.queue = createPromptQueue(storage);
    const running = storage.openPrompts().filter(({ status }) => status === 'running');
    // A crash may leave one at most; of more than one only the latest can go on.
    const latest = running.pop();
    for (const prompt of running) {
      this.#storeLater(prompt, this.#stored.toBroken(prompt, SERVER_RESTARTED));
    }
    if (latest) this.#current = { prompt: latest, user: authorOf(latest) };
    this.#isBusy = !this.isIdle;
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
    return !this.#current && this.queue.size === 0 && this.#unstored.length === 0;
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

  /** Nothing of this channel runs or waits, and all that has ended is stored. */
  isQuietIn(channel: Channel): boolean {
    const prompts = [...(this.#current ? [this.#current.prompt] : []), ...this.queue.list()];
    return this.#unstored.length === 0 && !prompts.some((one) => isSameChannel(one, channel));
  }

  add(prompt: StoredPrompt, user: User): void {
    const queued = this.queue.add(prompt, user);
    this.#isBusy = true;
    this.next();
    if (this.queue.positionOf(queued) === 0) return;
    queued.isAnnounced = true;
    this.#options.notify({ type: 'queued', prompt: queued });
  }

  withdraw(queued: QueuedPrompt): void {
    const { storage, clock, notify } = this.#options;
    const { promptId, turnId } = queued;
    const changes = { status: 'ended', outcome: 'withdrawn', endedAt: clock.now() } as const;
    const restored = storage.replacedMessages(promptId);
    storage.transaction(() => {
      storage.updatePrompt(promptId, changes);
      storage.restoreMessages(promptId);
    });
    this.queue.remove(queued);
    this.#settleBegun(turnId, false);
    this.#stopWaiting();
    notify({ type: 'withdrawn', prompt: queued });
    if (restored.length > 0) notify({ type: 'restored', prompt: queued, messages: restored });
    this.next();
  }

  /** Takes the next prompt out of the queue, if there is an agent for it. What cannot be stored is tried again. */
  next(): void {
    const { guard, clock, notify } = this.#options;
    const isDone = guard(() => this.#takeNext());
    this.#callOffRetry?.();
    if (this.#isClosed) return;
    if (!isDone) this.#callOffRetry = clock.after(RETRY_MS, () => this.next());
    if (!this.isIdle || !this.#isBusy) return;
    this.#isBusy = false;
    notify({ type: 'idle' });
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
    const { prompt } = current;
    if (!this.#isOpen(current)) return;
    try {
      if (!current.writer) {
        const begun = await log.begin(this.#stored.toBeginning(prompt));
        if (!('writer' in begun)) return this.#watch(current);
        current.writer = begun.writer;
      }
      if (failure) await this.#callOff(current.writer, current, failure);
      else if (this.#isOpen(current)) this.#run(current, current.writer);
    } catch (error) {
      const { turnId } = prompt;
      logger?.error?.('a turn could not be begun', { sessionId, turnId, error: nameOf(error) });
      if (isFence(error)) this.#watch(current);
      else if (await this.#isTaken(prompt)) this.#giveUp(current);
      else clock.after(RETRY_MS, () => void this.#begin(current, failure));
    }
  }

  /** It is the turn that runs, and this process does not run it yet. */
  #isOpen(current: Current): boolean {
    return this.#current === current && !current.turn && !this.#isClosed;
  }

  /** A gateway has named its turn with the id of a turn of another conversation. */
  async #isTaken(prompt: PromptInfo): Promise<boolean> {
    const known = await this.#options.log.get(prompt.turnId).catch(() => undefined);
    const { sessionId, chatId } = this.#stored.toBeginning(prompt);
    return known !== undefined && (known.sessionId !== sessionId || known.chatId !== chatId);
  }

  #giveUp(current: Current): void {
    this.#end(current, this.#stored.toBroken(current.prompt, LOG_FAILED));
  }

  #run(current: Current, writer: TurnWriter, takenOver?: TakenOver): void {
    const { log, hosts, timing, limits, storage, notify, logger, onLimit } = this.#options;
    const { prompt, user } = current;
    const turn = runTurn({
      log,
      writer: limitWriter(writer, { limits, storedBytes: storage.bytes(), onLimit }),
      prompt: this.#stored.toPrompt(prompt, user, hosts.needsHistory),
      takenOver,
      isKept: true,
      open: async () => ({ session: hosts.session, release: () => undefined }),
      timing: { ...timing, connectMs: Infinity },
      queueBytes: limits.turnBytes,
      store: (finished) => this.#stored.storeEnd(prompt, finished),
      onFinish: (finished) => this.#end(current, finished),
      onTaken: () => this.#leave(current),
      logger,
    });
    current.turn = turn;
    notify({ type: 'begun', prompt });
    this.#settleBegun(prompt.turnId, true);
  }

  #end(current: Current, finished: FinishedTurn): void {
    if (this.#current !== current) return;
    this.#current = undefined;
    const { prompt } = current;
    const { outcome, message, usage } = finished;
    const { hosts, notify } = this.#options;
    this.#storeLater(prompt, finished);
    hosts.ended(prompt.turnId);
    // Another writer may have begun and ended it.
    this.#settleBegun(prompt.turnId, true);
    notify({ type: 'ended', prompt, outcome, message, ...(usage && { usage }) });
    this.next();
  }

  /** The log has the end; the storage may not, where they are on two databases. */
  #storeLater(prompt: PromptInfo, finished: FinishedTurn): void {
    this.#unstored.push(() => {
      if (!this.#stored.isEnded(prompt)) this.#stored.storeEnd(prompt, finished);
    });
  }

  /** The log could not store the turn's end, or has given the turn to another writer. */
  #leave(current: Current): void {
    delete current.turn;
    this.#watch(current);
  }

  /** Looks again in a while after a turn that the log may offer to `adopt`, or end. */
  #watch(current: Current): void {
    this.#options.clock.after(RETRY_MS, () => void this.#look(current));
  }

  /** Ends a turn that no agent was asked for. */
  async #callOff(writer: TurnWriter, current: Current, kind: ErrorKind): Promise<void> {
    const { prompt } = current;
    const { messageId, turnId } = prompt;
    const outcome = { status: 'failed', code: kind.code, message: kind.userMessage } as const;
    const { log, notify } = this.#options;
    const known = await log.get(turnId);
    const written = await readWritten(log, turnId, known?.lastSeq ?? 0);
    // None where an earlier try has written them.
    const closings = closingsOf(written, messageId, outcome);
    await writer.append(closings);
    notify({ type: 'begun', prompt });
    this.#settleBegun(turnId, true);
    const broken = this.#stored.toBroken(prompt, kind);
    const finished = { ...broken, message: toMessage([...written, ...closings], messageId) };
    await writer.close(outcome, () => this.#stored.storeEnd(prompt, finished));
    this.#end(current, finished);
  }

  /** Of a process that ended. */
  async recover(): Promise<void> {
    this.next();
    if (this.#current) await this.#look(this.#current);
  }

  /** A turn that the log still has comes to `adopt`. */
  async #look(current: Current): Promise<void> {
    if (!this.#isOpen(current)) return;
    const { log, logger, sessionId } = this.#options;
    const { prompt } = current;
    const { turnId } = prompt;
    try {
      const known = await log.get(turnId);
      const ended = known?.outcome && (await this.#readEnd(known));
      if (!this.#isOpen(current)) return;
      if (ended) this.#end(current, ended);
      else if (known) this.#watch(current);
      else {
        // The process may have ended before the log had begun it: no agent has the prompt.
        const isNew = log.outlivesProcess && !current.writer && !this.#stored.isGiven(prompt);
        delete current.writer;
        await this.#begin(current, isNew ? undefined : SERVER_RESTARTED);
      }
    } catch (error) {
      logger?.error?.('a turn could not be read', { sessionId, turnId, error: nameOf(error) });
      this.#watch(current);
    }
  }

  async #readEnd({ turnId, messageId, lastSeq, ...turn }: TurnInfo): Promise<FinishedTurn> {
    const { sessionId, chatId, outcome } = turn;
    const message = toMessage(await readWritten(this.#options.log, turnId, lastSeq), messageId);
    return { message, outcome: outcome ?? { status: 'lost' }, sessionId, chatId, turnId };
  }

  /** A turn of this session whose writer is gone, with this prompt. */
  adopt({ turn, mark, writer }: OrphanedTurn, promptId: string): boolean {
    const current = this.#current;
    if (current?.prompt.promptId !== promptId || !this.#isOpen(current)) return false;
    this.#run(current, writer, { lastSeq: turn.lastSeq, mark, canAttach: true });
    current.writer = writer;
    return true;
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
  #isAtRunner(prompt: PromptInfo): boolean {
    let isAtRunner = false;
    this.#options.guard(() => {
      isAtRunner = this.#stored.isGiven(prompt);
    });
    return isAtRunner;
  }
}
