/** Runners in the same process as the sessions they serve: each comes when its session wants it. */
import { WebSocket } from 'ws';
import { withText } from '../../core/without-content.ts';
import { Runner, type RunnerOptions } from '../../sessions/index.ts';

export type LocalRunnersOptions = Omit<RunnerOptions, 'sessionId' | 'agent' | 'WebSocket'> & {
  /** The agent of a session; made when there is something to do. */
  agent(sessionId: string): RunnerOptions['agent'];
};

export function createLocalRunners({ agent, ...options }: LocalRunnersOptions) {
  const runners = new Map<string, Runner>();
  const closing = new Set<Promise<void>>();
  let isClosed = false;

  async function dismiss(sessionId: string): Promise<void> {
    const runner = runners.get(sessionId);
    runners.delete(sessionId);
    const end = Promise.resolve(runner?.close()).catch((error: unknown) => {
      options.logger?.warn('a runner did not close', { sessionId, error });
    });
    closing.add(end);
    await end;
    closing.delete(end);
  }

  return {
    get size() {
      return runners.size;
    },
    /** A session has something to do. */
    call(sessionId: string): void {
      if (isClosed || runners.has(sessionId)) return;
      try {
        const runner = new Runner({ ...options, sessionId, agent: agent(sessionId), WebSocket });
        runners.set(sessionId, runner);
        runner.start();
      } catch (error) {
        options.logger?.error?.('an agent could not be made', {
          sessionId,
          error: withText(error),
        });
      }
    },
    dismiss: (sessionId: string) => void dismiss(sessionId),
    async close(): Promise<void> {
      isClosed = true;
      await Promise.all([...[...runners.keys()].map(dismiss), ...closing]);
    },
  };
}

export type LocalRunners = ReturnType<typeof createLocalRunners>;
