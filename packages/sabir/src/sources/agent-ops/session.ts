import { UPSTREAM_DROPPED } from '../../core/errors.ts';
import type { UIMessage } from '../../core/message.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import type { Channel, Translator } from '../../core/translator.ts';
import type { Answer } from '../../turns/log.ts';
import type {
  Prompt,
  TurnSink,
  UpstreamSession,
  UpstreamTurn,
  User,
} from '../../turns/upstream.ts';
import { isAboutEnd, isUnnamedEnd } from './is-about-end.ts';
import type { Match } from './match.ts';
import { createTurnMatcher } from './match-turn.ts';
import { NamedTimers } from './named-timers.ts';
import { ABORTED, WITHDRAWN } from './outcomes.ts';
import type { Socket, SocketListener } from './socket.ts';
import { refusalOf, toAnswer, toPromptMessage } from './to-server.ts';
import { createTurnTranslator } from './translate-turn.ts';

export type SessionOptions = {
  channel: Channel;
  dialect: 'auto' | 'v2' | 'snapshot';
  approvals: boolean;
  pingMs: number;
  settleMs: number;
  history(user: User, channel?: Channel): Promise<UIMessage[]>;
};

/** A prompt of ours, from when it is given to when the server is done with it. */
type Turn = {
  readonly prompt: Prompt;
  readonly sink: TurnSink;
  readonly translator: Translator<unknown>;
  /** Held here, sent, begun on the server, over. */
  phase: 'held' | 'sent' | 'begun' | 'over';
  wantsStop: boolean;
  /** An abort of ours, of another prompt, may have taken it out of the server's queue. */
  mayBeCleared: boolean;
  isReleased: boolean;
  isClosed: boolean;
};

type TimerName = 'ping' | 'settle' | 'quiet' | 'doubt' | 'give-up';

const DROPPED: TurnOutcome = {
  status: 'failed',
  code: UPSTREAM_DROPPED.code,
  message: UPSTREAM_DROPPED.userMessage,
};

/** A server reports an abort twice, the second time a moment later. */
const QUIET_MS = 250;

/**
 * One socket to a session, and the prompts of one identity on it.
 *
 * One prompt of ours is on its way at a time; the others are held here. The server would queue them
 * too, but it does not say which turn answers which prompt, some releases keep only the last prompt
 * that waits, and an abort clears the whole queue: only a prompt held here is safe from our own stop.
 */
