import { afterThisTick, startTimeout } from '../core/timers.ts';
import type { SessionEvent } from '../turns/agent.ts';
import type { TurnInfo, TurnLog } from '../turns/log.ts';
import { waitsFor } from '../turns/turn-progress.ts';
import type { Bytes } from '../wires/wire-encoder.ts';
import type { Place } from './chat-route.ts';
import type { Asked, ChatEvents, ChatWatch } from './chat-watch.ts';

/** What a feed needs of one who follows it. */
export interface FeedFollower {
  begun(turn: TurnInfo): void;
  /** The state may be another one. */
  showState(): void;
  showEvent(frame: Bytes): void;
  /** The client has to fetch the history: something of it was not on this connection. */
  miss(): void;
  /** The conversation ends in this process. */
  close(): void;
}

/** What a new follower begins with. */
export type Joined = {
  /** The turns that have not ended: those that say something first. */
  live: TurnInfo[];
  latest: TurnInfo | undefined;
};

/** The frame that announces a turn to all followers that get it from its start. */
type Opening = { turnId: string; frame: Bytes; hasMessage: boolean };

type FeedsOptions = {
  log: TurnLog;
  watch(place: Place, on: ChatEvents): ChatWatch;
};

/** The feed recognises so many turns when the log reports them again. */
const MOST_RECENT = 100;
/** A larger message is fetched from the history. */
const MESSAGE_BYTES = 256_000;
const RETRY_MS = 1_000;
/** The time between two states that all followers are sent, for each of them. */
const STATE_MS = 0.25;

/**
 * One conversation for all its followers in this process: finds out which turns begin, and makes once what all of them
 * are sent beside the turns' own frames.
 */
export class ChatFeed {
  #log: TurnLog;
  #place: Pick<Place, 'logSession' | 'logChat'>;
  #watch: ChatWatch;
  #followers = new Set<FeedFollower>();
  /** Those who join next. */
  #joining: FeedFollower[] = [];
  #joined: Promise<Joined> | undefined;
  /** The turns that the followers know of, the latest last. */
  #recent: string[] = [];
  /** What is found out, one after another, so that followers get turns in their order. */
  #work: Promise<unknown> = Promise.resolve();
  #stopListening: () => void;
  /** What `follow.state` says to each user, as JSON without its opening brace. */
  #states = new Map<string, string>();
  #isStateDue = false;
  #opening: Opening | undefined;
  #outcome: { turnId: string; status: Promise<string | undefined> } | undefined;
  #isOver = false;

  constructor({ log, watch }: FeedsOptions, place: Place) {
    const { logSession, logChat } = place;
    this.#log = log;
    this.#place = { logSession, logChat };
    this.#watch = watch(place, {
      change: () => this.#change(),
      event: (event) => this.#event(event),
      rewrite: () => {
        for (const follower of [...this.#followers]) follower.miss();
      },
      close: () => {
        for (const follower of [...this.#followers]) follower.close();
      },
    });
    this.#stopListening = log.onBegin(logSession, logChat, (turnId) => this.#hear(turnId));
  }

  /** Adds a follower, and announces to it every turn that is not in the result. Followers that join together ask the log once. */
  join(follower: FeedFollower): Promise<Joined> {
    this.#joining.push(follower);
    this.#joined ??= this.#inOrder(async () => {
      this.#joined = undefined;
      const followers = this.#joining.splice(0);
      const joined = await this.#look();
      for (const one of followers) this.#followers.add(one);
      return joined;
    });
    return this.#joined;
  }

  leave(follower: FeedFollower): void {
    this.#followers.delete(follower);
  }

  close(): void {
    this.#isOver = true;
    this.#stopListening();
    this.#watch.leave();
  }

