import { SabirError, UPSTREAM_DROPPED } from '../../core/errors.ts';
import type { UIMessage } from '../../core/message.ts';
import { type Agent, type AgentFunction, toAgent } from '../../turns/agent.ts';
import type { Upstream, User } from '../../turns/upstream.ts';
import { type AgentRun, runAgent } from './agent-run.ts';

export type AgentUpstreamOptions = {
  /** What was said in a session so far, where the application keeps it: `onFinish` is the place to. */
  history?(where: { sessionId: string; user: User }): Promise<UIMessage[]> | UIMessage[];
  /**
   * How long people have for an answer, and clients to run a tool, unless the agent says otherwise.
   *
   * @default 5 minutes for a tool; a question stays open until it is answered or the turn is stopped
   */
  questionMs?: number;
};

/** A prompt and the one before it, which it waits for. */
type Place = { run: AgentRun; over: Promise<unknown> };

/**
 * An agent behind a gateway: one for all sessions of it.
 *
 * ```ts
 * asUpstream(async function* ({ text, signal }) {
 *   for await (const delta of answer(text, signal)) yield { type: 'text-delta', delta };
 * });
 * ```
 *
 * What the generator leaves out (`start`, ids of texts, their starts and ends, `finish`) is added; an error it throws ends the
 * turn as failed, with its message. `asUpstream<ChatBody>(…)` names what the body is expected to be. The application that made
 * an `Agent` closes it.
 */
export function asUpstream<Body extends object = Record<string, unknown>>(
  agent: Agent<Body> | AgentFunction<Body>,
  options: AgentUpstreamOptions = {},
): Upstream {
  const { history, questionMs } = options;
  const given = toAgent(agent) as Agent;
  const restore = given.restore?.bind(given);
  const started = createStart(given);
  /** The latest prompt of each session, for an agent that takes one at a time. */
  const latest = new Map<string, Place>();

  return {
    ...(restore && { canWait: true }),
    async open({ sessionId, signal }) {
      signal.throwIfAborted();
      const runs = new Set<AgentRun>();
      let isClosed = false;
      return {
        get isClosed() {
          return isClosed;
        },
        prompt(prompt, sink) {
          let before = given.concurrent ? undefined : latest.get(sessionId);
          const run = runAgent(given, prompt, sink, {
            questionMs,
            async ready() {
              if (isClosed) throw new SabirError(UPSTREAM_DROPPED);
              await before?.over;
              before = undefined;
              await started(sessionId);
            },
            // A turn that has ended and whose agent does not stop keeps the next from beginning: that is no queue.
            isQueued: () => before !== undefined && (!before.run.isOver || before.run.isQueued),
          });
          runs.add(run);
          const over = Promise.all([before?.over, run.ended]).then(() => {
            runs.delete(run);
            if (latest.get(sessionId)?.run === run) latest.delete(sessionId);
          });
          if (!given.concurrent) latest.set(sessionId, { run, over });
          return run;
        },
        ...(history && { history: async (user) => history({ sessionId, user }) }),
        ...(restore && { waiting: async (chat) => restore({ ...chat, sessionId }) }),
        close() {
          isClosed = true;
          for (const run of runs) run.drop();
        },
      };
    },
  };
}

/** Starts the agent once, and again for the next prompt if that failed. */
function createStart(agent: Agent): (sessionId: string) => Promise<void> {
  const { signal } = new AbortController();
  let starting: Promise<void> | undefined;
  return async (sessionId) => {
    starting ??= agent.start?.({ sessionId, signal, emit: () => undefined });
    const attempt = starting;
    try {
      await attempt;
    } catch (error) {
      if (starting === attempt) starting = undefined;
      throw error;
    }
  };
}
