import { type ErrorKind, RUNNER_LOST, SERVER_RESTARTED, TURN_TOO_LARGE } from '../core/errors.ts';
import {
  countSkipped,
  type Logger,
  type Translator,
  type TranslatorStats,
} from '../core/translator.ts';
import { createV2RunnerDialect } from '../sources/agent-ops/runner-dialect.ts';
import type { SessionEvent } from '../turns/agent.ts';
import type { Answer } from '../turns/log.ts';
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
import { parseFrame } from './parse-frame.ts';
import {
  createRunnerDialect,
  createWrittenTranslator,
  type RunnerDialect,
} from './runner-dialect.ts';

/** A close code of ours. The runner that gets it tries again, less and less often. */
const ANOTHER_RUNNER = 4409;

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
  readonly translator: Translator<unknown>;
  /** The frame of the turn that came last. */
  position: number;
  /** Given while the turn runs; sent again after a drop, since the first one counts. */
  readonly answers: Answer[];
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
  const skipped: TranslatorStats = { unknown: {}, malformed: {} };
  let socket: SessionSocket | undefined;
  let runnerId = '';
  let dialect = dialectOf(runnerId);
  /** What the runner has said of itself, since it is connected. */
  let hello: Hello | undefined;
  let run: Run | undefined;
  let callOff: (() => void) | undefined;

  /** One of ours has an id; a deployed one has none. */
  function dialectOf(id: string | undefined): RunnerDialect {
    if (id !== undefined) return createRunnerDialect(timing);
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

  function wait(ms: number, then: () => void): void {
    callOff?.();
    callOff = clock.after(ms, () => {
      callOff = undefined;
      guard(then);
    });
  }

  function stopWaiting(): void {
    callOff?.();
    callOff = undefined;
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
    stopWaiting();
    queueMicrotask(() => {
      if (hello && !run) options.onReady();
    });
  }

  function give(given: Run): void {
    options.setRunner(given.prompt.turnId, runnerId);
    send(dialect.toPrompt(given.prompt));
  }

  function begin(prompt: Prompt, sink: TurnSink, written?: Written): UpstreamTurn {
    const current: Run = {
      prompt,
      sink,
      translator: dialect.createTranslator(prompt, written?.chunks ?? []),
      position: written?.mark ?? 0,
      answers: [],
      isStopping: false,
      isReleased: false,
    };
    run = current;
    if (!written) {
      give(current);
      // It has gone since it was ready: when it comes back, it gets the prompt again.
      if (!socket) wait(timing.runnerGraceMs, () => fail(RUNNER_LOST));
    } else {
      // After a restart the runner's hello says whether it goes on.
      wait(timing.runnerGraceMs, () => fail(SERVER_RESTARTED));
      if (hello && dialect.saysHello) queueMicrotask(() => guard(() => resume(current)));
    }
    return {
      translator: current.translator,
      get isQueued() {
        // While the runner is away its silence means nothing.
        return run === current && !socket;
      },
      get position() {
        return current.position;
      },
      written: (seq) => send(dialect.toAck?.(prompt.turnId, seq)),
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
      expire(questionId) {
        send(dialect.toExpiry(prompt, questionId));
        if (dialect.settled) sink.event(dialect.settled(questionId));
      },
      release() {
        current.isReleased = true;
        if (run !== current) return;
        // A runner that names its turns queues by itself. Another one has to end first what it was told to stop.
        if (!dialect.mustEndFirst || current.translator.ended || !current.isStopping) finish();
        else wait(timing.abortMs, finish);
      },
    };
  }

  function greet(given: Hello): void {
    hello = given;
    const ours = run?.prompt.turnId;
    if (run) resume(run);
    if (given.turnId !== null && given.turnId !== ours)
      send({ type: 'stop', turnId: given.turnId });
    if (!run) options.onReady();
  }

  /** Goes on with the turn that ran when the connection, or this process, was lost. */
  function resume(current: Run): void {
    if (run !== current || !hello) return;
    const { turnId } = current.prompt;
    const givenTo = options.runnerOf(turnId);
    if (hello.turnId === turnId || hello.known.includes(turnId)) goOn(current);
    else if (givenTo === runnerId || givenTo === undefined) {
      // The prompt never reached it.
      stopWaiting();
      give(current);
    } else fail(SERVER_RESTARTED);
  }

  /** It was only the connection: the runner sends what it has, and gets what it has missed. */
  function goOn({ prompt, answers, isStopping }: Run): void {
    stopWaiting();
    for (const answer of answers) send(dialect.toAnswer(prompt, answer));
    if (isStopping) send(dialect.toStop(prompt));
  }

  function lose(): void {
    socket = undefined;
    hello = undefined;
    options.onConnection(false);
    if (run?.isReleased) finish();
    else if (run) wait(timing.runnerGraceMs, () => fail(RUNNER_LOST));
    else options.onReady();
  }

  function take(frame: string): void {
    let value: unknown;
    try {
      value = parseFrame(frame);
    } catch {
      skip('(no JSON)');
      return;
    }
    const read = dialect.read(value);
    switch (read.kind) {
      case 'hello':
        greet(read.hello);
        break;
      case 'turn':
        if (run && (read.turnId === undefined || read.turnId === run.prompt.turnId)) {
          takeEvents(run, read, frame.length > limits.eventBytes);
        } else if (read.turnId !== undefined && read.seq !== undefined) {
          // The session has ended that turn: the runner need not keep the frame.
          send(dialect.toAck?.(read.turnId, read.seq));
        }
        break;
      case 'event':
        if (frame.length > limits.eventBytes) options.onLimit('eventBytes');
        else options.onEvent(read.event);
        break;
      case 'ping':
        send({ type: 'pong' });
        break;
      case 'malformed':
        skip(read.type);
    }
  }

  /** `isLarge`: one of the events may be larger than it may be. */
  function takeEvents(
    current: Run,
    { events, seq }: { events: unknown[]; seq?: number },
    isLarge: boolean,
  ): void {
    if (seq !== undefined && seq <= current.position) return;
    // A runner of another make does not say hello when it comes back.
    stopWaiting();
    if (current.isReleased) {
      for (const event of events) current.translator.push(event);
      if (current.translator.ended) finish();
      return;
    }
    for (const event of events) {
      if (run !== current || current.isReleased) break;
      if (isLarge && isLargerThan(limits.eventBytes, event)) {
        options.onLimit('eventBytes');
        send(dialect.toStop(current.prompt));
        fail(TURN_TOO_LARGE);
        return;
      }
      current.sink.event(event);
    }
    if (seq !== undefined) current.position = seq;
  }

  function skip(type: string): void {
    const key = countSkipped(skipped, 'malformed', type.slice(0, 100));
    if (key) logger?.warn('a frame of the runner was skipped', { sessionId, type: key });
  }

  const host: AgentHost & {
    readonly isConnected: boolean;
    connect(next: SessionSocket, id: string | undefined): SocketEvents;
    close(code: number, reason: string): void;
  } = {
    get isConnected() {
      return socket !== undefined;
    },
    get isReady() {
      return hello !== undefined && !run;
    },
    get needsHistory() {
      return hello?.needsHistory === true;
    },
    prompt: (prompt, sink) => begin(prompt, sink),
    attach: begin,
    connect(next, id) {
      if (socket && (id === undefined || id !== runnerId)) {
        next.close(ANOTHER_RUNNER, 'another runner is connected to this session');
        return { message: () => undefined, close: () => undefined };
      }
      // It has lost its old connection, and knows it before we do.
      socket?.close(1000, 'replaced by a newer connection');
      const isOther = (id ?? '') !== runnerId;
      socket = next;
      runnerId = id ?? '';
      if (isOther || !run) dialect = dialectOf(id);
      send(dialect.toInit(sessionId));
      options.onConnection(true);
      // A deployed runner takes prompts as soon as it is there, and goes on with its turn, or does not.
      hello = dialect.saysHello ? undefined : { turnId: null, known: [] };
      if (hello && !run) options.onReady();
      return {
        message: (frame) => {
          if (socket === next) guard(() => take(frame));
        },
        close: () => {
          if (socket === next) guard(lose);
        },
      };
    },
    close(code, reason) {
      stopWaiting();
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
