/**
 * Reads a follow stream: how a chat stands, and the turns it carries. Owns the turn that came
 * last, with all its frames, so that a page or another tab that comes late gets it from its start.
 */
import { isObject, type Loose } from '../core/loose.ts';
import type { MessageLike, UIMessage } from '../core/message.ts';
import { mayAnswer, type Role } from '../core/roles.ts';
import type { SseFrame } from '../core/sse.ts';
import type { SessionEvent } from '../turns/agent.ts';

export type Person = { id: string; name?: string };

/** The person who follows, and their role in the session: a `viewer` may only watch. */
export type Member = Person & { role: Role };

/** A prompt that waits for its turn. */
export type QueuedTurn<M extends MessageLike = UIMessage> = {
  turnId: string;
  /** Of the answer that it will get. */
  messageId: string;
  /** 1 is next. */
  position: number;
  message: M;
  author?: Person;
  /** Sent by the person who follows. */
  isMine: boolean;
  /** `message` is only how it begins: much waits before it. */
  isExcerpt?: boolean;
};

/** How a chat stands, as the server last said. */
type FollowState<M extends MessageLike> = {
  /** The version of the history that its client needs. */
  history: string;
  /** The turn that the stream carries, or carries next. */
  running: string | null;
  me: Member;
  queue: QueuedTurn<M>[];
  people: Person[];
  agent: { isConnected: boolean };
};

export type TurnOpening<M extends MessageLike = UIMessage> = {
  turnId: string;
  /** Of the answer. */
  messageId: string;
  startedAt: number;
  /** What it answers. */
  message?: M;
  author?: Person;
  /** The message that a regenerate or an edit replaced, with all that followed it. */
  replaces?: string;
};

/** A client that applies the turn has this version of the history. */
type Opening<M extends MessageLike> = TurnOpening<M> & { history?: string };

const PAUSE = 'data: {"type":"finish","finishReason":"tool-calls"}\n\n';

type Listener = { frames(frames: SseFrame[]): void; end(): void };

/** One turn, as far as the stream has carried it. */
export class FollowedTurn<M extends MessageLike = UIMessage> {
  readonly opening: TurnOpening<M>;
  readonly frames: SseFrame[] = [];
  /** The versions of the history without and with this turn. */
  readonly before: string | undefined;
  readonly history: string | undefined;
  /** Of its last frame. */
  seq = 0;
  isOver = false;
  /** Its end was not seen: frames may be missing. */
  isLost = false;
  /** The number behind which a stream of this page ended, so that its person or its tools can answer. */
  pausedAt: number | undefined;
  /**
   * What the next request for a running turn gets: this one, also if it has ended by then, or nothing.
   * A client of AI SDK 5 or 6 whose stream broke off forgets that one when it gets nothing; else it
   * would add a replay to what it has.
   */
  offer: 'turn' | 'nothing' | undefined;
  #listeners = new Set<Listener>();
  #getMe: () => Member | undefined;

  constructor(
    { history, ...opening }: Opening<M>,
    before: string | undefined,
    getMe: () => Member | undefined,
  ) {
    this.opening = opening as TurnOpening<M>;
    this.before = before;
    this.history = history ?? before;
    this.#getMe = getMe;
  }

  /** Frames that end with an id; none that are there already. */
  push(frames: SseFrame[], seq: number): void {
    if (seq <= this.seq) return;
    this.seq = seq;
    this.frames.push(...frames);
    for (const { frames: take } of this.#listeners) take(frames);
    // The server ends a response of this page at the same place.
    if (this.#listeners.size === 0 && this.#asks()) this.pausedAt ??= seq;
  }

  end(isLost = false): void {
    if (this.isOver) return;
    this.isOver = true;
    this.isLost = isLost;
    for (const { end } of this.#listeners) end();
    this.#listeners.clear();
  }

  /** The turn as `GET …/stream` would answer: what follows the number, and on to its end. */
  toResponse(after: number, signal?: AbortSignal): Response {
    const encoder = new TextEncoder();
    let leave: (() => boolean) | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const write = (text: string) => controller.enqueue(encoder.encode(text));
        const frames = (some: SseFrame[]) => {
          write(some.map(toText).join(''));
          if (this.isOver || !this.#asks()) return;
          write(PAUSE);
          this.pausedAt = this.seq;
          controller.close();
          leave?.();
        };
        const listener: Listener = { frames, end: () => controller.close() };
        leave = () => this.#listeners.delete(listener);
        signal?.addEventListener('abort', () => {
          if (leave?.()) controller.error(signal.reason);
        });
        this.pausedAt = undefined;
        if (!this.isOver) this.#listeners.add(listener);
        frames(this.#after(after));
        if (this.isOver) controller.close();
      },
      cancel: () => void leave?.(),
    });
    return new Response(body, {
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        'x-sabir-turn': this.opening.turnId,
      },
    });
  }

  /**
   * Whether its last step asks this person for an approval, or this page to run a tool. The AI SDK's own client answers only
   * when its stream has ended; the turn goes on.
   */
  #asks(): boolean {
    const isOf = (type: string) => (frame: SseFrame) => frame.data.startsWith(`{"type":"${type}"`);
    if (!this.frames.slice(-1).some(isOf('finish-step'))) return false;
    // An agent may leave out where its first step starts.
    const step = this.frames.slice(Math.max(this.frames.findLastIndex(isOf('start-step')), 0));
    const chunks = step.map(({ data }) => parse(data)).filter(isObject);
    const of = (type: string) => chunks.filter((chunk) => chunk.type === type);
    const questions = [...of('data-question'), ...of('data-client-tool')];
    const dataOf = (questionId: unknown): Loose =>
      (questions.findLast(({ id }) => id === questionId)?.data as Loose) ?? {};
    const me = this.#getMe();
    const isForMe = (id: unknown) =>
      !me || mayAnswer(dataOf(id).answerBy, { user: me, role: me.role });
    const isSettled = ({ approvalId, toolCallId, isAutomatic }: Loose) =>
      isAutomatic === true ||
      (dataOf(approvalId).status ?? 'open') !== 'open' ||
      chunks.some(
        ({ type, preliminary, ...chunk }) =>
          (type === 'tool-approval-response' && chunk.approvalId === approvalId) ||
          (/^tool-output/.test(`${type}`) && !preliminary && chunk.toolCallId === toolCallId),
      );
    return (
      of('tool-approval-request').some((one) => !isSettled(one) && isForMe(one.approvalId)) ||
      questions.some(({ id }) => dataOf(id).status === 'waiting' && isForMe(id))
    );
  }

