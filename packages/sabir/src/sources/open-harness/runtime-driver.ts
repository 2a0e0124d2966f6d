import { lastUserText, type Trigger } from '../../core/chat-request.ts';
import {
  NO_USER_MESSAGE,
  RUN_ABORTED,
  RUN_FAILED,
  RUNTIME_NOT_READY,
  SabirError,
} from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import { LiveLog } from '../../core/live-log.ts';
import type { UIMessage } from '../../core/message.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import type { RunSnapshot, Runtime, RuntimeStatus } from './events.ts';
import type { OpenHarnessOptions } from './options.ts';
import { createTranslator, type OpenHarnessTranslator, warn } from './translate.ts';

type Turn = { translator: OpenHarnessTranslator; log: LiveLog; unsubscribe?: () => void };

export interface RuntimeDriver {
  /** The log of the turn that is running, if one is. */
  readonly live: LiveLog | undefined;
  /** Running or paused: the next message belongs to this run. */
  isOccupied(): boolean;
  /** Takes the last user message to the runtime. What comes of it, failure too, is in the log. */
  send(messages: UIMessage[]): LiveLog;
  /** Ends the turn on the person's behalf, quietly, and then the run behind it. */
  stop(): void;
}

const STOPPED = 'stopped by the user';
const CONTINUED = 'continued';

/** One driver a runtime, however often a factory gives the same one. */
export function createDrivers(options: OpenHarnessOptions) {
  const drivers = new WeakMap<Runtime, RuntimeDriver>();
  return (value: unknown): RuntimeDriver => {
    const runtime = assertRuntime(value);
    const driver = drivers.get(runtime) ?? createRuntimeDriver(runtime, options);
    drivers.set(runtime, driver);
    return driver;
  };
}

/**
 * Drives one runtime, turn after turn: decides from its status whether a message starts it, goes
 * into the running flow, or resumes it. Owns the running turn and its subscription; whatever ends
 * the turn also unsubscribes. Nothing here throws into the runtime.
 */
