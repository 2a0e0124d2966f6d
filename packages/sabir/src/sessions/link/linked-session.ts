import type { Chunk } from '../../core/chunks.ts';
import {
  NO_HISTORY,
  SabirError,
  UPSTREAM_DROPPED,
  UPSTREAM_UNREACHABLE,
} from '../../core/errors.ts';
import type { UIMessage } from '../../core/message.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import { steadyNow } from '../../core/timers.ts';
import type { Channel, Translator } from '../../core/translator.ts';
import { within } from '../../core/within.ts';
import { NamedTimers } from '../../sources/agent-ops/named-timers.ts';
import type { Socket, SocketListener } from '../../sources/agent-ops/socket.ts';
import type { Answer, Steer } from '../../turns/log.ts';
import type {
  Prompt,
  TurnSink,
  UpstreamSession,
  UpstreamTurn,
  User,
  Written,
} from '../../turns/upstream.ts';
import { type LinkEvent, type LinkRequest, readLinkEvent } from './protocol.ts';
import { createReplicaTranslator } from './replica-translator.ts';

export type LinkedSessionOptions = {
  channel: Channel;
  pingMs: number;
  /** How long the server may be away before its turns are reported as unreachable, again and again. */
  returnMs: number;
  /** How long it may be away before its turns end here. */
  giveUpMs: number;
  historyMs: number;
  /** Opens another connection to the same session. */
  connect(listener: SocketListener, signal: AbortSignal): Promise<Socket>;
};

type Turn = {
  readonly prompt: Prompt;
  readonly channel: Channel;
  readonly sink: TurnSink;
  readonly translator: Translator<unknown>;
  readonly upstream: UpstreamTurn & { queuePosition?: number };
  /** The number of the last chunk that the sink got. */
  seq: number;
  /** Given while the turn runs; sent again after a drop, since the first one counts. */
  readonly answers: Answer[];
  readonly steers: Steer[];
  /** The server has answered the prompt. */
  readonly accepted: PromiseWithResolvers<void>;
  isQueued: boolean;
  isClosed: boolean;
};

const DROPPED: TurnOutcome = {
  status: 'failed',
  code: UPSTREAM_DROPPED.code,
  message: UPSTREAM_DROPPED.userMessage,
};
const WITHDRAWN: TurnOutcome = { status: 'stopped', reason: 'withdrawn' };
/** How long to wait before connecting again, twice as long each time. */
const LEAST_RETRY_MS = 100;
const MOST_RETRY_MS = 2_000;
/** A server that drops us so often before it has sent anything new will go on doing so. */
const MOST_ATTEMPTS = 12;

/**
 * The prompts of one identity on a session server elsewhere. All of them can be under way at once: the server queues.
 * When the connection drops, it is opened again, and each turn goes on behind the last chunk that has come: the server
 * numbers and ends the turns, so that one that cannot be reached ends none of them, for a long while.
 */
export class LinkedSession implements UpstreamSession, SocketListener {
  #options: LinkedSessionOptions;
  #socket: Socket | undefined;
  /** By turn id. */
  #turns = new Map<string, Turn>();
  #channels = new Map<string, Channel>();
  #timers = new NamedTimers<'ping' | 'retry' | 'unreachable' | 'give-up'>();
  /** Turns whose stop the server has not confirmed, also those that were released. */
  #stopping = new Set<string>();
  #histories = new Map<number, PromiseWithResolvers<UIMessage[]>>();
  #lastHistory = 0;
  #unanswered = 0;
  /** Connections since the last one that lasted or brought anything new. */
  #attempts = 0;
  #connectedAt = 0;
  /** When the connection dropped that no lasting one, and nothing new, has followed. */
  #lostAt: number | undefined;
  #closing = new AbortController();
  /** As the server says: a longer message would cost the connection. */
  #maxMessageBytes = Infinity;

