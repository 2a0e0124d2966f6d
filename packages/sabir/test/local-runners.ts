/** Runners in the process of the test, on real sockets: one for each session that wants one. */
import { WebSocket } from 'ws';
import { type Agent, Runner, type RunnerOptions } from '../src/sessions/index.ts';

export type LocalRunnersOptions = Omit<RunnerOptions, 'sessionId' | 'agent' | 'WebSocket'> & {
  /** Makes the agent of a session. */
  agent(sessionId: string): Agent;
};

export function createLocalRunners({ agent, ...options }: LocalRunnersOptions) {
  const runners = new Map<string, Runner>();
  const closing = new Set<Promise<void>>();
  let isClosed = false;

  function dismiss(sessionId: string): void {
    const runner = runners.get(sessionId);
    if (!runner) return;
    runners.delete(sessionId);
    const end = runner.close().finally(() => closing.delete(end));
    closing.add(end);
  }

  return {
    get size() {
      return runners.size;
    },
    /** For `onRunnerWanted`. */
    call(sessionId: string): void {
      if (isClosed || runners.has(sessionId)) return;
      const runner = new Runner({ ...options, sessionId, agent: agent(sessionId), WebSocket });
      runners.set(sessionId, runner);
      runner.start();
    },
    /** For `onSessionClosed`. */
    dismiss,
    async close(): Promise<void> {
      isClosed = true;
      for (const sessionId of [...runners.keys()]) dismiss(sessionId);
      await Promise.all(closing);
    },
  };
}