function createRuntimeDriver(runtime: Runtime, options: OpenHarnessOptions): RuntimeDriver {
  // Without it there is only an agent, which nobody starts and no flow is around.
  const hasRun = 'run' in runtime;
  let turn: Turn | undefined;
  let input: unknown;
  /** Counts what was started: one that settles late must not end a turn that it did not start. */
  let runs = 0;
  /** The run is over, or will be: a runtime that still says "running" is not believed. */
  let isOver = false;

  function status(): RuntimeStatus | undefined {
    try {
      const now = runtime.getSnapshot().status;
      if (now !== 'running') isOver = false;
      return isOver ? 'aborted' : now;
    } catch {
      // A runtime that cannot tell is treated by what it can do.
      return undefined;
    }
  }

  function isOccupied(): boolean {
    const now = status();
    return turn !== undefined || now === 'running' || now === 'paused';
  }

  /** How a message gets to the runtime in the status it is in; undefined if it cannot. */
  function wayIn(): 'start' | 'send' | 'resume' | undefined {
    const now = status();
    if (now === 'paused') return 'resume';
    if (turn || now === 'running' || (!now && !hasRun)) {
      // Releases that have `resume` for it take no messages while they run.
      return runtime.dispatch && !runtime.resume ? 'send' : undefined;
    }
    return (!now || now === 'idle') && hasRun ? 'start' : undefined;
  }

  /** Listens, and starts what there is to start: how that settles may be all that is ever said. */
  async function follow(start?: () => Promise<RunSnapshot>): Promise<void> {
    const run = start ? ++runs : runs;
    try {
      subscribe();
      // It may have spoken, and ended, while it was being subscribed to.
      if (!turn || !start) return;
      isOver = false;
      const settled = (await start())?.status ?? status();
      if (run !== runs) return;
      // Somebody else may resume what is paused.
      isOver = settled !== 'paused';
      end(OUTCOMES[settled ?? 'complete'] ?? OUTCOMES.complete);
    } catch (error) {
      if (run !== runs) return;
      isOver = true;
      end(toFailure(error), error ?? undefined);
    }
  }

  function start(text: string, messages: UIMessage[]): Promise<RunSnapshot> {
    const { toInput } = options;
    input = toInput ? toInput(text, messages) : { message: text };
    return runtime.run(input);
  }

  function resume(message: string): Promise<RunSnapshot> {
    if (runtime.resume) return runtime.resume(message);
    runtime.dispatch?.({ type: 'resume', message });
    return input ? runtime.run(input) : runtime.run();
  }

  function beginTurn(): LiveLog {
    const messageId = (options.generateMessageId ?? createId)();
    const translator =
      turn?.translator.continueAs(messageId) ??
      createTranslator({ ...options, bare: !hasRun && undefined, messageId });
    end({ status: 'stopped', reason: CONTINUED });
    const begun: Turn = { translator, log: new LiveLog() };
    begun.log.onAbandoned = () => {
      if (turn === begun) stop();
    };
    turn = begun;
    return begun.log;
  }

  function subscribe(): void {
    const begun = turn;
    if (!begun) return;
    begun.unsubscribe = runtime.onEvent((event) => {
      if (turn !== begun) return;
      begun.log.append(begun.translator.push(event));
      if (!begun.translator.ended) return;
      isOver = hasRun;
      close(begun);
    });
    if (turn !== begun) attempt(begun.unsubscribe);
  }

  function end(outcome?: TurnOutcome, error?: unknown): void {
    if (!turn) return;
    turn.log.append(turn.translator.end(outcome, error));
    close(turn);
  }

  function close({ log, unsubscribe }: Turn): void {
    turn = undefined;
    log.close();
    attempt(unsubscribe);
  }

  function stop(): void {
    const isRunning = isOccupied();
    end({ status: 'stopped', reason: STOPPED });
    if (!isRunning) return;
    isOver = hasRun;
    attempt(() =>
      runtime.stop ? runtime.stop() : runtime.dispatch?.({ type: 'abort', reason: STOPPED }),
    );
  }

  /** The turn is over already: what the runtime throws now is only worth a line in the log. */
  async function attempt(action: (() => unknown) | undefined): Promise<void> {
    try {
      await action?.();
    } catch (error) {
      warn(options, 'the runtime threw', { error: (error as Error)?.name });
    }
  }

  return {
    get live() {
      return turn?.log;
    },
    isOccupied,
    send(messages) {
      const text = lastUserText(messages);
      const way = wayIn();
      // What cannot be delivered must not end the turn that is running.
      try {
        if (text === undefined) throw new SabirError(NO_USER_MESSAGE);
        if (!way) throw new SabirError(RUNTIME_NOT_READY);
        // Lands at the next node's start; each message is a command of its own.
        if (way === 'send') runtime.dispatch?.({ type: 'send', message: text, runId: createId() });
      } catch (error) {
        return failedLog(options, error);
      }
      const log = beginTurn();
      if (way === 'start') void follow(() => start(text, messages));
      else void follow(way === 'resume' ? () => resume(text) : undefined);
      return log;
    },
    stop,
  };
}

/** What run() settling in a status means, where no event said it. */
const OUTCOMES: { [Status in RuntimeStatus]?: TurnOutcome } = {
  complete: { status: 'finished' },
  paused: { status: 'paused' },
  aborted: { status: 'failed', code: RUN_ABORTED.code },
};

/** Says what is wrong before anything is sent, where a runtime could not work at all. */
export function assertRuntime(value: unknown): Runtime {
  if (typeof (value as Partial<Runtime> | null | undefined)?.onEvent === 'function') {
    return value as Runtime;
  }
  throw new SabirError(
    RUNTIME_NOT_READY,
    `Expected a runtime (run, onEvent, getSnapshot) or a function that gives one, got ${typeof value}.`,
  );
}

function toFailure(error: unknown): TurnOutcome {
  return { status: 'failed', code: error instanceof SabirError ? error.code : RUN_FAILED.code };
}

/** The log of a turn that never reached a runtime. */
export function endedLog(
  options: OpenHarnessOptions & { messageId?: string },
  outcome?: TurnOutcome,
  error?: unknown,
): LiveLog {
  const log = new LiveLog();
  log.append(createTranslator(options).end(outcome, error));
  log.close();
  return log;
}

export function failedLog(options: OpenHarnessOptions, error: unknown): LiveLog {
  return endedLog(options, toFailure(error), error ?? undefined);
}

/**
 * A client that has stored a tool's output or an approval posts the assistant's message back.
 * A flow's tools run beside the flow, so there is nothing to prompt again.
 */
export function acknowledge(messages: UIMessage[], trigger: Trigger): LiveLog | undefined {
  const last = messages.at(-1);
  if (trigger !== 'submit-message' || last?.role !== 'assistant') return undefined;
  return endedLog({ messageId: last.id });
}
