import { BODY_TOO_LARGE, RUN_FAILED, UPSTREAM_DROPPED } from '../../core/errors.ts';
import type { Loose } from '../../core/loose.ts';
import type { UIMessage } from '../../core/message.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import type { Channel } from '../../core/translator.ts';
import type { Answer } from '../../turns/log.ts';
import type {
  Prompt,
  TurnSink,
  UpstreamSession,
  UpstreamTurn,
  User,
} from '../../turns/upstream.ts';
import { NamedTimers } from './named-timers.ts';
import type { Socket, SocketListener } from './socket.ts';
import { refusalOf, toAnswer, toPromptMessage } from './to-server.ts';
import { type AgentOpsTranslator, createAgentOpsTranslator } from './translate.ts';

export type LinkedSessionOptions = {
  channel: Channel;
  approvals: boolean;
  pingMs: number;
  /** How long to try to come back after a drop. */
  returnMs: number;
  /** Opens another connection to the same session. */
  connect(listener: SocketListener, signal: AbortSignal): Promise<Socket>;
  history(user: User, channel?: Channel): Promise<UIMessage[]>;
};

type Turn = {
  readonly prompt: Prompt;
  readonly channel: Channel;
  readonly sink: TurnSink;
  readonly translator: AgentOpsTranslator;
  /** Known from the start where the server takes ours. */
  turnId: string;
  /** Of the event that was told last, or is being told. */
  lastSeq: number;
  /** What it has missed was asked for. */
  isCatchingUp: boolean;
  /** Given while the turn runs; told again after a drop, since the first one counts. */
  readonly answers: (Pick<Answer, 'questionId' | 'by'> & { answer: string | boolean })[];
  /** The server has said something about the prompt. */
  readonly accepted: PromiseWithResolvers<void>;
  wantsStop: boolean;
  isClosed: boolean;
};

const DROPPED: TurnOutcome = {
  status: 'failed',
  code: UPSTREAM_DROPPED.code,
  message: UPSTREAM_DROPPED.userMessage,
};
const TOO_LARGE: TurnOutcome = {
  status: 'failed',
  code: BODY_TOO_LARGE.code,
  message: BODY_TOO_LARGE.userMessage,
};
/** How long to wait before connecting again, twice as long each time. */
const LEAST_RETRY_MS = 100;
const MOST_RETRY_MS = 2_000;
/** A server that drops us again and again before it has said anything new will go on doing so. */
const MOST_ATTEMPTS = 12;

/** Whether a server's `init` says that it names prompts and turns in whatever it says. */
export function isLinkedInit(event: unknown): boolean {
  const { type, data } = (event ?? {}) as { type?: unknown; data?: Loose };
  const { name, version } = (data?.protocol ?? {}) as Loose;
  return type === 'init' && name === 'sabir' && version === 1;
}

/**
 * The prompts of one identity on a session server of ours, which says which turn answers which
 * prompt. So they can all be on their way at once; the server queues. When the connection drops, it
 * is opened again: prompts are sent again under the same id, and turns are told from where they were.
 */
export class LinkedSession implements UpstreamSession, SocketListener {
  readonly history: LinkedSessionOptions['history'];
  #options: LinkedSessionOptions;
  #socket: Socket | undefined;
  /** By the prompt's id. */
  #turns = new Map<string, Turn>();
  #channels = new Map<string, Channel>();
  #timers = new NamedTimers<'ping' | 'retry' | 'give-up'>();
  /** Prompts that are to stop, and were not heard to: also when nobody waits for them any more. */
  #stopping = new Set<string>();
  #unanswered = 0;
  /** Connections since the last one that brought anything new. */
  #attempts = 0;
  #closing = new AbortController();
  /** By the server's word: a longer message would cost the connection. */
  #maxMessageBytes = Infinity;

