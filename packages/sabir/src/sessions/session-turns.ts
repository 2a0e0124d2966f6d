import {
  type ErrorKind,
  LOG_FAILED,
  RUNNER_ABSENT,
  RUNNER_LOST,
  SERVER_RESTARTED,
  SESSION_FULL,
  TURN_TOO_LARGE,
} from '../core/errors.ts';
import type { Logger } from '../core/translator.ts';
import type { Clients } from './clients.ts';
import type { Guard } from './guard.ts';
import { historyBefore } from './history-before.ts';
import { createOpenQuestions, toAnswerCommand } from './open-questions.ts';
import type {
  Clock,
  SessionAgentOptions,
  SessionLimits,
  SessionSocket,
  SessionTiming,
  SocketEvents,
} from './options.ts';
import { createPromptQueue, type QueuedTurn } from './prompt-queue.ts';
import type { RunnerHello, StatusEvent, TurnEvent } from './protocol.ts';
import { toAbortCommand, toPromptCommand } from './runner-commands.ts';
import { ANOTHER_RUNNER, createRunnerLink } from './runner-link.ts';
import { type Current, endOf, isOfTurn, type RunnerEvent, type TurnEnd } from './runner-says.ts';
import { createRunningTurn, type RunningTurn } from './running-turn.ts';
import type { SessionStorage, StoredQuestion, StoredTurn, TurnInfo } from './storage.ts';
import { createTurnEnds } from './turn-ends.ts';
import { nameOf, toIds, toUserMessage, withoutIds } from './turn-messages.ts';
import { createWaits } from './waits.ts';

type SessionTurnsOptions = {
  sessionId: string;
  storage: SessionStorage;
  clients: Clients;
  clock: Clock;
  guard: Guard;
  timing: SessionTiming;
  limits: SessionLimits;
  onRunnerWanted?: (() => void) | undefined;
  onIdle?: (() => void) | undefined;
  onTurnEnd: SessionAgentOptions['onTurnEnd'] | undefined;
  onLimit: SessionAgentOptions['onLimit'] | undefined;
  logger?: Logger | undefined;
};

/** What is waited for: a runner to come, to come back, to stop; a storage to work again. */
type Wait = 'start' | 'return' | 'abort' | 'storage';

const STORAGE_RETRY_MS = 1_000;

/** The events of so many ended turns are kept, for whoever lost the connection near the end. */
const KEPT_TURNS = 16;

/**
 * The turns of a session, from the queue over the runner to their end, one at a time. Owns the
 * queue, the runner's connection, and the turn that runs.
 */
export class SessionTurns {
  readonly queue;
  readonly questions;
  readonly runner;
  /** What the runner said of its models, for those who come later. */
  models: unknown;
  #options: SessionTurnsOptions;
  #current: Current | undefined;
  /** What the session had stored when the turn that runs began, without that turn. */
  #storedBytes = 0;
  /** The runner that the turn was given to. */
  #givenTo: string;
  #waits;
  #ends;
  #isClosed = false;

