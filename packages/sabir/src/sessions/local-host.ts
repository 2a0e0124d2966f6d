import { SERVER_RESTARTED } from '../core/errors.ts';
import type { Logger } from '../core/translator.ts';
import { withText } from '../core/without-content.ts';
import { runAgent } from '../sources/ai-sdk/agent-run.ts';
import type { Agent, SessionEvent } from '../turns/agent.ts';
import type { AgentHost } from './agent-hosts.ts';
import { type AgentWorker, createAgentWorker } from './agent-worker.ts';
import type { SessionTiming } from './options.ts';
import { createWrittenTranslator } from './runner-dialect.ts';

export type LocalHost = AgentHost & { close(): Promise<void> };

type LocalHostOptions = {
  sessionId: string;
  agent: () => Agent;
  timing: Pick<SessionTiming, 'questionMs' | 'stopMs'>;
  onReady(): void;
  onEvent(event: SessionEvent): void;
  logger: Logger | undefined;
};

/** An agent in this process: the session calls it, and no socket is between them. */
export function createLocalHost(options: LocalHostOptions): LocalHost {
  const { sessionId, timing, onReady, onEvent, logger } = options;
  let agent: Agent | undefined;
  let worker: AgentWorker | undefined;

  /** Makes the agent when it is first needed, and again for the next prompt if that failed. */
  function getWorker(): AgentWorker {
    if (worker) return worker;
    agent = options.agent();
    const { stopMs } = timing;
    const made = { sessionId, agent, stopMs, emit: onEvent, onFree: onReady, logger };
    worker = createAgentWorker(made);
    return worker;
  }

  function hasAgent(): boolean {
    try {
      return getWorker() !== undefined;
    } catch {
      // The prompt fails with this error, where its author can read it.
      return false;
    }
  }

  return {
    get isReady() {
      return worker?.isBusy !== true;
    },
    get needsHistory() {
      return hasAgent() && agent?.needsHistory === true;
    },
    prompt(prompt, sink) {
      try {
        return getWorker().run(prompt, sink, timing.questionMs);
      } catch (error) {
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
