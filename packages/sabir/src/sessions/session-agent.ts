import type { AuditEvent } from '../core/audit.ts';
import { toDecision } from '../core/decision.ts';
import {
  BODY_TOO_LARGE,
  LOG_FAILED,
  MAY_NOT_ANSWER,
  MAY_ONLY_WATCH,
  NOT_FOUND,
  NOT_QUEUED,
  PROMPT_TAKEN,
  QUEUE_FULL,
  SabirError,
  SESSION_FULL,
  SHUTTING_DOWN,
} from '../core/errors.ts';
import { createId } from '../core/id.ts';
import { mayAnswer } from '../core/roles.ts';
import { toSafeLogger } from '../core/safe-logger.ts';
import type { Channel } from '../core/translator.ts';
import { toClientInit } from './client-init.ts';
import { type Client, type ClientInfo, createClients, isIn, toConnectedUser } from './clients.ts';
import { systemClock } from './clock.ts';
import { createFollows } from './follows.ts';
import { createGuard, type Guard } from './guard.ts';
import {
  DEFAULT_LIMITS,
  DEFAULT_TIMING,
  type SessionAgentOptions,
  type SessionLimits,
  type SessionRole,
  type SessionSocket,
  type SocketEvents,
} from './options.ts';
import type { ClientMessage, RefusalEvent } from './protocol.ts';
import { DEFAULT_CHANNEL, type HeardMessage, readClientMessage } from './read-client-message.ts';
import { SessionTurns } from './session-turns.ts';
import type { StoredTurn, TurnInfo } from './storage.ts';
import { nameOf } from './turn-messages.ts';

type PromptMessage = Extract<ClientMessage, { type: 'prompt' }>;
type AnswerMessage = Extract<ClientMessage, { type: 'answer' }>;

type Done = Partial<Pick<AuditEvent, 'turnId' | 'questionId' | 'approved' | 'code'>>;

/** What is reported of the messages that change something. */
const ACTIONS: ReadonlyMap<string, AuditEvent['action']> = new Map<string, AuditEvent['action']>([
  ['prompt', 'prompt'],
  ['withdraw', 'withdraw'],
  ['abort', 'stop'],
  ['answer', 'answer'],
]);
/** What somebody who may only watch may say. */
const HARMLESS: ReadonlySet<string> = new Set(['ping', 'follow']);

/** Limits of what a session keeps, rather than of what waits. */
const IN_STORAGE: ReadonlySet<string> = new Set(['sessionBytes', 'channels']);

/**
 * One session: the people in it, its runner, its history and its turns. It knows no platform:
 * sockets, clock and storage are handed in.
 *
 * Everything is stored before anybody is told of it, so that what somebody has seen is there after
 * a restart.
 */
export class SessionAgent {
  readonly sessionId: string;
  #options: SessionAgentOptions & Required<Pick<SessionAgentOptions, 'clock'>>;
  #limits;
  #clients;
  #guard: Guard;
  #turns: SessionTurns;
  #follows;
  #isDraining = false;
  #isClosed = false;

