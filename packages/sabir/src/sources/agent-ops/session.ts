import { UPSTREAM_DROPPED } from '../../core/errors.ts';
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
import { isAboutEnd, isUnnamedEnd } from './is-about-end.ts';
import { NamedTimers } from './named-timers.ts';
import type { Socket, SocketListener } from './socket.ts';
import { refusalOf, toAnswer, toPromptMessage } from './to-server.ts';
import { type AgentOpsTranslator, createAgentOpsTranslator } from './translate.ts';
import { createTurnWatch, type Flight, type Sighting, UNSEEN } from './turn-watch.ts';

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
  readonly translator: AgentOpsTranslator;
  readonly flight: Flight;
  /** Held here, sent, begun on the server, over. */
  phase: 'held' | 'sent' | 'begun' | 'over';
  wantsStop: boolean;
  /** An abort of ours, of another prompt, may have taken it out of the server's queue. */
  mayBeCleared: boolean;
  isReleased: boolean;
  isClosed: boolean;
};

type TimerName = 'ping' | 'settle' | 'quiet' | 'doubt' | 'ghost';

const DROPPED: TurnOutcome = {
  status: 'failed',
  code: UPSTREAM_DROPPED.code,
  message: UPSTREAM_DROPPED.userMessage,
};
const STOPPED: TurnOutcome = { status: 'stopped', reason: 'aborted' };
const WITHDRAWN: TurnOutcome = { status: 'stopped', reason: 'withdrawn' };

/** A server that was told to abort says so twice, the second time a moment later. */
const QUIET_MS = 250;

/**
 * One socket to a session, and the prompts of one identity on it.
 *
 * One prompt of ours is on its way at a time; the others are held here. The server would queue
 * them too, but it tells nobody which turn answers which prompt, some releases keep only the last
 * that waits, and an abort clears the whole queue: only what is held here is safe from our own stop.
 */