  #after(seq: number): SseFrame[] {
    const at = this.frames.findLastIndex(({ id }) => id && toCursor(id).seq <= seq);
    return this.frames.slice(at + 1);
  }
}

/** Called for what the stream brings. */
export type FeedListener<M extends MessageLike> = {
  /** How the chat stands has changed, or a turn has begun or ended. */
  onChange(): void;
  /** A frame of a turn, once. */
  onFrame(frame: SseFrame): void;
  onEvent(event: SessionEvent): void;
  onTurn(turn: FollowedTurn<M>): void;
};

export class FollowFeed<M extends MessageLike = UIMessage> {
  state: FollowState<M> | undefined;
  /** The turn that began last. */
  turn: FollowedTurn<M> | undefined;
  /** The version of the history that a screen needs, this turn included. */
  history: string | undefined;
  #listener: FeedListener<M>;
  #group: SseFrame[] = [];

  constructor(listener: FeedListener<M>) {
    this.#listener = listener;
  }

  /** How far this has read. */
  get cursor(): string | undefined {
    return this.turn && `${this.turn.opening.turnId}:${this.turn.seq}`;
  }

  /** Frames in order; a frame that came before changes nothing. */
  take(frames: SseFrame[]): void {
    let isChanged = false;
    for (const frame of frames) {
      if (frame.event?.startsWith('follow.')) {
        this.#control(frame.event, frame.data);
        isChanged = true;
      } else this.#ofTurn(frame);
    }
    if (isChanged) this.#listener.onChange();
  }

  /** All that a newcomer needs. */
  toFrames(): SseFrame[] {
    const frames: SseFrame[] = [];
    const add = (event: string, data: object) => frames.push({ event, data: JSON.stringify(data) });
    if (!this.state) return frames;
    const { turn } = this;
    const running = turn && !turn.isOver ? turn.opening.turnId : null;
    add('follow.state', { ...this.state, history: this.history, running });
    // One that has ended is in the history.
    if (turn && running) {
      const { opening, history } = turn;
      add('follow.turn', { ...opening, history });
      frames.push(...turn.frames);
    }
    return frames;
  }

  #control(event: string, text: string): void {
    this.#group = [];
    const data = parse(text);
    if (!isObject(data)) return;
    if (event === 'follow.state') this.#stand(data as FollowState<M>);
    else if (event === 'follow.event') {
      if (isObject(data.event)) this.#listener.onEvent(data.event as SessionEvent);
    } else if (event === 'follow.turn') this.#begin(data as Opening<M>);
    else if (event === 'follow.end' && data.turnId === this.turn?.opening.turnId) this.turn?.end();
  }

  #stand(state: FollowState<M>): void {
    this.state = state;
    this.history = state.history;
    // The server does not know it any more: what reads it asks by itself.
    if (state.running !== this.turn?.opening.turnId) this.turn?.end(true);
  }

  #begin(opening: Opening<M>): void {
    if (this.turn?.opening.turnId === opening.turnId) return;
    this.turn?.end(true);
    this.turn = new FollowedTurn(opening, this.history, () => this.state?.me);
    this.history = this.turn.history;
    this.#listener.onTurn(this.turn);
  }

  #ofTurn(frame: SseFrame): void {
    this.#group.push(frame);
    if (!frame.id) return;
    const frames = this.#group;
    this.#group = [];
    const { turn } = this;
    const { turnId, seq } = toCursor(frame.id);
    if (turnId !== turn?.opening.turnId || seq <= turn.seq) return;
    turn.push(frames, seq);
    frames.forEach(this.#listener.onFrame);
  }
}

/** `turnId:seq`; a turn's id may have colons of its own. */
export function toCursor(id: string): { turnId: string; seq: number } {
  const colon = id.lastIndexOf(':');
  return { turnId: id.slice(0, colon), seq: Number(id.slice(colon + 1)) };
}

function toText({ event, id, data }: SseFrame): string {
  const lines = data.split('\n').map((line) => `data: ${line}\n`);
  return `${event ? `event: ${event}\n` : ''}${id ? `id: ${id}\n` : ''}${lines.join('')}\n`;
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A frame that cannot be read changes nothing.
    return undefined;
  }
}
