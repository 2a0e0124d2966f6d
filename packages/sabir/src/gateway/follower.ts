import type { ByteSink, ByteSource } from '../core/byte-source.ts';
import { type ErrorKind, SHUTTING_DOWN, SIGN_IN_EXPIRED, VIEWER_TOO_SLOW } from '../core/errors.ts';
import { createId } from '../core/id.ts';
import type { Role } from '../core/roles.ts';
import { SSE_DONE } from '../core/sse.ts';
import { startTimeout, startTimer, type Timer } from '../core/timers.ts';
import type { TurnInfo } from '../turns/log.ts';
import type { Bytes } from '../wires/wire-encoder.ts';
import { type ChatFeed, type FeedFollower, toControlFrame, toTurnFrame } from './chat-feeds.ts';
import type { Departure, Viewer } from './viewer.ts';

/** A turn that a follower is to be sent, from behind the number that its client has seen. */
export type Carried = { turn: TurnInfo; after: number };

type FollowerOptions = {
  feed: ChatFeed;
  /** The person who follows. */
  me: { id: string; name?: string; role: Role };
  keepAliveMs: number;
  maxBacklogBytes: number;
  expiresAt?: number | undefined;
  /** A viewer whose stream may end without an error. It keeps no time: neither keep-alive nor expiry. */
  toViewer(carried: Carried, onDeparture: (how: Departure) => void): Viewer;
  onSlow(): void;
  /** Runs once. */
  onDeparture(how: Departure): void;
};

const KEEP_ALIVE: Bytes = new TextEncoder().encode(': keep-alive\n\n');
/** So many turns may wait until the one before them has ended. */
const MOST_WAITING = 100;

/**
 * One client that follows a conversation: one viewer after another on one connection, and between their frames what
 * happens beside the turns. It ends only when its client leaves or is let go.
 */
export class Follower implements ByteSource, FeedFollower {
  #options: FollowerOptions;
  /** Which version of the conversation its client has, or is to fetch. */
  #history: string = createId();
  #hasStarted = false;
  #sink: ByteSink | undefined;
  /** Nothing waits, and the client would take more. A viewer is ready only while this is. */
  #isReady = false;
  #isOver = false;
  /** What the client has not taken, beside what its viewer keeps a cursor of; and the bytes of events in it. */
  #unsent: Bytes[] = [];
  #unsentEvents = 0;
  #waiting: Carried[] = [];
  #turnId: string | undefined;
  #viewer: Viewer | undefined;
  /** The state that its client was sent last, and the version of the history that it was told. */
  #shown: string | undefined;
  #toldHistory = '';
  #keepAlive: Timer | undefined;
  #expiry: Timer | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Once, with the turns to begin with; `history` is what its client has, if that is known. */
  start(carried: Carried[], history: string | undefined): void {
    const begun = this.#waiting.filter(({ turn }) => !carried.some(isOf(turn.turnId)));
    this.#waiting = [...carried, ...begun];
    if (history !== undefined) this.#history = history;
    this.#hasStarted = true;
    this.showState();
    for (const frame of this.#options.feed.events()) this.#send(frame);
    this.#next();
  }

  open(sink: ByteSink): void {
    this.#sink = sink;
    if (this.#isOver) {
      sink.end();
      return;
    }
    const { keepAliveMs, expiresAt } = this.#options;
    if (keepAliveMs > 0 && keepAliveMs < Infinity) {
      this.#keepAlive = startTimer(keepAliveMs, () => {
        if (this.#isReady) this.#send(KEEP_ALIVE, true);
      });
    }
    if (expiresAt !== undefined) {
      this.#expiry = startTimeout(expiresAt - Date.now(), () => this.letGo(SIGN_IN_EXPIRED));
    }
  }

