import { type ErrorKind, RUNNER_LOST, SERVER_RESTARTED, TURN_TOO_LARGE } from '../core/errors.ts';
import type { Logger, Translator } from '../core/translator.ts';
import { createV2RunnerDialect } from '../sources/agent-ops/runner-dialect.ts';
import type { SessionEvent } from '../turns/agent.ts';
import type { Answer, Steer } from '../turns/log.ts';
import type { Prompt, TurnSink, UpstreamTurn, Written } from '../turns/upstream.ts';
import type { AgentHost } from './agent-hosts.ts';
import { isLargerThan } from './event-size.ts';
import type { Guard } from './guard.ts';
import type {
  Clock,
  SessionLimits,
  SessionSocket,
  SessionTiming,
  SocketEvents,
} from './options.ts';
import {
  createRunnerDialect,
  createWrittenTranslator,
  type RunnerDialect,
  type RunnerTurnSaid,
} from './runner-dialect.ts';
import { createRunnerFrames } from './runner-frames.ts';
import { createWait } from './wait.ts';

/** A close code of ours. The runner that gets it tries again, less and less often. */
const ANOTHER_RUNNER = 4409;
/** The runner connects again at once, and sends again what was not confirmed. */
const COME_AGAIN = 1012;
/** The id under which deployed runners are kept, which have none. */
const DEPLOYED = '';

type RunnerHostOptions = {
  sessionId: string;
  clock: Clock;
  guard: Guard;
  timing: SessionTiming;
  limits: Pick<SessionLimits, 'eventBytes'>;
  /** The runner that a turn was given to, before a restart perhaps. */
  runnerOf(turnId: string): string | undefined;
  /** Keeps it. */
  setRunner(turnId: string, runnerId: string): void;
  /** Whether the session has the turn, though perhaps its log has not given it to this process yet. */
  isOpen(turnId: string): boolean;
  /** It would take a prompt now. */
  onReady(): void;
  onConnection(isConnected: boolean): void;
  onEvent(event: SessionEvent): void;
  onLimit(limit: keyof SessionLimits): void;
  logger: Logger | undefined;
};

type Hello = { turnId: string | null; known: string[]; needsHistory?: boolean };

/** A turn that was given to the runner. */
type Run = {
  readonly prompt: Prompt;
  readonly sink: TurnSink;
  readonly dialect: RunnerDialect;
  readonly translator: Translator<unknown>;
  /** The frame of the turn that came last, and the last that is in the log. */
  position: number;
  written: number;
  /** The prompt was sent. */
  isGiven: boolean;
  /** Given while the turn runs; sent again after a drop, since the first one counts. */
  readonly answers: Answer[];
  /** Sent again after a drop; the runner knows which it has. */
  readonly steers: Steer[];
  isStopping: boolean;
  /** The session waits for nothing more of it. */
  isReleased: boolean;
};

/**
 * The one runner of a session: its socket while it has one, and the turn that it works on. When the connection drops, the
 * runner comes back and sends again what is not in the log.
 */