  constructor(options: SessionAgentOptions) {
    const { sessionId, storage, clock = systemClock, onRunnerWanted } = options;
    const logger = toSafeLogger(options.logger);
    const { onIdle, onTurnEnd, onLimit } = options;
    this.sessionId = sessionId;
    this.#options = { ...options, clock, ...(logger && { logger }) };
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    const timing = { ...DEFAULT_TIMING, ...options.timing };
    this.#limits = limits;
    const clients = createClients({ limits, clock, onLimit });
    this.#clients = clients;
    const guard = createGuard(sessionId, logger);
    this.#guard = guard;
    this.#turns = new SessionTurns({
      sessionId,
      storage,
      clients,
      clock,
      guard,
      timing,
      limits,
      logger,
      onRunnerWanted,
      onIdle,
      onTurnEnd,
      onLimit,
    });
    this.#follows = createFollows({
      storage,
      clients,
      clock,
      guard,
      unstoredEnd: (turnId) => this.#turns.unstoredEnd(turnId),
    });
  }

  get clientCount(): number {
    return this.#clients.size;
  }

  get isRunnerConnected(): boolean {
    return this.#turns.runner.isConnected;
  }

  get isRunning(): boolean {
    return this.#turns.running !== undefined;
  }

  get queuedPrompts(): number {
    return this.#turns.queue.size;
  }

  /** Nothing runs and nothing waits. */
  get isIdle(): boolean {
    return this.#turns.isIdle;
  }

  /** A client's socket was accepted. What it says, and its end, are to be told to what is given. */
  connectClient(socket: SessionSocket, info: ClientInfo): SocketEvents {
    if (this.#isClosed) {
      socket.close(1001, 'the session is closing');
      return { message: () => undefined, close: () => undefined };
    }
    const client: Client = { ...info, socket, follows: [], held: [], heldBytes: 0 };
    if (!this.#guard(() => this.#welcome(client))) {
      this.#clients.remove(client);
      socket.close(1011, 'the session is out of order');
    }
    return {
      message: (frame) => this.#hear(client, frame),
      close: () => void this.#guard(() => this.#leave(client)),
    };
  }

  #welcome(client: Client): void {
    this.#remember(client);
    const isNew = !this.#clients.has(client.user.id);
    // What a newcomer is told in `init` must not be told again behind it.
    this.#turns.running?.settle();
    const { sessionId } = this;
    const init = toClientInit(client, {
      sessionId,
      storage: this.#options.storage,
      turns: this.#turns,
      clients: this.#clients,
      limits: this.#limits,
      maxMessageBytes: this.#maxMessageBytes(client.role),
    });
    this.#clients.add(client);
    this.#clients.tell(client, init);
    if (isNew) this.#tellPresence('user.joined', client);
  }

  /** A runner's socket was accepted. There is one at a time; `runnerId` tells it from others. */
  connectRunner(socket: SessionSocket, { runnerId }: { runnerId?: string } = {}): SocketEvents {
    return this.#turns.connectRunner(socket, runnerId);
  }

  /** Takes no more prompts; what runs goes on. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Lets everybody go. What has not ended goes on, or is marked as broken, when it is opened again. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#turns.close();
    this.#clients.closeAll(1001, 'the session is closing');
  }

  /** A session without a prompt is not stored, and neither are its visitors. */
  #remember({ user, role }: Client): void {
    const { storage, clock } = this.#options;
    if (storage.bytes() === 0) return;
    const now = clock.now();
    const before = storage.participant(user.id);
    storage.saveParticipant({
      ...toConnectedUser(user),
      role,
      firstSeenAt: before?.firstSeenAt ?? now,
      lastSeenAt: now,
    });
  }

  #leave(client: Client): void {
    this.#clients.remove(client);
    if (this.#isClosed) return;
    if (!this.#clients.has(client.user.id)) this.#tellPresence('user.left', client);
    this.#remember(client);
  }

  #tellPresence(type: 'user.joined' | 'user.left', { user }: Client): void {
    const connectedUsers = this.#clients.users();
    const { id: userId } = user;
    this.#clients.broadcast({ type, userId, userDetails: toConnectedUser(user), connectedUsers });
  }

  #hear(client: Client, frame: string): void {
    // Whoever was let go may still be talking.
    if (this.#isClosed || !this.#clients.includes(client)) return;
    const heard = this.#read(client, frame);
    try {
      if (heard.problem) throw new SabirError(heard.problem);
      const { message } = heard;
      if (client.role === 'viewer' && !HARMLESS.has(message.type)) {
        throw new SabirError(MAY_ONLY_WATCH);
      }
      this.#report(client, message.type, this.#do(client, message, frame.length));
    } catch (error) {
      const { code } = this.#refuse(client, heard.about, error);
      const { refused, promptId: _, ...ids } = heard.about;
      this.#report(client, refused, { ...ids, code });
    }
  }

  /** What a gateway's users do, the gateway reports. */
  #report(client: Client, type: string, done: Done | undefined): void {
    const action = ACTIONS.get(type);
    if (!action || !done || client.isGateway) return;
    const { user, role } = client;
    const outcome = done.code === undefined ? 'accepted' : 'refused';
    const { sessionId } = this;
    this.#options.onAudit?.({
      action,
      outcome,
      userId: user.id,
      role,
      sessionId,
      ...done,
      via: 'socket',
    });
  }

  /** Platforms may check the length before this; here it is checked before the frame is parsed. */
  #read({ role }: Client, frame: string): HeardMessage {
    if (frame.length <= this.#maxMessageBytes(role)) return readClientMessage(frame);
    this.#options.onLimit?.(role === 'viewer' ? 'viewerMessageBytes' : 'promptBytes');
    return { about: { refused: '' }, problem: BODY_TOO_LARGE };
  }

  #maxMessageBytes(role: SessionRole): number {
    const { viewerMessageBytes, promptBytes } = this.#limits;
    return role === 'viewer' ? viewerMessageBytes : promptBytes;
  }

  /** What was done, if it is something to report. */
  #do(client: Client, message: ClientMessage, bytes: number): Done | undefined {
    switch (message.type) {
      case 'prompt':
        return this.#prompt(client, message, bytes);
      case 'withdraw':
        return this.#withdraw(client, message.promptId);
      case 'abort':
        return this.#abort(client, message);
      case 'answer':
        return this.#answer(client, message);
      case 'follow':
        this.#follow(client, message.turnId, message.after ?? 0);
        break;
      case 'ping':
        this.#clients.tell(client, { type: 'pong' });
    }
    return undefined;
  }

  #prompt(client: Client, message: PromptMessage, bytes: number): Done | undefined {
    const { storage } = this.#options;
    const { queue } = this.#turns;
    const { promptId = createId() } = message;
    const known = storage.turnOfPrompt(promptId);
    // An answer's message has an id as well: there is one message of each.
    const isTaken = known ? known.authorId !== client.user.id : storage.turnInfo(promptId);
    if (isTaken) throw new SabirError(PROMPT_TAKEN);
    if (known) {
      this.#tellStanding(client, known);
      return undefined;
    }
    if (this.#isDraining) throw new SabirError(SHUTTING_DOWN);
    const exceeded = this.#exceededBy(client, bytes, channelOf(message));
    if (exceeded) {
      this.#options.onLimit?.(exceeded);
      throw new SabirError(IN_STORAGE.has(exceeded) ? SESSION_FULL : QUEUE_FULL);
    }
    const turn = this.#toTurn(client, promptId, message);
    const isFirst = storage.bytes() === 0;
    storage.transaction(() => {
      if (!storage.addTurn(turn)) throw new SabirError(PROMPT_TAKEN);
      if (isFirst) for (const one of this.#clients.all()) this.#remember(one);
    });
    const queued = queue.add(turn);
    this.#turns.next();
    queue.announce(queued);
    return { turnId: queued.turnId };
  }

  /** The limit that one more prompt of so many bytes would exceed. */
  #exceededBy({ user }: Client, bytes: number, channel: Channel): keyof SessionLimits | undefined {
    const { queue } = this.#turns;
    const { queuedPrompts, queuedPromptsPerUser, queueBytes } = this.#limits;
    if (queue.size >= queuedPrompts) return 'queuedPrompts';
    if (queue.countOf(user.id) >= queuedPromptsPerUser) return 'queuedPromptsPerUser';
    if (queue.bytes + bytes > queueBytes) return 'queueBytes';
    const channels = this.#options.storage.channels();
    const isKnown = channels.some((known) => isIn({ channel }, known));
    if (!isKnown && channels.length >= this.#limits.channels) return 'channels';
    // A prompt is stored twice: as it was asked, and as a message when it is taken up.
    const stored = this.#options.storage.bytes() + queue.bytes + 2 * bytes;
    return stored > this.#limits.sessionBytes ? 'sessionBytes' : undefined;
  }

  #toTurn({ user }: Client, promptId: string, message: PromptMessage): StoredTurn {
    const { storage, clock } = this.#options;
    const { turnId = createId(), content, model, traceparent, attachments = [] } = message;
    const { name } = toConnectedUser(user);
    const isTaken = turnId === promptId || storage.turnInfo(turnId) || storage.turnOfPrompt(turnId);
    return {
      turnId: isTaken ? createId() : turnId,
      promptId,
      status: 'queued',
      content,
      attachments,
      ...(model !== undefined && { model }),
      ...(traceparent !== undefined && { traceparent }),
      authorId: user.id,
      ...(name !== undefined && { authorName: name }),
      askedAt: clock.now(),
      ...channelOf(message),
    };
  }

  /** For whoever sent a prompt again: it was taken, and this is what has become of it. */
  #tellStanding(client: Client, { promptId, turnId, status, reason }: TurnInfo): void {
    const { queue } = this.#turns;
    const queued = queue.find((waiting) => waiting.turnId === turnId);
    if (queued) this.#clients.tell(client, queue.toStanding(queued));
    else if (reason === 'withdrawn') {
      this.#clients.tell(client, { type: 'queue.withdrawn', data: { promptId, turnId } });
    } else {
      const data = { promptKnown: promptId, turnId, turnStatus: status };
      this.#clients.tell(client, { type: 'status', data });
    }
  }

  #withdraw({ user, role }: Client, promptId: string): Done {
    const { storage } = this.#options;
    const turn = this.#turns.queue.find((waiting) => waiting.promptId === promptId);
    if (!turn) throw new SabirError(storage.turnOfPrompt(promptId) ? NOT_QUEUED : NOT_FOUND);
    // What others want to ask is theirs to take back.
    if (turn.authorId !== user.id && role !== 'owner') throw new SabirError(NOT_FOUND);
    this.#turns.withdraw(turn);
    return { turnId: turn.turnId };
  }

  #abort(
    client: Client,
    { turnId, promptId }: { turnId?: string; promptId?: string },
  ): Done | undefined {
    const { storage } = this.#options;
    const { running, queue } = this.#turns;
    const wanted = turnId ?? running?.turn.turnId;
    const isWished = promptId !== undefined || wanted !== undefined;
    if (!isWished) return undefined;
    const turn = promptId ? storage.turnOfPrompt(promptId) : storage.turnInfo(wanted ?? '');
    if (!turn || !isIn(client, turn)) throw new SabirError(NOT_FOUND);
    const waiting = queue.find((queued) => queued.turnId === turn.turnId);
    if (turn.turnId === running?.turn.turnId) {
      this.#turns.abort();
      return { turnId: turn.turnId };
    }
    if (waiting) return this.#withdraw(client, waiting.promptId);
    // Whoever stops what is over may have missed its end.
    this.#tellStanding(client, turn);
    return undefined;
  }

  #answer(client: Client, { questionId, answer, by }: AnswerMessage): Done {
    const { questions } = this.#turns;
    const question = questions.find(questionId);
    const turn = this.#options.storage.turnInfo(question.turnId);
    if (!turn || !isIn(client, turn)) throw new SabirError(NOT_FOUND);
    const { answerBy, callId } = question.event as { answerBy?: unknown; callId?: unknown };
    const who = client.isGateway && by ? { user: { id: by.userId }, role: by.role } : client;
    if (!mayAnswer(answerBy, who)) throw new SabirError(MAY_NOT_ANSWER);
    this.#turns.answered(questions.answer(question, answer));
    const { turnId } = question;
    const { approved } = toDecision(answer);
    return { questionId, turnId, ...(callId !== undefined && { approved }) };
  }

  #follow(client: Client, turnId: string, after: number): void {
    const { storage } = this.#options;
    const turn = storage.turnInfo(turnId);
    if (!turn || !isIn(client, turn)) throw new SabirError(NOT_FOUND);
    const { running } = this.#turns;
    if (running?.turn.turnId === turnId) running.settle();
    this.#follows.add(client, turnId, after, turn.status === 'ended');
  }

  #refuse(
    client: Client,
    about: Omit<RefusalEvent, 'type' | 'code' | 'error'>,
    error: unknown,
  ): SabirError {
    const known = error instanceof SabirError ? error : new SabirError(LOG_FAILED);
    if (known !== error) {
      const { logger } = this.#options;
      logger?.error?.('a request failed', { sessionId: this.sessionId, error: nameOf(error) });
    }
    const { code, userMessage } = known;
    this.#clients.tell(client, { type: 'error', ...about, code, error: userMessage });
    return known;
  }
}

function channelOf({ channelType, channelId }: Partial<Channel>): Channel {
  return {
    channelType: channelType ?? DEFAULT_CHANNEL.channelType,
    channelId: channelId ?? DEFAULT_CHANNEL.channelId,
  };
}