  constructor(options: SessionTurnsOptions) {
    const { sessionId, storage, clients, clock, guard, timing } = options;
    this.#options = options;
    const open = storage.openTurns();
    this.queue = createPromptQueue({
      storage,
      clients,
      waiting: open.filter(({ status }) => status === 'queued'),
      reason: () => this.queueReason,
    });
    this.#waits = createWaits<Wait>(clock, guard);
    this.runner = createRunnerLink({ sessionId, storage, logger: options.logger });
    this.#givenTo = this.runner.runnerId;
    this.questions = createOpenQuestions({
      storage,
      clock,
      guard,
      questionMs: timing.questionMs,
      onExpire: (question) => this.#expire(question),
    });
    const { withdraw: withdrawQuestions } = this.questions;
    this.#ends = createTurnEnds({
      storage,
      clients,
      clock,
      withdrawQuestions,
      restore: (turn) => this.#restore(turn),
    });
    this.#recover(open.filter(({ status }) => status === 'running'));
  }

  get running(): RunningTurn | undefined {
    return this.#current?.running;
  }

  /** The end of a turn, as JSON, if it was told but could not be stored yet. */
  unstoredEnd(turnId: string): string | undefined {
    return this.#ends.unstoredEnd(turnId);
  }

  get isIdle(): boolean {
    return !this.#current && this.queue.size === 0;
  }

  /** Takes the next prompt out of the queue, if the runner is free. */
  next(): void {
    this.#orLater(() => {
      this.#ends.storeUnstored();
      this.#takeNext();
    });
  }

  /** What cannot be stored now is tried again. */
  #orLater(run: () => void): void {
    const isDone = this.#options.guard(run);
    if (!isDone) this.#waits.start('storage', STORAGE_RETRY_MS, () => this.next());
  }

  #takeNext(): void {
    const turn = this.queue.first;
    if (!turn) this.#waits.stop('start');
    if (this.#current || !turn || this.#isClosed) return;
    if (!this.runner.isReady) {
      this.#callRunner(turn);
      return;
    }
    this.#takeUp(turn);
    this.#sendPrompt();
  }

  /** Why the first in the queue waits. */
  get queueReason(): 'busy' | 'waking' {
    return this.#current ? 'busy' : 'waking';
  }

  withdraw(turn: QueuedTurn): void {
    const { clock, onIdle } = this.#options;
    this.queue.withdraw(turn, clock.now());
    this.#waits.stop('start');
    this.next();
    if (!this.isIdle) return;
    this.#status({ runnerBusy: false });
    onIdle?.();
  }

  /** Somebody wants the turn that runs to stop. */
  abort(): void {
    const current = this.#current;
    if (!current || current.isAborting) return;
    current.isAborting = true;
    if (!this.runner.isReady) {
      this.#end({ reason: 'canceled' });
      return;
    }
    this.runner.send(toAbortCommand(current));
    this.#waits.start('abort', this.#options.timing.abortMs, () =>
      this.#end({ reason: 'canceled' }),
    );
  }

  answered(question: StoredQuestion): void {
    const { questionId, answer } = question;
    this.#settle({ questionAnswered: questionId, ...(answer !== undefined && { answer }) });
    this.runner.send(toAnswerCommand(question));
  }

  connectRunner(socket: SessionSocket, runnerId: string | undefined): SocketEvents {
    const { clients } = this.#options;
    if (!this.runner.connect(socket, runnerId)) {
      socket.close(ANOTHER_RUNNER, 'another runner is connected to this session');
      return { message: () => undefined, close: () => undefined };
    }
    clients.broadcast({ type: 'status', data: { runnerConnected: true } } satisfies StatusEvent);
    if (this.runner.isReady) this.#ready();
    return {
      message: (frame) => {
        if (this.runner.isCurrent(socket)) this.#options.guard(() => this.#hear(frame));
      },
      close: () => {
        if (this.runner.isCurrent(socket)) this.#options.guard(() => this.#lose());
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#waits.stopAll();
    this.questions.stopWatching();
    this.runner.close(1001, 'the session is closing');
  }

  #hear(frame: string): void {
    const heard = this.runner.read(frame);
    if (heard?.kind === 'hello') this.#greet(heard.event as unknown as RunnerHello);
    else if (heard) {
      if (frame.length <= this.#options.limits.eventBytes) this.#take(heard.kind, heard.event);
      // Said again after a drop, it may be of a turn that has ended.
      else if (heard.kind === 'turn' && this.#isOfCurrent(heard.event)) {
        this.#stopAtLimit('eventBytes');
      }
      this.runner.acknowledgeSoon();
    }
  }

  #isOfCurrent(event: RunnerEvent): boolean {
    return this.#current !== undefined && isOfTurn(event, this.#current, this.runner.isNamed);
  }

  #take(kind: 'turn' | 'about' | 'domain', event: RunnerEvent): void {
    const current = this.#current;
    if (kind === 'domain') {
      if (event.type === 'models') this.models = event.models;
      this.#options.clients.broadcast(event);
    } else if (event.type === 'agentStatus') this.#tellAgentStatus(event);
    else if (current && (kind === 'about' || this.#isOfCurrent(event))) {
      const end = endOf(event, current);
      // One of another make does not say hello: it goes on, or it does not.
      if (end || kind === 'turn') this.#waits.stop('return');
      if (end) this.#end(end);
      else if (kind === 'turn') this.#write(current, event as TurnEvent);
    }
  }

  #write(current: Current, given: TurnEvent): void {
    const { running } = current;
    const event = withoutIds(given);
    if (event.type === 'message.create') {
      if (!running.isCreated) running.push(event);
      return;
    }
    if (!running.isCreated) running.push({ type: 'message.create' });
    if (event.type === 'question') this.questions.ask(event, running);
    else running.push(event);
    const { turnBytes, turnQuestions, sessionBytes } = this.#options.limits;
    if (this.questions.count > turnQuestions) this.#stopAtLimit('turnQuestions');
    else if (running.bytes > turnBytes) this.#stopAtLimit('turnBytes');
    else if (this.#storedBytes + running.bytes > sessionBytes) this.#stopAtLimit('sessionBytes');
  }

  #tellAgentStatus({ type, status, detail }: RunnerEvent): void {
    const { clients } = this.#options;
    const running = this.#current?.running;
    const said = { type, status, ...(typeof detail === 'string' && { detail }) };
    if (running) clients.broadcastIn({ ...said, ...toIds(running) }, running.channel);
    else clients.broadcast(said);
  }

  #greet({ turnId, known, needsHistory }: RunnerHello): void {
    const before = this.#current?.running.turn;
    const isSame = this.#current !== undefined && this.#givenTo === this.runner.runnerId;
    this.runner.greet(needsHistory === true);
    if (before && turnId === before.turnId) this.#goOn();
    else if (before && !isSame) this.#fail(SERVER_RESTARTED);
    else if (before && !known.includes(before.turnId)) {
      this.#waits.stop('return');
      this.#sendPrompt();
    }
    // Else it is over, and what it said last is on its way.
    if (turnId !== null && turnId !== before?.turnId) {
      this.runner.send({ type: 'abort', turnId, messageId: '' });
    }
    this.#ready();
  }

  /** It was only the connection. */
  #goOn(): void {
    const current = this.#current as Current;
    this.#waits.stop('return');
    const { turnId } = current.running.turn;
    for (const question of this.#options.storage.questionsOf(turnId)) {
      if (question.status !== 'open') this.runner.send(toAnswerCommand(question));
    }
    if (current.isAborting) this.runner.send(toAbortCommand(current));
  }

  #ready(): void {
    this.#waits.stop('start');
    this.next();
  }

  #lose(): void {
    this.runner.disconnect();
    const { clients, timing } = this.#options;
    clients.broadcast({ type: 'status', data: { runnerConnected: false } } satisfies StatusEvent);
    if (this.#current?.isAborting) this.#end({ reason: 'canceled' });
    else if (this.#current)
      this.#waits.start('return', timing.runnerGraceMs, () => this.#fail(RUNNER_LOST));
    else this.next();
  }

  /** After a restart: the turn waits for its runner, which may have gone on. */
  #recover(open: TurnInfo[]): void {
    const latest = open.at(-1);
    for (const turn of open) if (turn !== latest) this.#ends.storeBroken(this.#restore(turn));
    if (latest) {
      const { timing, onRunnerWanted } = this.#options;
      this.#current = { running: this.#restore(latest), isAborting: false };
      this.questions.restore(latest.turnId);
      this.#waits.start('return', timing.runnerGraceMs, () => this.#fail(SERVER_RESTARTED));
      onRunnerWanted?.();
    } else this.next();
  }

  #restore({ turnId }: TurnInfo): RunningTurn {
    return this.#createRunning(this.#options.storage.turn(turnId) as StoredTurn, true);
  }

  #createRunning(turn: StoredTurn, isRestored = false): RunningTurn {
    const { storage, clients } = this.#options;
    this.#storedBytes = storage.bytes();
    return createRunningTurn({
      turn,
      storage,
      clients,
      isRestored,
      onStore: () => this.runner.store(),
      onStoreFailed: (error) => this.#failToStore(error),
    });
  }

  #sendPrompt(): void {
    const { running } = this.#current as Current;
    this.#givenTo = this.runner.runnerId;
    const { storage, limits } = this.#options;
    const messages = this.runner.needsHistory ? historyBefore(running, storage, limits) : undefined;
    this.runner.send(toPromptCommand(running, messages));
  }

  /** There is a prompt and nobody to give it to. */
  #callRunner(turn: QueuedTurn): void {
    if (this.#waits.has('start')) return;
    this.#waits.start('start', this.#options.timing.runnerStartMs, () => {
      this.#options.logger?.warn('no runner has come', { sessionId: this.#options.sessionId });
      // It is answered with an error: whoever asked is told, and the history tells it too.
      this.#orLater(() => {
        this.#takeUp(turn);
        this.#fail(RUNNER_ABSENT);
      });
    });
    this.#options.onRunnerWanted?.();
  }

  /** Out of the queue, into the history: from now on it is the turn that runs. */
  #takeUp(queued: QueuedTurn): void {
    const { storage, clients, clock, limits } = this.#options;
    const startedAt = clock.now();
    const turn = storage.turn(queued.turnId) as StoredTurn;
    const message = toUserMessage(turn, startedAt);
    const running = this.#createRunning({ ...turn, status: 'running', startedAt });
    storage.transaction(() => {
      storage.updateTurn(turn.turnId, { status: 'running', startedAt });
      storage.addMessage(message);
      storage.trimEvents(KEPT_TURNS, limits.turnBytes);
      this.runner.store();
    });
    const wasAnnounced = this.queue.take(queued);
    this.#current = { running, isAborting: false };
    clients.broadcastIn({ type: 'message', data: message }, turn);
    if (wasAnnounced) this.queue.tellTaken(queued);
  }

  #expire(question: StoredQuestion): void {
    this.questions.expire(question);
    this.#settle({ questionExpired: question.questionId });
    this.runner.send(toAnswerCommand({ ...question, status: 'expired' }));
  }

  #settle(data: {
    questionAnswered?: string;
    answer?: string | boolean;
    questionExpired?: string;
  }) {
    this.#current?.running.push({ type: 'status', data });
  }

  #fail({ code, userMessage }: ErrorKind): void {
    this.#end({ reason: 'error', error: userMessage, code });
  }

  /** Ends a turn that the runner would go on with. */
  #stopShort(kind: ErrorKind): void {
    if (this.#current) this.runner.send(toAbortCommand(this.#current));
    this.#fail(kind);
  }

  #stopAtLimit(limit: 'eventBytes' | 'turnBytes' | 'turnQuestions' | 'sessionBytes'): void {
    this.#options.onLimit?.(limit);
    this.#stopShort(limit === 'sessionBytes' ? SESSION_FULL : TURN_TOO_LARGE);
  }

  #failToStore(error: unknown): void {
    const { logger, sessionId } = this.#options;
    logger?.error?.('the session could not be stored', { sessionId, error: nameOf(error) });
    this.#stopShort(LOG_FAILED);
  }

  /** Ends the turn that runs: stored and told in one step, whatever ended it. */
  #end(finalize: TurnEnd): void {
    const current = this.#current;
    if (!current) return;
    const { storage, clients, clock, onIdle, onTurnEnd } = this.#options;
    const { running } = current;
    const { turnId } = running.turn;
    this.#current = undefined;
    this.#waits.stop('return');
    this.#waits.stop('abort');
    this.questions.stopWatching();
    if (!running.isCreated) running.push({ type: 'message.create' });
    running.push({ type: 'message.finalize', ...finalize });
    const { reason, error } = finalize;
    onTurnEnd?.(reason);
    try {
      running.finish(() => {
        this.questions.withdraw(turnId);
        storage.addMessage(running.message());
        const ended = { status: 'ended', endedAt: clock.now(), reason } as const;
        storage.updateTurn(turnId, { ...ended, ...(error !== undefined && { error }) });
      });
    } catch (cause) {
      const { logger, sessionId } = this.#options;
      logger?.error?.('the end of a turn could not be stored', { sessionId, error: nameOf(cause) });
      this.#ends.tellUnstored(running);
    }
    const about = toIds(running);
    clients.broadcastIn({ type: 'complete', ...about }, running.channel);
    clients.broadcastIn({ type: 'agentStatus', status: 'idle', ...about }, running.channel);
    if (this.queue.size === 0) this.#status({ runnerBusy: false });
    this.next();
    if (this.isIdle) onIdle?.();
  }

  #status(data: StatusEvent['data']): void {
    this.#options.clients.broadcast({ type: 'status', data } satisfies StatusEvent);
  }
}