export class AgentOpsSession implements UpstreamSession, SocketListener {
  readonly history: SessionOptions['history'];
  #options: SessionOptions;
  #matcher: ReturnType<typeof createTurnMatcher>;
  #socket: Socket | undefined;
  #held: Turn[] = [];
  /** The turn whose prompt is on its way, also after its release. */
  #current: Turn | undefined;
  #isSettling = false;
  #timers = new NamedTimers<TimerName>();
  /** Pings since the last event. Not a time: a process that slept may find events waiting. */
  #unanswered = 0;
  #isClosed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.history = options.history;
    this.#matcher = createTurnMatcher(options.dialect);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get isBusy(): boolean {
    const { wantsStop, phase } = this.#current ?? {};
    return !this.#isClosed && ((wantsStop && phase === 'sent') || this.#matcher.isStopPending);
  }

  /** Makes the session usable; earlier events have come already. */
  connected(socket: Socket): void {
    if (this.#isClosed) {
      socket.close();
      return;
    }
    this.#socket = socket;
    this.#timers.repeat('ping', this.#options.pingMs, () => this.#ping());
  }

  channels(): Channel[] {
    return this.#matcher.channels;
  }

  prompt(prompt: Prompt, sink: TurnSink): UpstreamTurn {
    const turn: Turn = {
      prompt,
      sink,
      translator: createTurnTranslator({
        approvals: this.#options.approvals,
        generateMessageId: () => prompt.messageId,
        ...(prompt.errorText && { errorText: prompt.errorText }),
      }),
      phase: 'held',
      wantsStop: false,
      mayBeCleared: false,
      isReleased: false,
      isClosed: false,
    };
    const refusal = this.#isClosed ? DROPPED : refusalOf(prompt);
    if (refusal) this.#closeSoon(turn, refusal);
    else {
      this.#held.push(turn);
      this.#giveUpReleased();
      this.#sendNext();
    }
    const isWaiting = () => this.#isWaiting(turn);
    return {
      translator: turn.translator,
      get isQueued() {
        return isWaiting();
      },
      stop: () => this.#stop(turn),
      answer: (answer) => this.#answer(turn, answer),
      expire: (promptId) => this.#give(turn, { type: 'interactive_prompt_expired', promptId }),
      release: () => this.#release(turn),
    };
  }

  close(): void {
    this.#end();
  }

  event(event: unknown): void {
    this.#unanswered = 0;
    const turn = this.#current;
    if (this.#isSettling && isRunning(turn) && isUnnamedEnd(event)) return;
    const match = this.#matcher.match(event);
    if (match === 'unwanted-begun') this.#abortUnwanted();
    else if (turn) this.#follow(turn, match, event);
    if (this.#isSettling && isAboutEnd(event)) this.#waitForQuiet();
  }

  drop(): void {
    this.#end();
  }

  #follow(turn: Turn, match: Match, event: unknown): void {
    switch (match) {
      case 'ours':
        this.#give(turn, event);
        break;
      case 'begun':
        turn.phase = 'begun';
        this.#timers.clear('doubt');
        this.#give(turn, event);
        if (turn.wantsStop) this.#abort();
        else if (turn.isReleased) this.#abandon(turn);
        break;
      case 'ended':
      case 'cut':
        turn.phase = 'over';
        this.#give(turn, event);
        this.#finish(turn, match === 'ended');
        break;
      case 'overtaken':
        this.#close(turn, ABORTED);
        this.#finish(turn, true);
        break;
      case 'queued':
      case 'queue':
        if (match === 'queued') this.#give(turn, event);
        this.#timers.clear('doubt');
        this.#giveUpReleased();
        break;
      case 'unwanted-ended':
        if (turn.mayBeCleared) this.#doubt(turn);
        break;
      case 'doubtful':
        this.#doubt(turn);
        break;
      case 'unannounced':
        // While an abort settles, this is the end of the turn that was aborted.
        if (!this.#isSettling) this.#doubt(turn, event);
    }
  }

  /** The server has nothing to do, and our turn has not begun: after a while it never will. */
  #doubt(turn: Turn, end?: unknown): void {
    this.#start('doubt', this.#options.settleMs, () => {
      this.#matcher.forgetAbandoned();
      if (turn.mayBeCleared && !turn.wantsStop && !turn.isReleased) return this.#send(turn);
      if (end !== undefined) this.#give(turn, end);
      this.#close(turn, this.#matcher.wasQueued ? WITHDRAWN : ABORTED);
      this.#finish(turn, true);
    });
  }

  #give(turn: Turn, event: unknown): void {
    if (!turn.isReleased && turn.phase !== 'held') turn.sink.event(event);
  }

  #isWaiting(turn: Turn): boolean {
    if (turn.phase === 'held') return true;
    return turn.phase !== 'over' && this.#matcher.isWaiting;
  }

  #sendNext(): void {
    if (this.#current || this.#isSettling || !this.#socket) return;
    const turn = this.#held.shift();
    if (!turn) return;
    turn.phase = 'sent';
    this.#current = turn;
    this.#send(turn);
  }

  #send(turn: Turn): void {
    const { text, channel = this.#options.channel } = turn.prompt;
    turn.mayBeCleared = false;
    this.#matcher.expect({ content: text, channel });
    this.#socket?.send(toPromptMessage(turn.prompt, channel));
  }

  /** Only a turn of ours that runs is ever aborted: an abort stops whatever is running. */
  #stop(turn: Turn): void {
    if (turn.phase === 'held') {
      this.#held = this.#held.filter((other) => other !== turn);
      this.#closeSoon(turn, ABORTED);
    } else if (turn.phase !== 'over' && !turn.wantsStop) {
      turn.wantsStop = true;
      if (turn.phase === 'begun') this.#abort();
    }
  }

  #abort(): void {
    this.#socket?.send({ type: 'abort' });
    // An abort that settles already is not this one.
    this.#isSettling = false;
    this.#settle();
  }

  /** A prompt that was given up has begun, before the prompt that was sent since. */
  #abortUnwanted(): void {
    const next = this.#current;
    if (next?.phase === 'sent') next.mayBeCleared = true;
    this.#abort();
  }

  #answer(turn: Turn, { questionId, answer }: Answer): void {
    if (turn.phase !== 'begun') return;
    const given = toAnswer(answer);
    this.#socket?.send({ type: 'answer', questionId, answer: given });
    // Newer servers confirm it in another form, and some not at all.
    this.#give(turn, { type: 'status', data: { questionAnswered: questionId, answer: given } });
  }

  #release(turn: Turn): void {
    if (turn.isReleased) return;
    turn.isReleased = true;
    if (turn.phase === 'held') this.#held = this.#held.filter((other) => other !== turn);
    // A turn that has not begun, or is being stopped, is still followed to its end.
    if (turn.phase === 'begun' && !turn.wantsStop) this.#abandon(turn);
    this.#giveUpReleased();
  }

  #abandon(turn: Turn): void {
    this.#matcher.finish({ isRunning: true });
    this.#finish(turn, true);
  }

  /** Gives up on a released prompt that has not begun and is not queued, so that the next is sent. */
  #giveUpReleased(): void {
    const turn = this.#held.length > 0 ? this.#current : undefined;
    const isIdle = () => turn?.phase === 'sent' && !this.#isWaiting(turn);
    if (!turn?.isReleased || !isIdle()) return;
    this.#start('give-up', this.#options.settleMs, () => {
      if (this.#current !== turn || !isIdle()) return;
      // It may still begin, and is not to be taken for the next then.
      this.#matcher.giveUp(turn.wantsStop);
      this.#finish(turn, true);
    });
  }

  /** The server is done with the turn; `isClean` if no more events about its end will come. */
  #finish(turn: Turn, isClean: boolean): void {
    turn.phase = 'over';
    if (this.#current !== turn) return;
    this.#current = undefined;
    this.#matcher.finish({ isRunning: false });
    this.#timers.clear('doubt');
    this.#timers.clear('give-up');
    if (!isClean || this.#isSettling) {
      this.#settle();
      this.#waitForQuiet();
    }
    this.#sendNext();
  }

  /** The late end of one turn must not be taken for the end of the next. */
  #settle(): void {
    if (this.#isSettling || this.#isClosed) return;
    this.#isSettling = true;
    this.#start('settle', this.#options.settleMs, () => this.#settled());
  }

  #waitForQuiet(): void {
    // While the turn is still on its way, there is nothing to be quiet about.
    if (!this.#current) this.#start('quiet', QUIET_MS, () => this.#settled());
  }

  #settled(): void {
    this.#timers.clear('settle');
    this.#timers.clear('quiet');
    this.#isSettling = false;
    const turn = this.#current;
    if (turn?.phase === 'begun' && turn.wantsStop) {
      // The server never confirmed it. If the turn still runs, the next prompt waits behind it.
      this.#close(turn, ABORTED);
      this.#abandon(turn);
    }
    this.#sendNext();
  }

  #ping(): void {
    if (this.#unanswered === 2) this.#end();
    else this.#socket?.send({ type: 'ping' });
    this.#unanswered++;
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timers.clearAll();
    this.#socket?.close();
    const turns = [...(this.#current ? [this.#current] : []), ...this.#held];
    this.#held = [];
    this.#current = undefined;
    for (const turn of turns) {
      turn.phase = 'over';
      this.#close(turn, DROPPED);
    }
  }

  #close(turn: Turn, outcome: TurnOutcome): void {
    if (turn.isReleased || turn.isClosed || turn.translator.ended) return;
    turn.isClosed = true;
    turn.sink.close(outcome);
  }

  /** From inside `prompt` or `stop`, the sink must not be called. */
  #closeSoon(turn: Turn, outcome: TurnOutcome): void {
    turn.phase = 'over';
    queueMicrotask(() => this.#close(turn, outcome));
  }

  #start(name: TimerName, afterMs: number, run: () => void): void {
    if (!this.#isClosed) this.#timers.start(name, afterMs, run);
  }
}

/** It begins while an abort settles only if it was in the server's queue. */
function isRunning(turn: Turn | undefined): boolean {
  return turn?.phase === 'begun' && !turn.wantsStop;
}
