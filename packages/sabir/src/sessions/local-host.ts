import { SERVER_RESTARTED, TURN_TOO_LARGE } from '../core/errors.ts';
import type { Logger } from '../core/translator.ts';
import { withText } from '../core/without-content.ts';
import { type AgentRun, runAgent } from '../sources/ai-sdk/agent-run.ts';
import { type Agent, type AgentFunction, type SessionEvent, toAgent } from '../turns/agent.ts';
import type { TurnSink } from '../turns/upstream.ts';
import type { AgentHost } from './agent-hosts.ts';
import { type AgentWorker, createAgentWorker } from './agent-worker.ts';
import { isLargerThan } from './event-size.ts';
import type { SessionLimits, SessionTiming } from './options.ts';
import { createWrittenTranslator } from './runner-dialect.ts';

export type LocalHost = AgentHost & { close(): Promise<void> };

type LocalHostOptions = {
  sessionId: string;
  agent: () => Agent | AgentFunction;
  timing: Pick<SessionTiming, 'questionMs' | 'stopMs'>;
  limits: Pick<SessionLimits, 'eventBytes'>;
  onReady(): void;
  onEvent(event: SessionEvent): void;
  onLimit(limit: 'eventBytes'): void;
  logger: Logger | undefined;
};

/** An agent in this process: the session calls it, and no socket is between them. */
export function createLocalHost(options: LocalHostOptions): LocalHost {
  const { sessionId, timing, limits, onReady, onEvent, logger } = options;
  let agent: Agent | undefined;
  let worker: AgentWorker | undefined;
  /** Why the agent could not be made, for the prompt that needs it. */
  let failure: { error: unknown } | undefined;

  /** Makes the agent when it is first needed, and again for the next prompt if that failed. */
  function getWorker(): AgentWorker {
    if (worker) return worker;
    agent = toAgent(options.agent());
    const { stopMs } = timing;
    const made = { sessionId, agent, stopMs, emit: onEvent, onFree: onReady, logger };
    worker = createAgentWorker(made);
    return worker;
  }

  function tryToMake(): void {
    failure = undefined;
    try {
      getWorker();
    } catch (error) {
      failure = { error };
    }
  }

  return {
    get isReady() {
      return worker?.isBusy !== true;
    },
    get needsHistory() {
      tryToMake();
      return agent?.needsHistory === true;
    },
    prompt(prompt, sink) {
      const event: TurnSink['event'] = (chunk) => {
        if (!isLargerThan(limits.eventBytes, chunk)) return sink.event(chunk);
        const { code, userMessage: message } = TURN_TOO_LARGE;
        options.onLimit('eventBytes');
        run.end({ status: 'failed', code, message });
      };
      const close: TurnSink['close'] = (outcome) => sink.close(outcome);
      let run: AgentRun;
      try {
        if (failure) throw failure.error;
        run = getWorker().run(prompt, { event, close }, timing.questionMs);
        return run;
      } catch (error) {
        failure = undefined;
        logger?.error?.('an agent could not be made', { sessionId, error: withText(error) });
        const fail = () => {
          throw error;
        };
        return runAgent({ prompt: fail }, prompt, sink);
      }
    },
    /** The agent ended with its process. */
    attach(prompt, sink, { chunks }) {
      const { code, userMessage: message } = SERVER_RESTARTED;
      queueMicrotask(() => sink.close({ status: 'failed', code, message }));
      const nothing = () => undefined;
      const translator = createWrittenTranslator(prompt, chunks);
      return { translator, isQueued: false, stop: nothing, answer: nothing, release: nothing };
    },
    async close() {
      await worker?.close();
    },
  };
}