  constructor(options: LinkedSessionOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  get isBusy(): boolean {
    return !this.isClosed && this.#stopping.size > 0;
  }

  /** There is a connection, the first or another one. */
  connected(socket: Socket): void {
    if (this.isClosed) {
      socket.close();
      return;
    }
    this.#socket = socket;
    this.#connectedAt = steadyNow();
    this.#unanswered = 0;
    this.#timers.clear('unreachable');
    this.#timers.clear('give-up');
    this.#timers.repeat('ping', this.#options.pingMs, () => this.#ping());
    for (const turn of this.#turns.values()) this.#ask(turn);
    for (const turnId of this.#stopping) this.#send({ type: 'stop', turnId });
  }

  #send(request: LinkRequest): void {
    this.#socket?.send(request);
  }

  channels(): Channel[] {
    return [...this.#channels.values()];
  }

  async history(_user: User, channel: Channel = this.#options.channel): Promise<UIMessage[]> {
    if (!this.#socket) throw new SabirError(UPSTREAM_UNREACHABLE);
    const id = ++this.#lastHistory;
    const asked = Promise.withResolvers<UIMessage[]>();
    this.#histories.set(id, asked);
    this.#send({ type: 'history', id, channel });
    try {
      return await within(this.#options.historyMs, asked.promise, () => {
        throw new SabirError(NO_HISTORY, 'The session server took too long to send its history.');
      });
    } finally {
      this.#histories.delete(id);
    }
  }

  prompt(prompt: Prompt, sink: TurnSink): UpstreamTurn {
    return this.#begin(prompt, sink, []);
  }

  attach(prompt: Prompt, sink: TurnSink, { chunks }: Written): UpstreamTurn {
    return this.#begin(prompt, sink, chunks);
  }

  #begin(prompt: Prompt, sink: TurnSink, written: readonly Chunk[]): UpstreamTurn {
    const { turnId, messageId, channel = this.#options.channel } = prompt;
    const translator = createReplicaTranslator(messageId, written);
    const accepted = Promise.withResolvers<void>();
    const isWaiting = () => turn.isQueued || (turn.seq === 0 && this.#isBehindAnother(turn));
    const turn: Turn = {
      prompt,
      channel,
      sink,
      translator,
      upstream: {
        translator,
        accepted: accepted.promise,
        get isQueued() {
          return isWaiting();
        },
        get position() {
          return turn.seq;
        },
        stop: () => this.#stop(turn),
        isReplica: true,
        answer: (answer) => {
          turn.answers.push(answer);
          this.#sendAnswer(turnId, answer);
        },
        steer: (message) => {
          turn.steers.push(message);
          this.#sendSteer(turnId, message);
        },
        // No `expire`: the server keeps the time of its questions, and its chunks say that they have expired.
        release: () => this.#release(turn),
      },
      // The replica has the session's own numbers.
      seq: written.length,
      answers: [],
      steers: [],
      accepted,
      isQueued: false,
      isClosed: false,
    };
    if (this.isClosed) queueMicrotask(() => this.#close(turn, DROPPED));
    else {
      const before = this.#turns.get(turnId);
      if (before) this.#close(before, DROPPED);
      this.#turns.set(turnId, turn);
      this.#ask(turn);
    }
    return turn.upstream;
  }

  /** Before the server has answered, a turn that was sent earlier comes first. */
  #isBehindAnother(turn: Turn): boolean {
    const [first] = this.#turns.values();
    return this.#turns.get(turn.prompt.turnId) === turn && first !== turn;
  }

  /** Also after a drop: the server knows what it has been asked, and goes on behind `after`. */
  #ask(turn: Turn): void {
    const { prompt, channel, seq: after, answers, steers } = turn;
    const { turnId, messageId, text, attachments, body, traceparent } = prompt;
    const { trigger, replaces, userMessage } = prompt;
    const request: LinkRequest = {
      type: 'prompt',
      turnId,
      messageId,
      channel,
      text,
      attachments,
      body,
      ...(traceparent !== undefined && { traceparent }),
      ...(trigger && { trigger }),
      ...(replaces !== undefined && { replaces }),
      ...(userMessage?.id && { userMessageId: userMessage.id }),
      after,
    };
    const message = JSON.stringify(request);
    if (isLonger(message, this.#maxMessageBytes)) {
      queueMicrotask(() => this.#close(turn, TOO_LARGE));
      return;
    }
    this.#socket?.send(message);
    for (const answer of answers) this.#sendAnswer(turnId, answer);
    for (const message of steers) this.#sendSteer(turnId, message);
  }

  #sendAnswer(turnId: string, { questionId, answer, by }: Answer): void {
    this.#send({ type: 'answer', turnId, questionId, answer, ...(by && { by }) });
  }

  /** One that is too long for the server is not sent: the turn ends without it, and it can be asked as a prompt. */
  #sendSteer(turnId: string, message: Steer): void {
    const frame = JSON.stringify({ type: 'steer', turnId, message } satisfies LinkRequest);
    if (!isLonger(frame, this.#maxMessageBytes)) this.#socket?.send(frame);
  }

  close(): void {
    this.#end(DROPPED);
  }

  event(value: unknown): void {
    this.#unanswered = 0;
    const event = readLinkEvent(value);
    switch (event?.type) {
      case 'init':
        this.#maxMessageBytes = event.maxMessageBytes;
        for (const { channelType, channelId } of event.channels) {
          this.#channels.set(JSON.stringify([channelType, channelId]), { channelType, channelId });
        }
        break;
      case 'accepted':
        this.#accepted(event.turnId);
        break;
      case 'stopped':
        this.#stopping.delete(event.turnId);
        break;
      case 'history':
        this.#histories.get(event.id)?.resolve(event.messages);
        break;
      case 'refused':
      case 'queue':
      case 'withdrawn':
      case 'chunks':
      case 'gone':
        this.#takeTurnEvent(event);
    }
  }

  #accepted(turnId: string): void {
    const turn = this.#turns.get(turnId);
    if (!turn) return;
    turn.accepted.resolve();
    // A `queue` follows where it waits; before a drop it may have waited.
    turn.isQueued = false;
  }

  #takeTurnEvent(event: Extract<LinkEvent, { turnId: string }>): void {
    const turn = this.#turns.get(event.turnId);
    if (!turn) return;
    switch (event.type) {
      case 'refused': {
        const { code, error: message } = event;
        this.#close(turn, { status: 'failed', code, message });
        break;
      }
      case 'queue':
        turn.isQueued = event.position > 0;
        turn.upstream.queuePosition = event.position;
        turn.upstream.onQueue?.();
        break;
      case 'withdrawn':
        this.#close(turn, WITHDRAWN);
        break;
      case 'gone':
        this.#close(turn, DROPPED);
        break;
      case 'chunks':
        this.#takeChunks(turn, event);
    }
  }

  #takeChunks(turn: Turn, { seq, chunks }: Extract<LinkEvent, { type: 'chunks' }>): void {
    turn.isQueued = false;
    // Sent for an earlier request of this turn, which had more of it: what this one needs follows.
    if (seq - chunks.length > turn.seq) return;
    for (const chunk of chunks.slice(turn.seq - seq + chunks.length)) {
      turn.seq++;
      this.#recover();
      turn.sink.event(chunk);
      if (this.#turns.get(turn.prompt.turnId) !== turn) return;
    }
    turn.accepted.resolve();
    if (turn.translator.ended) this.#turns.delete(turn.prompt.turnId);
  }

  drop(): void {
    this.#hangUp();
    const { returnMs, giveUpMs } = this.#options;
    const now = steadyNow();
    if (now - this.#connectedAt > returnMs) this.#recover();
    this.#lostAt ??= now;
    const isOfUse = this.#turns.size > 0 || this.#stopping.size > 0;
    const leftMs = this.#lostAt + giveUpMs - now;
    if (!isOfUse || leftMs <= 0) {
      this.#end(DROPPED);
      return;
    }
    this.#timers.start('give-up', leftMs, () => this.#end(DROPPED));
    this.#timers.repeat('unreachable', returnMs, () => this.#tellUnreachable());
    if (this.#attempts >= MOST_ATTEMPTS) this.#tellUnreachable();
    this.#connectLater();
  }

  /** The server is there, and its turns go on. */
  #recover(): void {
    this.#attempts = 0;
    this.#lostAt = undefined;
  }

  #tellUnreachable(): void {
    for (const { upstream } of this.#turns.values()) upstream.onUnreachable?.();
  }

  #hangUp(): void {
    this.#timers.clear('ping');
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
    for (const { reject } of this.#histories.values()) reject(new SabirError(UPSTREAM_DROPPED));
  }

  #connectLater(): void {
    const wait = Math.min(MOST_RETRY_MS, LEAST_RETRY_MS * 2 ** this.#attempts++);
    this.#timers.start('retry', wait * (0.5 + Math.random() / 2), () => void this.#connect());
  }

  async #connect(): Promise<void> {
    try {
      this.connected(await this.#options.connect(this, this.#closing.signal));
    } catch {
      if (!this.isClosed) this.#connectLater();
    }
  }

  #stop(turn: Turn): void {
    const { turnId } = turn.prompt;
    if (turn.isClosed || this.#stopping.has(turnId)) return;
    this.#stopping.add(turnId);
    this.#send({ type: 'stop', turnId });
  }

  #release(turn: Turn): void {
    const { turnId } = turn.prompt;
    turn.isClosed = true;
    turn.accepted.resolve();
    if (this.#turns.get(turnId) !== turn) return;
    this.#turns.delete(turnId);
    this.#send({ type: 'release', turnId });
  }

  #ping(): void {
    if (this.#unanswered++ === 2) this.drop();
    else this.#send({ type: 'ping' });
  }

  #end(outcome: TurnOutcome): void {
    if (this.isClosed) return;
    this.#closing.abort();
    this.#timers.clearAll();
    this.#hangUp();
    const turns = [...this.#turns.values()];
    this.#turns.clear();
    for (const turn of turns) this.#close(turn, outcome);
  }

  #close(turn: Turn, outcome: TurnOutcome): void {
    this.#turns.delete(turn.prompt.turnId);
    if (turn.isClosed || turn.translator.ended) return;
    turn.isClosed = true;
    turn.accepted.resolve();
    turn.sink.close(outcome);
  }
}

const TOO_LARGE: TurnOutcome = {
  status: 'failed',
  code: 'body-too-large',
  message: 'The message is too large.',
};

/** Whether a text takes more bytes in UTF-8, where a character takes up to three. */
function isLonger(text: string, bytes: number): boolean {
  if (text.length > bytes) return true;
  return text.length * 3 > bytes && new TextEncoder().encode(text).length > bytes;
}
