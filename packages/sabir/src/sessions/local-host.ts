import { SERVER_RESTARTED } from '../core/errors.ts';
import type { Logger } from '../core/translator.ts';
import type { Agent, SessionEvent } from '../turns/agent.ts';
import type { AgentHost } from './agent-hosts.ts';
import { createAgentWorker } from './agent-worker.ts';
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
  const agent = options.agent();
  const worker = createAgentWorker({
    sessionId,
    agent,
    stopMs: timing.stopMs,
    emit: onEvent,
    onFree: onReady,
    logger,
  });
  worker.start();
  return {
    get isReady() {
      return !worker.isBusy;
    },
    needsHistory: agent.needsHistory === true,
    prompt: (prompt, sink) => worker.run(prompt, sink, timing.questionMs),
    /** The agent ended with its process. */
    attach(prompt, sink, { chunks }) {
      const { code, userMessage: message } = SERVER_RESTARTED;
      queueMicrotask(() => sink.close({ status: 'failed', code, message }));
      const nothing = () => undefined;
      const translator = createWrittenTranslator(prompt, chunks);
      return { translator, isQueued: false, stop: nothing, answer: nothing, release: nothing };
    },
    close: () => worker.close(),
  };
}
