import { lastUserText, type Trigger } from '../../chat-request.ts';
import {
  NO_USER_MESSAGE,
  RUN_ABORTED,
  RUN_FAILED,
  RUNTIME_NOT_READY,
  SabirError,
  toErrorText,
} from '../../errors.ts';
import { createId } from '../../id.ts';
import { LiveLog } from '../../live-log.ts';
import type { UIMessage } from '../../message.ts';
import type { TurnOutcome } from '../../outcome.ts';
import type { RunSnapshot, Runtime, RuntimeStatus } from './events.ts';
import type { OpenHarnessOptions, OpenHarnessTransportOptions } from './options.ts';
import { createTranslator, type OpenHarnessTranslator } from './translate.ts';

type Turn = { translator: OpenHarnessTranslator; log: LiveLog; unsubscribe?: () => void };

export interface RuntimeDriver {
  /** The log of the turn that is running, if one is. */
  readonly live: LiveLog | undefined;
  readonly status: RuntimeStatus | undefined;
  /** Takes the last user message to the runtime. What comes of it, failure too, is in the log. */
  send(messages: UIMessage[]): LiveLog;
  /** Ends the turn on the person's behalf, quietly, and then the run behind it. */
  stop(): void;
}

const STOPPED = 'stopped by the user';
const CONTINUED = 'continued in another message';

/**
 * Drives one runtime, turn after turn: decides from its status whether a message starts it, goes
 * into the running flow, or resumes it. Owns the running turn and its subscription; whatever ends
 * the turn also unsubscribes. Nothing here throws into the runtime.
 */
export function createRuntimeDriver(
  runtime: Runtime,
  options: OpenHarnessTransportOptions,
): RuntimeDriver {
  let turn: Turn | undefined;
  /** Counts calls of run(): one that settles late must not end a turn that it did not start. */
  let runs = 0;

  function status(): RuntimeStatus | undefined {
    try {
      return runtime.getSnapshot().status;
    } catch {
      // A runtime that cannot tell is treated by what it can do.
      return undefined;
    }
  }

  function beginTurn(): Turn {
    const messageId = (options.generateMessageId ?? createId)();
    const translator =
      turn?.translator.continueAs(messageId) ??
      // Only an agent that has no run() of its own, and so no flow, ends a turn by itself.
      createTranslator({ ...options, bare: 'run' in runtime ? false : undefined, messageId });
    end({ status: 'stopped', reason: CONTINUED });
    const begun: Turn = { translator, log: new LiveLog() };
    begun.log.onAbandoned = () => {
      if (turn === begun && !options.detachOnAbort) stop();
    };
    turn = begun;
    return begun;
  }

  function subscribe(begun: Turn): void {
    begun.unsubscribe = runtime.onEvent((event) => {
      if (turn !== begun) return;
      begun.log.append(begun.translator.push(event));
      if (begun.translator.ended) close(begun);
    });
  }

  function deliver(text: string, messages: UIMessage[], isRunning: boolean): void {
    const now = status();
    if (runtime.dispatch && (isRunning || (!now && !runtime.run))) {
      // Lands at the next node's start; each message is a command of its own.
      runtime.dispatch({ type: 'send', message: text, runId: createId() });
    } else if (now === 'paused') {
      if (!runtime.resume) runtime.dispatch?.({ type: 'resume', message: text });
      follow(runtime.resume ? runtime.resume(text) : runtime.run());
    } else if ((!now || now === 'idle') && runtime.run) {
      const { toInput } = options;
      follow(runtime.run(toInput ? toInput(text, messages) : { message: text }));
    } else {
      throw new SabirError(RUNTIME_NOT_READY, `Its status is ${now}.`);
    }
  }

  /** The run may end without a terminal event: its promise then says how. */
  async function follow(running: Promise<RunSnapshot>): Promise<void> {
    const run = ++runs;
    try {
      const snapshot = await running;
      if (run === runs) end(OUTCOMES[snapshot?.status ?? status() ?? 'idle']);
    } catch (error) {
      if (run === runs) fail(error);
    }
  }

  function fail(error: unknown): void {
    end(toFailure(error), error ?? undefined);
  }

  function end(outcome?: TurnOutcome, error?: unknown): void {
    if (!turn) return;
    turn.log.append(turn.translator.end(outcome, error));
    close(turn);
  }

  function close({ log, unsubscribe }: Turn): void {
    turn = undefined;
    log.close();
    attempt(() => unsubscribe?.());
  }

  function stop(): void {
    if (!turn) return;
    end({ status: 'stopped', reason: STOPPED });
    attempt(() => {
      if (runtime.stop) runtime.stop();
      else runtime.dispatch?.({ type: 'abort', resumable: false, reason: STOPPED });
    });
  }

  /** The turn is over already: what the runtime throws now is only worth a line in the log. */
  function attempt(action: () => void): void {
    try {
      action();
    } catch (error) {
      options.logger?.warn('the runtime threw', { error: toErrorText(error) });
    }
  }

  return {
    get live() {
      return turn?.log;
    },
    get status() {
      return status();
    },
    send(messages) {
      const isRunning = turn !== undefined || status() === 'running';
      const begun = beginTurn();
      try {
        const text = lastUserText(messages);
        if (text === undefined) throw new SabirError(NO_USER_MESSAGE);
        subscribe(begun);
        deliver(text, messages, isRunning);
      } catch (error) {
        fail(error);
      }
      return begun.log;
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
    `Expected a runtime (run, onEvent, getSnapshot) or a function that returns one, got ${typeof value}.`,
  );
}

function toFailure(error: unknown): TurnOutcome {
  return { status: 'failed', code: error instanceof SabirError ? error.code : RUN_FAILED.code };
}

/** The log of a turn that never reached a runtime. */
export function endedLog(
  options: OpenHarnessOptions & { messageId?: string },
  outcome: TurnOutcome,
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
  return endedLog({ messageId: last.id }, { status: 'finished' });
}