export class AgentOpsSession implements UpstreamSession, SocketListener {
  readonly history: SessionOptions['history'];
  #options: SessionOptions;
  #watch: ReturnType<typeof createTurnWatch>;
  #socket: Socket | undefined;
  #held: Turn[] = [];
  /** The one on its way, also when nobody waits for it any more. */
  #current: Turn | undefined;
  /** Those that were sent and are not released. */
  #listening: readonly Turn[] = [];
  #isSettling = false;
  #timers = new NamedTimers<TimerName>();
  /** Pings since the last word. Not a time: a process that slept has not heard, but may yet. */
  #unanswered = 0;
  #isClosed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.history = options.history;
    this.#watch = createTurnWatch(options.dialect);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get isBusy(): boolean {
    const { wantsStop, phase } = this.#current ?? {};
    return !this.#isClosed && ((wantsStop && phase === 'sent') || this.#watch.hasStray);
  }

  /** Makes the session usable; what came before it was heard already. */
  connected(socket: Socket): void {
    if (this.#isClosed) {
      socket.close();
      return;
    }
    this.#socket = socket;
    this.#timers.repeat('ping', this.#options.pingMs, () => this.#ping());
  }

  channels(): Channel[] {
    return this.#watch.channels;
  }

  prompt(prompt: Prompt, sink: TurnSink): UpstreamTurn {
    const { channel, dialect, approvals } = this.#options;
    const place = prompt.channel ?? channel;
    const turn: Turn = {
      prompt,
      sink,
      translator: createAgentOpsTranslator({
        channel: place,
        dialect,
        approvals,
        generateMessageId: () => prompt.messageId,
        ...(prompt.errorText && { errorText: prompt.errorText }),
      }),
      flight: {
        ...UNSEEN,
        content: prompt.text,
        channel: place,
      },
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
      this.#forgetGhost();
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
      expire: (promptId) => this.#tell(turn, { type: 'interactive_prompt_expired', promptId }),
      release: () => this.#release(turn),
    };
  }

  close(): void {
    this.#end();
  }

  event(event: unknown): void {
    this.#unanswered = 0;
    const current = this.#current;
    if (this.#isSettling && isRunning(current) && isUnnamedEnd(event)) return;
    const sighting = this.#watch.see(event, current?.flight);
    if (sighting === 'ours') this.#give(event);
    else if (sighting === 'stray') this.#abortStray();
    else if (current) this.#follow(current, sighting, event);
    // A turn that we take to be over may know better.
    else if (this.#listening.length > 0) this.#give(event);
    if (this.#isSettling && isAboutEnd(event)) this.#waitForQuiet();
  }

  drop(): void {
    this.#end();
  }

  /** What an event that is more than a delta means for the prompt on its way. */
  #follow(turn: Turn, sighting: Sighting, event: unknown): void {
    switch (sighting) {
      case 'begun':
        turn.phase = 'begun';
        this.#timers.clear('doubt');
        this.#give(event);
        if (turn.wantsStop) this.#abort();
        else if (turn.isReleased) this.#abandon(turn);
        break;
      case 'ended':
      case 'cut':
        turn.phase = 'over';
        this.#give(event);
        this.#finish(turn, sighting === 'ended');
        break;
      case 'overtaken':
        this.#close(turn, STOPPED);
        this.#finish(turn, true);
        break;
      case 'withdrawn':
        this.#close(turn, WITHDRAWN);
        this.#finish(turn, true);
        break;
      case 'queue':
        this.#timers.clear('doubt');
        this.#forgetGhost();
        break;
      case 'cleared':
        if (turn.mayBeCleared) this.#doubt(turn);
        break;
      case 'doubtful':
        this.#doubt(turn);
    }
  }

  /** The server has nothing to do, and our turn has not begun: after a while it never will. */
  #doubt(turn: Turn): void {
    this.#start('doubt', this.#options.settleMs, () => {
      this.#watch.forgetGhosts();
      if (turn.mayBeCleared && !turn.wantsStop && !turn.isReleased) return this.#send(turn);
      this.#close(turn, turn.flight.queued === undefined ? STOPPED : WITHDRAWN);
      this.#finish(turn, true);
    });
  }

  #give(event: unknown): void {
    for (const turn of this.#listening) turn.sink.event(event);
  }

  #tell(turn: Turn, event: object): void {
    if (!turn.isReleased && turn.phase !== 'held') turn.sink.event(event);
  }

  #isWaiting(turn: Turn): boolean {
    if (turn.phase === 'held') return true;
    return turn.phase !== 'over' && this.#watch.isWaiting(turn.flight);
  }

  #sendNext(): void {
    if (this.#current || this.#isSettling || !this.#socket) return;
    const turn = this.#held.shift();
    if (!turn) return;
    turn.phase = 'sent';
    this.#current = turn;
    this.#listening = [...this.#listening, turn];
    this.#send(turn);
  }

  #send(turn: Turn): void {
    turn.mayBeCleared = false;
    Object.assign(turn.flight, UNSEEN);
    this.#watch.sent();
    this.#socket?.send(toPromptMessage(turn.prompt, turn.flight.channel));
  }

  /** Only a turn of ours that runs is ever aborted: an abort stops whatever is running. */
  #stop(turn: Turn): void {
    if (turn.phase === 'held') {
      this.#held = this.#held.filter((other) => other !== turn);
      this.#closeSoon(turn, STOPPED);
    } else if (turn.phase !== 'over' && !turn.wantsStop) {
      turn.wantsStop = true;
      if (turn.phase === 'begun') this.#abort();
    }
  }

  #abort(): void {
    this.#socket?.send({ type: 'abort' });
    // What was settling before is not what is waited for now.
    this.#isSettling = false;
    this.#settle();
  }

  /** One that was given up has begun after all, in front of the prompt that was sent since. */
  #abortStray(): void {
    const next = this.#current;
    if (next?.phase === 'sent') next.mayBeCleared = true;
    this.#abort();
  }

  #answer(turn: Turn, { questionId, answer }: Answer): void {
    if (turn.phase !== 'begun') return;
    const told = toAnswer(answer);
    this.#socket?.send({ type: 'answer', questionId, answer: told });
    // Newer servers tell it in another form, and some not at all.
    this.#tell(turn, { type: 'status', data: { questionAnswered: questionId, answer: told } });
  }

  #release(turn: Turn): void {
    if (turn.isReleased) return;
    turn.isReleased = true;
    this.#listening = this.#listening.filter((other) => other !== turn);
    if (turn.phase === 'held') this.#held = this.#held.filter((other) => other !== turn);
    // One that was not begun, or is being stopped, still has to be followed to its end.
    if (turn.phase === 'begun' && !turn.wantsStop) this.#abandon(turn);
    this.#forgetGhost();
  }

  #abandon(turn: Turn): void {
    this.#watch.abandon(turn.flight);
    this.#finish(turn, true);
  }

  /** Gives up on a prompt nobody waits for, for the sake of the next: unless it is in the queue. */
  #forgetGhost(): void {
    const ghost = this.#held.length > 0 ? this.#current : undefined;
    if (!ghost?.isReleased || ghost.phase !== 'sent' || this.#isWaiting(ghost)) return;
    this.#start('ghost', this.#options.settleMs, () => {
      if (this.#current !== ghost || ghost.phase !== 'sent' || this.#isWaiting(ghost)) return;
      // It may begin all the same, and is not to be taken for the next then.
      this.#watch.giveUp(ghost.flight, ghost.wantsStop);
      this.#finish(ghost, true);
    });
  }

  /** The server is done with the turn; `isClean` if nothing more will be said of it. */
  #finish(turn: Turn, isClean: boolean): void {
    turn.phase = 'over';
    if (this.#current !== turn) return;
    this.#current = undefined;
    this.#timers.clear('doubt');
    this.#timers.clear('ghost');
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
      this.#close(turn, STOPPED);
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
    const turns = [...this.#listening, ...this.#held];
    this.#held = [];
    this.#current = undefined;
    for (const turn of turns) {
      turn.phase = 'over';
      this.#close(turn, DROPPED);
    }
    this.#listening = [];
  }

  #close(turn: Turn, outcome: TurnOutcome): void {
    if (turn.isReleased || turn.isClosed || turn.translator.ended) return;
    turn.isClosed = true;
    turn.sink.close(outcome);
  }

  /** For who is still in the middle of a call of ours. */
  #closeSoon(turn: Turn, outcome: TurnOutcome): void {
    turn.phase = 'over';
    queueMicrotask(() => this.#close(turn, outcome));
  }

  #start(name: TimerName, afterMs: number, run: () => void): void {
    if (!this.#isClosed) this.#timers.start(name, afterMs, run);
  }
}

/** Runs while the end of the one before is still awaited: it was in the server's queue then. */
function isRunning(turn: Turn | undefined): boolean {
  return turn?.phase === 'begun' && !turn.wantsStop;
}