  constructor(options: LinkedSessionOptions) {
    this.#options = options;
    this.history = options.history;
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
    this.#unanswered = 0;
    this.#timers.clear('give-up');
    this.#timers.repeat('ping', this.#options.pingMs, () => this.#ping());
    for (const turn of this.#turns.values()) this.#send(turn);
    for (const promptId of this.#stopping) socket.send({ type: 'abort', promptId });
  }

  channels(): Channel[] {
    return [...this.#channels.values()];
  }

  prompt(prompt: Prompt, sink: TurnSink): UpstreamTurn {
    return this.#begin(prompt, sink, false);
  }

  /**
   * On the wire it is the same: the server knows a prompt by its id, does not ask it twice, and tells
   * its turn from the first event to whoever has seen none. But whoever prompted it may have shown
   * that it waits.
   */
  attach(prompt: Prompt, sink: TurnSink): UpstreamTurn {
    return this.#begin(prompt, sink, true);
  }

  #begin(prompt: Prompt, sink: TurnSink, mayHaveWaited: boolean): UpstreamTurn {
    const { channel: usual, approvals } = this.#options;
    const { turnId: promptId, messageId, errorText, channel = usual } = prompt;
    const turn: Turn = {
      prompt,
      channel,
      sink,
      turnId: messageId,
      lastSeq: 0,
      answers: [],
      isCatchingUp: false,
      translator: createAgentOpsTranslator({
        dialect: 'v2',
        promptId,
        messageId,
        approvals,
        mayHaveWaited,
        ...(errorText && { errorText }),
      }),
      wantsStop: false,
      isClosed: false,
      accepted: Promise.withResolvers<void>(),
    };
    const refusal = this.isClosed ? DROPPED : refusalOf(prompt);
    if (refusal) queueMicrotask(() => this.#close(turn, refusal));
    else {
      // A turn is told to one: whoever had it before would wait for ever.
      const before = this.#turns.get(promptId);
      if (before) this.#close(before, DROPPED);
      this.#turns.set(promptId, turn);
      this.#send(turn);
    }
    const isQueued = () => this.#isQueued(turn);
    return {
      translator: turn.translator,
      accepted: turn.accepted.promise,
      get isQueued() {
        return isQueued();
      },
      get position() {
        return turn.lastSeq;
      },
      stop: () => this.#stop(turn),
      answer: ({ questionId, answer, by }: Answer) => {
        const given = { questionId, answer: toAnswer(answer), ...(by && { by }) };
        turn.answers.push(given);
        this.#socket?.send({ type: 'answer', ...given });
      },
      // No `expire`: the server keeps the time of its questions, and says in the turn that it is over.
      release: () => this.#release(turn),
    };
  }

  close(): void {
    this.#end(DROPPED);
  }

  event(event: unknown): void {
    this.#unanswered = 0;
    const said = (event ?? {}) as Loose;
    const data = Object(said.data) as Loose;
    this.#noteChannel(said);
    switch (said.type) {
      case 'init':
        if (typeof data.maxMessageBytes === 'number') this.#maxMessageBytes = data.maxMessageBytes;
        for (const channel of toList(data.channels)) this.#noteChannel(channel);
        break;
      case 'error':
        if (said.refused !== undefined) this.#refused(said);
        else this.#hand(said.promptId, said);
        break;
      case 'status':
        if (data.promptKnown !== undefined) this.#readStanding(data);
        else this.#hand(said.promptId ?? data.promptId, said);
        break;
      case 'queue.withdrawn':
        this.#stopping.delete(data.promptId as string);
        this.#hand(data.promptId, said);
        break;
      case 'message.finalize':
        this.#stopping.delete(said.promptId as string);
        this.#hand(said.promptId, said);
        break;
      case 'queue.state':
        for (const turn of this.#turns.values()) if (turn.lastSeq === 0) this.#tell(turn, said);
        break;
      default:
        this.#hand(said.promptId, said);
    }
  }

  drop(): void {
    this.#hangUp();
    const isOfUse = this.#turns.size > 0 || this.#stopping.size > 0;
    if (!isOfUse || this.#attempts >= MOST_ATTEMPTS) {
      this.#end(DROPPED);
      return;
    }
    this.#timers.start('give-up', this.#options.returnMs, () => this.#end(DROPPED));
    this.#connectLater();
  }

  #hangUp(): void {
    this.#timers.clear('ping');
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
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

  /** Also after a drop: the server knows what it has been sent, and says how it stands. */
  #send(turn: Turn): void {
    const { prompt, channel, turnId, answers } = turn;
    turn.isCatchingUp = false;
    const { traceparent } = prompt;
    const ids = { promptId: prompt.turnId, turnId, ...(traceparent && { traceparent }) };
    const message = JSON.stringify({ ...toPromptMessage(prompt, channel), ...ids });
    if (isLonger(message, this.#maxMessageBytes)) {
      queueMicrotask(() => this.#close(turn, TOO_LARGE));
      return;
    }
    this.#socket?.send(message);
    for (const given of answers) this.#socket?.send({ type: 'answer', ...given });
  }

  #readStanding({ promptKnown, turnId, turnStatus }: Loose): void {
    if (typeof turnId !== 'string') return;
    if (turnStatus === 'ended') this.#stopping.delete(promptKnown as string);
    const turn = this.#turns.get(promptKnown as string);
    if (!turn) return;
    turn.turnId = turnId;
    this.#follow(turn);
  }

  #follow(turn: Turn): void {
    if (turn.isCatchingUp) return;
    turn.isCatchingUp = true;
    this.#socket?.send({ type: 'follow', turnId: turn.turnId, after: turn.lastSeq });
  }

  #refused({ refused, promptId, turnId, code, error }: Loose): void {
    if (refused === 'abort') this.#stopping.delete(promptId as string);
    const turn =
      this.#turns.get(promptId as string) ??
      [...this.#turns.values()].find((one) => turnId !== undefined && one.turnId === turnId);
    if (!turn) return;
    if (refused === 'follow') this.#close(turn, DROPPED);
    else if (refused === 'prompt') {
      this.#close(turn, {
        status: 'failed',
        code: typeof code === 'string' ? code : RUN_FAILED.code,
        message: typeof error === 'string' ? error : RUN_FAILED.userMessage,
      });
    }
  }

  #hand(promptId: unknown, event: Loose): void {
    const turn = this.#turns.get(promptId as string);
    if (!turn) return;
    const { seq, turnId = Object(event.data).turnId } = event;
    // The server may have called it something else, because the name was taken.
    if (typeof turnId === 'string') turn.turnId = turnId;
    if (typeof seq !== 'number') {
      this.#tell(turn, event);
      return;
    }
    // Live again before what was missed has been told: that comes with the rest.
    if (seq > turn.lastSeq + 1) this.#follow(turn);
    // What was told before the drop may be told again after it.
    if (seq !== turn.lastSeq + 1) return;
    turn.lastSeq = seq;
    turn.isCatchingUp = false;
    this.#attempts = 0;
    this.#tell(turn, event);
  }

