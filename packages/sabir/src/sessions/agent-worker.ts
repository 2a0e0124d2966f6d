import { startTimeout, type Timer } from '../core/timers.ts';
import type { Logger } from '../core/translator.ts';
import { within } from '../core/within.ts';
import { type AgentRun, runAgent } from '../sources/ai-sdk/agent-run.ts';
import type { Agent, SessionEvent } from '../turns/agent.ts';
import type { Prompt, TurnSink } from '../turns/upstream.ts';

type AgentWorkerOptions = {
  sessionId: string;
  agent: Agent;
  /** How long the agent may take to stop; for twice as long the next prompt waits for it. */
  stopMs: number;
  emit(event: SessionEvent): void;
  /** The agent has ended, or was given up. */
  onFree(): void;
  logger: Logger | undefined;
};

/** Has an agent answer one prompt at a time. An agent that does not stop is closed, and started anew for the next prompt. */
export function createAgentWorker(options: AgentWorkerOptions) {
  const { sessionId, agent, stopMs, emit, logger } = options;
  const closing = new AbortController();
  let ready: Promise<void> | undefined;
  let current: AgentRun | undefined;

  /** Once, and again if it failed. */
  function getReady(): Promise<void> {
    ready ??= (async () => {
      const { signal } = closing;
      await agent.start?.({ sessionId, signal, emit, ...(logger && { logger }) });
    })();
    ready.catch(() => {
      ready = undefined;
    });
    return ready;
  }

  async function closeAgent(): Promise<void> {
    const done = (async () => agent.close?.())().catch((error: unknown) => {
      logger?.warn('an agent did not close', { agent: agent.name, error });
    });
    await within(stopMs, done);
  }

  async function giveUp(): Promise<void> {
    logger?.warn('an agent did not stop, and is started anew', { agent: agent.name });
    ready = undefined;
    await closeAgent();
  }

  function warnOfSkipped({ translator }: AgentRun): void {
    const { unknown, malformed } = translator.stats;
    const skipped = { ...unknown, ...malformed };
    if (Object.keys(skipped).length === 0) return;
    logger?.warn('an agent yielded what is no chunk', { agent: agent.name, skipped });
  }

  async function follow(run: AgentRun, over: Promise<void>): Promise<void> {
    let timer: Timer | undefined;
    const tooLate = over.then(
      () =>
        new Promise<'late'>((resolve) => {
          timer = startTimeout(2 * stopMs, () => resolve('late'));
        }),
    );
    const how = await Promise.race([run.ended, tooLate]);
    timer?.clear();
    warnOfSkipped(run);
    if (how === 'late') await giveUp();
    if (current === run) current = undefined;
    options.onFree();
  }

  return {
    get isBusy() {
      return current !== undefined;
    },
    /** Gets the agent ready before there is a prompt; a failure fails the first prompt. */
    start(): void {
      getReady().catch(() => undefined);
    },
    /** MUST NOT be called while it `isBusy`. */
    run(prompt: Prompt, sink: TurnSink, questionMs: number): AgentRun {
      const over = Promise.withResolvers<void>();
      const close: TurnSink['close'] = (outcome) => {
        over.resolve();
        sink.close(outcome);
      };
      const run = runAgent(
        agent,
        prompt,
        { event: sink.event, close },
        { ready: getReady, emit, questionMs, isMessageIdFixed: true },
      );
      const { release, stop } = run;
      current = run;
      void follow(run, over.promise);
      return Object.assign(run, {
        stop(reason?: unknown) {
          over.resolve();
          stop(reason);
        },
        release() {
          over.resolve();
          release();
        },
      });
    },
    async close(): Promise<void> {
      closing.abort();
      await closeAgent();
    },
  };
}

export type AgentWorker = ReturnType<typeof createAgentWorker>;
