import { toDecision } from '../core/decision.ts';
import {
  CANNOT_STEER,
  MAY_NOT_ANSWER,
  NOT_FOUND,
  NOT_QUEUED,
  PROMPT_TAKEN,
  QUESTION_ANSWERED,
  QUESTION_EXPIRED,
  QUEUE_FULL,
  SabirError,
  SHUTTING_DOWN,
  STILL_ANSWERED,
} from '../core/errors.ts';
import { createId } from '../core/id.ts';
import { mayAnswer } from '../core/roles.ts';
import { toSafeLogger } from '../core/safe-logger.ts';
import { toSteeringChunk } from '../core/steering.ts';
import type { Channel } from '../core/translator.ts';
import { within } from '../core/within.ts';
import type { SessionEvent } from '../turns/agent.ts';
import type { OrphanedTurn, Steer, TurnInfo, TurnLog } from '../turns/log.ts';
import { hasExpired } from '../turns/question.ts';
import type { AskedQuestion } from '../turns/turn-progress.ts';
import { createAgentHosts } from './agent-hosts.ts';
import { systemClock } from './clock.ts';
import { isLargerThan } from './event-size.ts';
import { createGuard } from './guard.ts';
import { createLocalHost, type LocalHost } from './local-host.ts';
import { toNewPrompt } from './new-prompt.ts';
import {
  DEFAULT_LIMITS,
  DEFAULT_TIMING,
  type SessionLimits,
  type SessionNotice,
  type SessionOptions,
  type SessionSocket,
  type SocketEvents,
} from './options.ts';
import { createPeople } from './people.ts';
import { exceededBy, REFUSALS } from './prompt-limits.ts';
import { channelKeyOf, isSameChannel, sessionKeyOf } from './records.ts';
import { findReplacement, findWaiting, isReplacing } from './replacing.ts';
import {
  channelOf,
  checkMayWrite,
  type Done,
  type Member,
  type PromptRequest,
} from './requests.ts';
import { createRunnerHost } from './runner-host.ts';
import { SessionTurns } from './session-turns.ts';
import type { PromptInfo, SessionStorage } from './storage.ts';

/** How long a regenerate or an edit waits for the end of the turn that it replaces. */
export const SETTLE_MS = 5_000;
/** A question of one of so many turns that ended last gets an answer that says so. */
const MOST_RECENT = 16;

/**
 * One session: people, a queue, a history, and turns one after another. It knows no platform and no wire: clock, storage,
 * log and sockets are handed in, and those who show the session to people subscribe to it and read the log.
 */
export class Session {
  readonly sessionId: string;
  readonly storage: SessionStorage;
  readonly log: TurnLog;
  readonly limits: SessionLimits;
  readonly people;
  /** What the agent reported of its models, for those who come later. */
  models: unknown;
  #options: SessionOptions;
  #clock;
  #turns: SessionTurns;
  #runner;
  #local: LocalHost | undefined;
  #subscribers = new Set<(notice: SessionNotice) => void>();
  /** The turns that ended last, by their ids. */
  #recent: string[] = [];
  #guard;
  #isDraining = false;
  #isClosed = false;