export function createRunnerHost(options: RunnerHostOptions) {
  const { sessionId, clock, guard, timing, limits, logger } = options;
  const frames = createRunnerFrames(sessionId, logger);
  /** For the runner to come back, or to end a turn that was stopped. */
  const wait = createWait(clock, guard);
  let socket: SessionSocket | undefined;
  let runnerId: string | undefined;
  let dialect: RunnerDialect | undefined;
  /** What the runner has said of itself, since it is connected. */
  let hello: Hello | undefined;
  let isLeaving = false;
  let run: Run | undefined;
  /** The last frame that has come and is not in the log, of a turn that this process does not run. */
  let unwritten: { turnId: string; seq: number } | undefined;

  /** That of the connection, or of the turn that runs, where they speak the same. */
  function dialectOf(id: string | undefined): RunnerDialect {
    const isOurs = id !== DEPLOYED;
    const known = [run?.dialect, dialect].find((one) => one?.saysHello === isOurs);
    if (known) return known;
    if (isOurs) return createRunnerDialect(timing);
    const { questionMs } = timing;
    return createV2RunnerDialect({
      questionMs,
      now: clock.now,
      createTranslator: createWrittenTranslator,
    });
  }

  function send(command: object | undefined): void {
    try {
      if (command) socket?.send(JSON.stringify(command));
    } catch {
      // The socket is gone; the platform reports it.
    }
  }

  function fail({ code, userMessage: message }: ErrorKind): void {
    const { sink, isReleased } = run ?? {};
    finish();
    if (!isReleased) sink?.close({ status: 'failed', code, message });
  }

  /** The runner is free for the next prompt. */
  function finish(): void {
    if (!run) return;
    run = undefined;
    wait.stop();
    queueMicrotask(() => {
      if (!run) options.onReady();
    });
  }

  function give(given: Run): void {
    const { prompt, dialect } = given;
    if (runnerId !== undefined) options.setRunner(prompt.turnId, runnerId);
    send(dialect.toPrompt(prompt));
    given.isGiven = socket !== undefined;
  }

  function begin(prompt: Prompt, sink: TurnSink, written?: Written): UpstreamTurn {
    const { turnId } = prompt;
    const givenTo = written && options.runnerOf(turnId);
    const dialect = dialectOf(written ? givenTo : runnerId);
    const current: Run = {
      prompt,
      sink,
      dialect,
      translator: dialect.createTranslator(prompt, written?.chunks ?? []),
      position: written?.mark ?? 0,
      written: written?.mark ?? 0,
      isGiven: givenTo !== undefined,
      answers: [],
      steers: [],
      isStopping: false,
      isReleased: false,
    };
    if (!written) give(current);
    run = current;
    if (written) {
      wait.start(timing.runnerGraceMs, () => fail(SERVER_RESTARTED));
      queueMicrotask(() => guard(() => meet(current)));
    } else if (!socket) {
      // It has gone since it was ready: when it comes back, it gets the prompt again.
      wait.start(timing.runnerGraceMs, () => fail(RUNNER_LOST));
    }
    const { toSteer } = dialect;
    return {
      translator: current.translator,
      get isQueued() {
        // While the runner is away its silence means nothing.
        return run === current && !socket;
      },
      get position() {
        return current.position;
      },
      written(seq) {
        current.written = seq;
        send(dialect.toAck?.(turnId, seq));
        if (unwritten?.turnId === turnId && unwritten.seq <= seq) unwritten = undefined;
      },
      stop() {
        if (current.isStopping || run !== current) return;
        current.isStopping = true;
        send(dialect.toStop(prompt));
      },
      answer(answer) {
        const { questionId } = answer;
        current.answers.push(answer);
        send(dialect.toAnswer(prompt, answer));
        if (dialect.settled) sink.event(dialect.settled(questionId, answer.answer));
      },
      ...(toSteer && {
        steer(message: Steer) {
          current.steers.push(message);
          send(toSteer(prompt, message));
        },
      }),
      expire(questionId) {
        send(dialect.toExpiry(prompt, questionId));
        if (dialect.settled) sink.event(dialect.settled(questionId));
      },
      release() {
        current.isReleased = true;
        if (run !== current) return;
        if (current.position > current.written) unwritten = { turnId, seq: current.position };
        // A runner that names its turns queues by itself. Another one has to end first what it was told to stop.
        const mustEnd = dialect.mustEndFirst && current.isStopping && socket !== undefined;
        if (mustEnd) wait.start(timing.abortMs, finish);
        else finish();
      },
    };
  }

  function greet(given: Hello): void {
    hello = given;
    const { turnId } = given;
    if (run) resume(run);
    if (turnId !== null && turnId !== run?.prompt.turnId && !options.isOpen(turnId)) {
      send({ type: 'stop', turnId });
    }
    if (!run) options.onReady();
  }

  /** A turn was taken over, and its runner may be here. */
  function meet(current: Run): void {
    if (run !== current || !hello) return;
    const isBehind = unwritten?.turnId === current.prompt.turnId && current.dialect.saysHello;
    if (!isBehind) {
      resume(current);
      return;
    }
    // What still comes on this connection follows frames that are lost.
    hello = undefined;
    socket?.close(COME_AGAIN, 'send again what was not confirmed');
  }

  /** Goes on with the turn that ran when the connection, or this process, was lost. */
  function resume(current: Run): void {
    if (run !== current || !hello) return;
    const { turnId } = current.prompt;
    const givenTo = options.runnerOf(turnId);
    const isOther = givenTo !== undefined && givenTo !== runnerId;
    if (hello.turnId === turnId || hello.known.includes(turnId)) goOn(current);
    else if (isOther || current.dialect !== dialect) fail(SERVER_RESTARTED);
    // A deployed runner does not say whether it goes on: its next event does.
    else if (current.dialect.saysHello || !current.isGiven) {
      // The prompt never reached it.
      give(current);
      goOn(current);
    }
  }

  /** The runner has the prompt: it gets what was said to the turn while it was away. It knows which of that it has. */
  function goOn({ prompt, dialect, answers, steers, isStopping }: Run): void {
    wait.stop();
    for (const answer of answers) send(dialect.toAnswer(prompt, answer));
    for (const message of steers) send(dialect.toSteer?.(prompt, message));
    if (isStopping) send(dialect.toStop(prompt));
  }

  function lose(): void {
    socket = undefined;
    hello = undefined;
    options.onConnection(false);
    if (run?.isReleased) finish();
    else if (run) wait.start(timing.runnerGraceMs, () => fail(RUNNER_LOST));
  }

  function take(frame: string): void {
    const read = dialect && frames.read(frame, dialect);
    switch (read?.kind) {
      case 'hello':
        greet(read.hello);
        break;
      case 'bye':
        isLeaving = true;
        send({ type: 'pong' });
        break;
      case 'turn':
        if (hello) takeTurn(read, frame.length > limits.eventBytes);
        break;
      case 'event':
        if (frame.length > limits.eventBytes) options.onLimit('eventBytes');
        else options.onEvent(read.event);
        break;
      case 'ping':
        send({ type: 'pong' });
    }
  }

  /** `isLarge`: one of the events may be larger than it may be. */
  function takeTurn(said: RunnerTurnSaid, isLarge: boolean): void {
    const { turnId, seq } = said;
    if (run && (turnId === undefined || turnId === run.prompt.turnId)) {
      takeEvents(run, said, isLarge);
    } else if (turnId !== undefined && seq !== undefined) {
      if (options.isOpen(turnId)) unwritten = { turnId, seq };
      // The session has ended that turn: the runner need not keep the frame.
      else send(dialect?.toAck?.(turnId, seq));
    }
  }

  function takeEvents(current: Run, said: RunnerTurnSaid, isLarge: boolean): void {
    const { events, seq, isEnd, isHint } = said;
    if (seq !== undefined && seq <= current.position) {
      // Its confirmation was lost with the connection.
      if (seq <= current.written) send(current.dialect.toAck?.(current.prompt.turnId, seq));
      return;
    }
    if (current.isReleased) {
      if (isEnd) finish();
      return;
    }
    // A deployed runner does not say hello when it comes back.
    if (!isHint) wait.stop();
    // Before its events: the log keeps them with their position.
    if (seq !== undefined) current.position = seq;
    for (const event of events) {
      if (run !== current || current.isReleased) break;
      if (isLarge && isLargerThan(limits.eventBytes, event)) {
        options.onLimit('eventBytes');
        send(current.dialect.toStop(current.prompt));
        fail(TURN_TOO_LARGE);
        return;
      }
      current.sink.event(event);
    }
  }

  const host: AgentHost & {
    readonly isConnected: boolean;
    /** It takes prompts, though it may be busy. */
    readonly isPresent: boolean;
    connect(next: SessionSocket, id: string | undefined): SocketEvents;
    /** The turn has ended: the runner need not keep what is not in the log. */
    ended(turnId: string): void;
    close(code: number, reason: string): void;
  } = {
    get isConnected() {
      return socket !== undefined;
    },
    get isPresent() {
      return hello !== undefined && !isLeaving;
    },
    get isReady() {
      return host.isPresent && !run;
    },
    get needsHistory() {
      return hello?.needsHistory === true;
    },
    prompt: (prompt, sink) => begin(prompt, sink),
    attach: begin,
    connect(next, id = DEPLOYED) {
      if (socket && (id === DEPLOYED || id !== runnerId)) {
        next.close(ANOTHER_RUNNER, 'another runner is connected to this session');
        return { message: () => undefined, close: () => undefined };
      }
      const replaced = socket;
      socket = next;
      runnerId = id;
      dialect = dialectOf(id);
      isLeaving = false;
      hello = undefined;
      // It has lost its old connection, and knows it before we do.
      replaced?.close(1000, 'replaced by a newer connection');
      send(dialect.toInit(sessionId));
      options.onConnection(true);
      // A deployed runner takes prompts as soon as it is there.
      if (!dialect.saysHello) guard(() => greet({ turnId: null, known: [] }));
      return {
        message: (frame) => {
          if (socket === next) guard(() => take(frame));
        },
        close: () => {
          if (socket === next) guard(lose);
        },
      };
    },
    ended(turnId) {
      if (unwritten?.turnId !== turnId) return;
      send(dialect?.toAck?.(turnId, unwritten.seq));
      unwritten = undefined;
    },
    close(code, reason) {
      wait.stop();
      run = undefined;
      const closing = socket;
      socket = undefined;
      hello = undefined;
      try {
        closing?.close(code, reason);
      } catch {
        // It is gone already.
      }
    },
  };

  return host;
}