  /** The server says so; before it has said anything, whoever was sent earlier comes first. */
  #isQueued(turn: Turn): boolean {
    const [first] = this.#turns.values();
    const isLive = this.#turns.get(turn.prompt.turnId) === turn;
    return turn.translator.waiting || (isLive && turn.lastSeq === 0 && first !== turn);
  }

  #tell(turn: Turn, event: object): void {
    if (this.#turns.get(turn.prompt.turnId) !== turn) return;
    turn.sink.event(event);
    turn.accepted.resolve();
    if (turn.translator.ended) this.#turns.delete(turn.prompt.turnId);
  }

  #stop(turn: Turn): void {
    if (turn.wantsStop || turn.isClosed) return;
    turn.wantsStop = true;
    const { turnId: promptId } = turn.prompt;
    this.#stopping.add(promptId);
    this.#socket?.send({ type: 'abort', promptId });
  }

  #release(turn: Turn): void {
    turn.isClosed = true;
    turn.accepted.resolve();
    const { turnId: promptId } = turn.prompt;
    if (this.#turns.get(promptId) === turn) this.#turns.delete(promptId);
  }

  #ping(): void {
    if (this.#unanswered++ === 2) this.drop();
    else this.#socket?.send({ type: 'ping' });
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

  #noteChannel({ channelType, channelId }: Loose): void {
    if (typeof channelType !== 'string' || typeof channelId !== 'string') return;
    const key = JSON.stringify([channelType, channelId]);
    if (!this.#channels.has(key)) this.#channels.set(key, { channelType, channelId });
  }
}

function toList(value: unknown): Loose[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'object' && one !== null) : [];
}

/** Whether a text takes more bytes in UTF-8, where a character takes up to three. */
function isLonger(text: string, bytes: number): boolean {
  if (text.length > bytes) return true;
  return text.length * 3 > bytes && new TextEncoder().encode(text).length > bytes;
}