  constructor(options: SessionOptions) {
    const { sessionId, storage, log, clock = systemClock, agent } = options;
    const logger = toSafeLogger(options.logger);
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    const timing = { ...DEFAULT_TIMING, ...options.timing };
    this.sessionId = sessionId;
    this.storage = storage;
    this.log = log;
    this.limits = limits;
    this.#options = options;
    this.#clock = clock;
    const guard = createGuard(sessionId, logger);
    this.#guard = guard;
    const notify = (notice: SessionNotice) => this.#notify(notice);
    const onEvent = (event: SessionEvent) => this.#emit(event);
    const onLimit = (limit: keyof SessionLimits) => options.onLimit?.(limit);
    this.people = createPeople({ storage, clock, guard, notify });
    const onReady = () => hosts.onReady();
    const ofHosts = { sessionId, timing, limits, onReady, onEvent, onLimit, logger };
    const runnerOf = (turnId: string) => storage.promptInfo('turnId', turnId)?.runnerId;
    this.#runner = createRunnerHost({
      ...ofHosts,
      clock,
      guard,
      runnerOf,
      isOpen: (turnId) => this.running?.turnId === turnId,
      setRunner: (turnId, runnerId) => {
        const prompt = storage.promptInfo('turnId', turnId);
        if (prompt) storage.updatePrompt(prompt.promptId, { runnerId });
      },
      onConnection(isConnected) {
        notify({ type: 'runner', isConnected });
        if (!isConnected) hosts.onLost();
      },
    });
    const hosts = createAgentHosts({
      runner: this.#runner,
      runnerOf,
      ...(agent && {
        local: () => {
          this.#local = createLocalHost({ ...ofHosts, agent });
          return this.#local;
        },
      }),
      onWanted: () => options.onRunnerWanted?.(),
    });
    const { errorText } = options;
    this.#turns = new SessionTurns({
      sessionId,
      storage,
      log,
      hosts,
      clock,
      guard,
      timing,
      limits,
      notify,
      onLimit,
      errorText,
      logger,
    });
  }

  /** The prompt whose turn runs. */
  get running(): PromptInfo | undefined {
    return this.#turns.running;
  }

  get queue() {
    return this.#turns.queue;
  }

  get queueReason(): 'busy' | 'waking' {
    return this.#turns.queueReason;
  }

  get hasRunner(): boolean {
    return this.#runner.isConnected;
  }

  /** A runner, or the agent in this process, can answer. */
  get isRunnerConnected(): boolean {
    return this.#runner.isConnected || this.#options.agent !== undefined;
  }

  /** Nothing runs and nothing waits. */
  get isIdle(): boolean {
    return this.#turns.isIdle;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Gives the function that ends the subscription. */
  subscribe(subscriber: (notice: SessionNotice) => void): () => void {
    this.#subscribers.add(subscriber);
    return () => void this.#subscribers.delete(subscriber);
  }

  #notify(notice: SessionNotice): void {
    if (notice.type === 'ended') {
      this.#recent = [notice.prompt.turnId, ...this.#recent].slice(0, MOST_RECENT);
    }
    for (const subscriber of this.#subscribers) this.#guard(() => subscriber(notice));
  }

  #emit(event: SessionEvent): void {
    if (event.type === 'models') this.models = event.models;
    this.#notify({ type: 'event', event });
  }

  /** Whether the turn of this prompt has begun in the log; false if it was withdrawn before that. */
  whenBegun(prompt: PromptInfo): Promise<boolean> {
    return this.#turns.whenBegun(prompt);
  }

  /**
   * Before `prompt`, for a request that regenerates or edits: ends what it replaces and what has not ended yet, where this
   * member may replace it, and waits a while for that end. Throws a `SabirError` where the request is refused, and ends
   * nothing then.
   */
  async makeWay(request: PromptRequest, member: Member): Promise<void> {
    const { storage, queue } = this;
    if (this.#findKnown(request, member)) return;
    const channel = this.#checkMayAsk(request, member);
    const isHere = (prompt: PromptInfo) => isSameChannel(prompt, channel);
    const waiting = findWaiting(storage, request, channel);
    if (waiting) {
      // What it replaced comes back, which other prompts of the channel do not expect.
      const isAlone = storage.openPrompts().filter(isHere).length === 1;
      const isMine = waiting.authorId === member.user.id;
      if (isMine && (isAlone || !isReplacing(waiting))) this.withdraw(waiting, member);
      return;
    }
    if (!findReplacement(storage, request, channel, member)) return;
    if (queue.list().some(isHere)) return;
    const { running } = this;
    if (running && isHere(running)) {
      await within(SETTLE_MS, this.stop(running, member, 'replaced'));
    }
    await this.settle(channel);
  }

  /** Resolves when nothing of this channel runs or waits, and all of it is stored; or after `SETTLE_MS`. */
  async settle(channel: Channel): Promise<void> {
    if (this.#turns.isQuietIn(channel)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const unsubscribe = this.subscribe(() => {
      if (this.#isClosed || this.#turns.isQuietIn(channel)) resolve();
    });
    const callOff = this.#clock.after(SETTLE_MS, resolve);
    await promise;
    unsubscribe();
    callOff();
  }

  /** Accepts a prompt, or finds the one that was accepted before. Throws a `SabirError` where it is refused. */
  prompt(request: PromptRequest, member: Member): { prompt: PromptInfo; isNew: boolean } {
    const { storage, log } = this;
    const { user } = member;
    const known = this.#findKnown(request, member);
    if (known) return { prompt: known, isNew: false };
    const channel = this.#checkMayAsk(request, member);
    const { promptId = createId() } = request;
    const replacement = findReplacement(storage, request, channel, member);
    if (replacement && !this.#turns.isQuietIn(channel)) throw new SabirError(STILL_ANSWERED);
    const { turnId = log.createTurnId(sessionKeyOf(this.sessionId), channelKeyOf(channel)) } =
      request;
    const asked = { ...request, promptId, turnId };
    const askedAt = this.#clock.now();
    const prompt = toNewPrompt({ storage, request: asked, channel, user, replacement, askedAt });
    const isFirst = storage.bytes() === 0;
    storage.transaction(() => {
      if (!storage.addPrompt(prompt)) throw new SabirError(PROMPT_TAKEN);
      const [question] = replacement?.messages ?? [];
      if (question) storage.replaceMessages(question.id, promptId);
      if (isFirst) this.people.remember();
    });
    if (replacement) {
      this.#notify({ type: 'replaced', prompt, messages: replacement.messages });
    }
    this.#turns.add(prompt, user);
    return { prompt: this.queue.find(promptId) ?? this.running ?? prompt, isNew: true };
  }

  /** The prompt that the same request asked before. */
  #findKnown({ promptId }: PromptRequest, { user, role }: Member): PromptInfo | undefined {
    checkMayWrite(role);
    const known =
      promptId === undefined ? undefined : this.storage.promptInfo('promptId', promptId);
    if (known && known.authorId !== user.id) throw new SabirError(PROMPT_TAKEN);
    return known;
  }

  /** Gives the channel that a new prompt is for. */
  #checkMayAsk(request: PromptRequest, { user }: Member): Channel {
    if (this.#isDraining || this.#isClosed) throw new SabirError(SHUTTING_DOWN);
    const channel = channelOf(request);
    const exceeded = exceededBy(this, { user, channel, bytes: request.bytes });
    if (!exceeded) return channel;
    this.#options.onLimit?.(exceeded);
    throw new SabirError(REFUSALS[exceeded] ?? QUEUE_FULL);
  }

  /** The prompt with this id, for a member who may see its channel. */
  find(key: 'promptId' | 'turnId' | 'messageId', id: string, { channel }: Member): PromptInfo {
    const prompt = this.storage.promptInfo(key, id);
    if (!prompt || (channel && !isSameChannel(prompt, channel))) throw new SabirError(NOT_FOUND);
    return prompt;
  }

  /** Takes a prompt out of the queue. */
  withdraw({ promptId }: PromptInfo, { user, role }: Member): Done {
    checkMayWrite(role);
    const queued = this.queue.find(promptId);
    if (!queued) throw new SabirError(NOT_QUEUED);
    // What another person has asked is theirs to take back, or an owner's.
    if (queued.authorId !== user.id && role !== 'owner') throw new SabirError(NOT_FOUND);
    this.#turns.withdraw(queued);
    return { turnId: queued.turnId };
  }

  /** Stops the turn of a prompt, or withdraws the prompt if it waits. Undefined where the turn has ended. */
  async stop(prompt: PromptInfo, member: Member, reason?: string): Promise<Done | undefined> {
    checkMayWrite(member.role);
    if (this.queue.find(prompt.promptId)) return this.withdraw(prompt, member);
    const { turnId } = prompt;
    // The log may be about to begin it.
    await this.#turns.whenBegun(prompt);
    const isTaken = await this.log.command(turnId, { type: 'stop', ...(reason && { reason }) });
    return isTaken ? { turnId } : undefined;
  }

  /**
   * The first answer counts. Throws where it comes too late, or is not this member's to give. Agents may use an id again
   * in another turn: where `ofTurn` is known, no other turn is answered.
   */
  async answer(
    questionId: string,
    answer: unknown,
    member: Member,
    ofTurn?: PromptInfo,
  ): Promise<Done> {
    checkMayWrite(member.role);
    const { turn, question } = await this.#findQuestion(questionId, member, ofTurn);
    const { turnId } = turn;
    if (!mayAnswer(question.answerBy, member)) throw new SabirError(MAY_NOT_ANSWER);
    if (question.status === 'answered' || question.isAnswered) {
      throw new SabirError(QUESTION_ANSWERED);
    }
    const isOver = turn.outcome || question.status !== 'open' || hasExpired(question);
    if (isOver) throw new SabirError(QUESTION_EXPIRED);
    const by = { userId: member.user.id, role: member.role };
    const isTaken = await this.log.command(turnId, { type: 'answer', questionId, answer, by });
    if (!isTaken) throw new SabirError(QUESTION_ANSWERED);
    const { approved } = toDecision(answer);
    return { questionId, turnId, ...(question.toolCallId !== undefined && { approved }) };
  }

  /**
   * Gives a message to the turn of a prompt; the log tells whether the agent takes it. False where the turn has ended or has
   * this message already. Rejects with `cannot-steer` where the turn could not hold it.
   */
  async steer(prompt: PromptInfo, message: Steer, { role }: Member): Promise<boolean> {
    checkMayWrite(role);
    if (isLargerThan(this.limits.eventBytes, toSteeringChunk(message))) {
      throw new SabirError(CANNOT_STEER);
    }
    await this.#turns.whenBegun(prompt);
    return this.log.command(prompt.turnId, message);
  }

  async #findQuestion(questionId: string, { channel }: Member, ofTurn?: PromptInfo) {
    const { running } = this;
    const recent = [...(running ? [running.turnId] : []), ...this.#recent];
    for (const turnId of ofTurn ? [ofTurn.turnId] : recent) {
      const turn = await this.log.get(turnId);
      const question = turn?.questions.find((asked) => asked.questionId === questionId);
      const isSeen = !channel || turn?.chatId === channelKeyOf(channel);
      if (turn && question && isSeen) return { turn, question };
    }
    throw new SabirError(NOT_FOUND);
  }

  /** The open questions of the turn that runs. */
  async openQuestions(): Promise<AskedQuestion[]> {
    const turn: TurnInfo | undefined = this.running && (await this.log.get(this.running.turnId));
    return (
      turn?.questions.filter(({ status, isAnswered }) => status === 'open' && !isAnswered) ?? []
    );
  }

  /** A runner's socket was accepted. There is one at a time; `runnerId` tells it from others. */
  connectRunner(socket: SessionSocket, { runnerId }: { runnerId?: string } = {}): SocketEvents {
    return this.#runner.connect(socket, runnerId);
  }

  /** Looks after what an earlier process left. Call it when agents can be reached. */
  recover(): Promise<void> {
    return this.#turns.recover();
  }

  /** Goes on with a turn of this session whose process is gone; false if it is not the one that runs. */
  adopt(orphan: OrphanedTurn, promptId: string): boolean {
    return this.#turns.adopt(orphan, promptId);
  }

  /** Takes no more prompts; what runs goes on. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Leaves what has not ended to the next process that opens the session. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#turns.close();
    this.#runner.close(1001, 'the session is closing');
    await this.#local?.close();
    this.#notify({ type: 'closed' });
    this.#subscribers.clear();
  }
}