  stateFor(userId: string): string {
    const known = this.#states.get(userId);
    if (known) return known;
    const state = JSON.stringify(this.#watch.stateFor(userId)).slice(1);
    this.#states.set(userId, state);
    return state;
  }

  /** Events that a follower is sent when it comes. */
  events(): Bytes[] {
    return this.#watch.events().map(toEventFrame);
  }

  openingOf(turn: TurnInfo): Opening {
    const { turnId } = turn;
    if (this.#opening?.turnId === turnId) return this.#opening;
    const { message, ...asked } = this.#watch.askedIn(turn);
    const said = message && JSON.stringify(message);
    const hasMessage = said !== undefined && said.length <= MESSAGE_BYTES;
    const frame = toTurnFrame(turn, 0, { ...asked, ...(hasMessage && { message }) });
    this.#opening = { turnId, frame, hasMessage };
    return this.#opening;
  }

  /** How a turn has ended; undefined where the log has forgotten it. */
  outcomeOf(turnId: string): Promise<string | undefined> {
    if (this.#outcome?.turnId !== turnId) {
      const status = this.#log.get(turnId).then((turn) => turn?.outcome?.status);
      this.#outcome = { turnId, status };
    }
    return this.#outcome.status;
  }

  #inOrder<T>(run: () => Promise<T>): Promise<T> {
    const doing = this.#work.then(run);
    this.#work = doing.catch(() => undefined);
    return doing;
  }

  #hear(turnId: string | undefined): void {
    this.#inOrder(async () => {
      if (this.#isOver) return;
      if (turnId === undefined) {
        await this.#look();
        return;
      }
      const turn = await this.#log.get(turnId);
      if (turn) await this.#offerSoon(turn);
    }).catch(() => {
      // The log could not tell: a turn may have been missed.
      if (!this.#isOver) startTimeout(RETRY_MS, () => this.#hear(undefined));
    });
  }

  /** Asks the log, and offers what the followers do not know. */
  async #look(): Promise<Joined> {
    const { logSession, logChat } = this.#place;
    const latest = await this.#log.latest(logSession, logChat);
    const live = await this.#log.live(logSession, logChat);
    const isKnown = live.some(({ turnId }) => turnId === latest?.turnId);
    for (const turn of latest && !isKnown ? [latest, ...live] : live) this.#offer(turn);
    const isWaiting = (turn: TurnInfo) => Number(waitsFor(turn) === 'answer');
    return { live: live.toSorted((a, b) => isWaiting(a) - isWaiting(b)), latest };
  }

  /** Its message is known when `begin` has returned. A log that retains nothing may forget the turn soon after. */
  #offerSoon(turn: TurnInfo): Promise<void> {
    return new Promise((resolve) => {
      afterThisTick(() => {
        this.#offer(turn);
        resolve();
      });
    });
  }

  #offer(turn: TurnInfo): void {
    if (this.#recent.includes(turn.turnId)) return;
    this.#recent = [...this.#recent, turn.turnId].slice(-MOST_RECENT);
    for (const follower of [...this.#followers]) follower.begun(turn);
  }

  /** What changes in one tick is shown at once; to a crowd, from time to time. */
  #change(): void {
    if (this.#isStateDue) return;
    this.#isStateDue = true;
    const show = () => {
      this.#isStateDue = false;
      this.#states.clear();
      for (const follower of [...this.#followers]) follower.showState();
    };
    const ms = this.#followers.size * STATE_MS;
    if (ms < 1) afterThisTick(show);
    else startTimeout(ms, show);
  }

  #event(event: SessionEvent): void {
    const frame = toEventFrame(event);
    for (const follower of [...this.#followers]) follower.showEvent(frame);
  }
}

const encoder = new TextEncoder();

/** A frame that belongs to the connection and not to a turn. It has no id: no cursor stands behind it. */
export function toControlFrame(name: 'state' | 'turn' | 'end' | 'event', json: string): Bytes {
  return encoder.encode(`event: follow.${name}\ndata: ${json}\n\n`);
}

/** The version of the history is named after the latest turn that a client has. */
export function toTurnFrame(
  { turnId, messageId, startedAt }: TurnInfo,
  after: number,
  asked: Asked,
): Bytes {
  const told = { turnId, messageId, startedAt, after, history: turnId, ...asked };
  return toControlFrame('turn', JSON.stringify(told));
}

function toEventFrame(event: SessionEvent): Bytes {
  return toControlFrame('event', JSON.stringify({ event }));
}

/** The conversations that are followed in this process. */
export function createChatFeeds(options: FeedsOptions) {
  const feeds = new Map<string, { feed: ChatFeed; users: number }>();
  return {
    /** The feed of a conversation, until it is released. */
    hold(place: Place): { feed: ChatFeed; release: () => void } {
      const { logSession, logChat } = place;
      const key = JSON.stringify([logSession, logChat]);
      const held = feeds.get(key) ?? { feed: new ChatFeed(options, place), users: 0 };
      feeds.set(key, held);
      held.users++;
      return {
        feed: held.feed,
        release() {
          if (--held.users > 0) return;
          feeds.delete(key);
          held.feed.close();
        },
      };
    },
  };
}