  resume(): void {
    if (this.#isOver) return;
    this.#isReady = true;
    this.#unsentEvents = 0;
    for (const bytes of this.#unsent.splice(0)) this.#send(bytes);
    if (this.#isReady) this.showState();
    if (this.#isReady) this.#viewer?.resume();
  }

  cancel(): void {
    this.#depart('left');
  }

  /** The turns go on, this stream does not. Its client comes back by itself and needs no error. */
  letGo(why: ErrorKind): void {
    if (this.#isOver) return;
    if (why === VIEWER_TOO_SLOW) this.#options.onSlow();
    this.#sink?.end();
    this.#depart('let-go');
  }

  close(): void {
    this.letGo(SHUTTING_DOWN);
  }

  begun(turn: TurnInfo): void {
    if (turn.turnId === this.#turnId || this.#waiting.some(isOf(turn.turnId))) return;
    this.#waiting.push({ turn, after: 0 });
    if (this.#waiting.length > MOST_WAITING) {
      this.#waiting.shift();
      this.miss();
    }
    this.#next();
  }

  /** One that is not sent now is sent when the client takes more. */
  showState(): void {
    const { feed, me } = this.#options;
    if (!this.#hasStarted || (this.#shown !== undefined && !this.#isReady)) return;
    const state = feed.stateFor(me.id);
    if (state === this.#shown && this.#history === this.#toldHistory) return;
    this.#shown = state;
    this.#toldHistory = this.#history;
    const running = this.#turnId ?? this.#waiting[0]?.turn.turnId ?? null;
    const own = JSON.stringify({ history: this.#history, running, me }).slice(0, -1);
    this.#send(toControlFrame('state', `${own},${state}`));
  }

  showEvent(frame: Bytes): void {
    if (!this.#isReady) this.#unsentEvents += frame.length;
    if (this.#unsentEvents > this.#options.maxBacklogBytes) this.letGo(VIEWER_TOO_SLOW);
    else this.#send(frame, true);
  }

  miss(): void {
    this.#history = createId();
    this.showState();
  }

  #send(bytes: Bytes, isShared = false): void {
    if (this.#isOver) return;
    if (!this.#isReady) {
      this.#unsent.push(bytes);
      return;
    }
    this.#isReady = this.#sink?.write(bytes, isShared) ?? false;
    if (!this.#isReady && this.#viewer) this.#viewer.isReady = false;
  }

  /** Begins with the next turn, if no other one is being sent. */
  #next(): void {
    const carried = this.#waiting[0];
    const isBusy = !this.#hasStarted || this.#turnId !== undefined;
    if (this.#isOver || isBusy || !carried) return;
    this.#waiting.shift();
    const { feed, toViewer } = this.#options;
    const { turn, after } = carried;
    const { turnId } = turn;
    this.#turnId = turnId;
    this.#history = turnId;
    this.#toldHistory = turnId;
    // A client that has seen some of the turn has its message.
    const opening = after === 0 ? feed.openingOf(turn) : undefined;
    if (opening) this.#send(opening.frame, true);
    else this.#send(toTurnFrame(turn, after, {}));
    if (opening?.hasMessage === false) this.miss();
    let last: Uint8Array | undefined;
    const viewer = toViewer(carried, (how) => void this.#end(turnId, how, last));
    this.#viewer = viewer;
    viewer.open({
      write: (bytes, isShared) => {
        this.#isReady = this.#sink?.write(bytes, isShared) ?? false;
        return this.#isReady;
      },
      end(bytes) {
        last = bytes;
      },
    });
    if (this.#isReady) viewer.resume();
  }

  async #end(turnId: string, how: Departure, last: Uint8Array | undefined): Promise<void> {
    if (this.#isOver) return;
    this.#viewer = undefined;
    if (how !== 'ended') {
      this.#sink?.end();
      this.#depart('let-go');
      return;
    }
    if (last && !isMarker(last)) this.#send(last as Bytes);
    const outcome = await this.#options.feed.outcomeOf(turnId).catch(() => undefined);
    this.#send(toControlFrame('end', JSON.stringify({ turnId, outcome })));
    this.#turnId = undefined;
    this.#next();
  }

  #depart(how: Departure): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#unsent = [];
    this.#waiting = [];
    this.#keepAlive?.clear();
    this.#expiry?.clear();
    this.#viewer?.cancel();
    this.#options.onDeparture(how);
  }
}

const isOf = (turnId: string) => (carried: Carried) => carried.turn.turnId === turnId;

/** Tells AI SDK clients that the response ends: it does not. */
function isMarker(bytes: Uint8Array): boolean {
  return bytes.length === SSE_DONE.length && new TextDecoder().decode(bytes) === SSE_DONE;
}
