/** Agents that are made elsewhere, as sessions want them: one each, one prompt at a time. */
import type { Chunk } from '../core/chunks.ts';
import { toSource } from '../core/until-aborted.ts';
import { unlessAborted } from '../core/within.ts';
import type { Agent, AgentChunks, AgentPrompt, AgentStart } from '../sessions/index.ts';

/** An agent that is made when it is needed; if making it failed, it is made again the next time. */
export function lazyAgent(name: string, make: () => Promise<Agent>): Agent {
  let made: Agent | undefined;
  return {
    name,
    get needsHistory() {
      // The session asks before the agent is made: too much history is better than too little.
      return made ? (made.needsHistory ?? false) : true;
    },
    async start(where) {
      made ??= await make();
      await made.start?.(where);
    },
    async prompt(prompt) {
      made ??= await make();
      return made.prompt(prompt);
    },
    async close() {
      await made?.close?.();
    },
  };
}

/** One agent for all sessions. Unless it is `concurrent`, their prompts wait for each other. */
export function shareAgent(agent: Agent) {
  let last: Promise<void> = Promise.resolve();
  const { name, needsHistory } = agent;

  async function* takeTurns(prompt: AgentPrompt): AsyncGenerator<Chunk> {
    const { signal } = prompt;
    const before = last;
    const { promise, resolve } = Promise.withResolvers<void>();
    last = before.then(() => promise);
    try {
      await unlessAborted(before, signal);
      yield* readToItsEnd(await agent.prompt(prompt), signal);
    } finally {
      resolve();
    }
  }

  const forSession = (): Agent => ({
    name,
    ...(needsHistory !== undefined && { needsHistory }),
    async start(where: AgentStart) {
      await agent.start?.(where);
    },
    prompt: agent.concurrent ? (prompt) => agent.prompt(prompt) : takeTurns,
  });
  return { forSession, close: async () => agent.close?.() };
}

/** Ends when the answer has, also where it was left early: only then the next prompt may begin. */
async function* readToItsEnd(chunks: AgentChunks, signal: AbortSignal): AsyncGenerator<Chunk> {
  const source = toSource<Chunk>(chunks);
  const leave = () => source.leave();
  signal.addEventListener('abort', leave, { once: true });
  try {
    for (let next = await source.next(); !next.done; next = await source.next()) yield next.value;
  } finally {
    signal.removeEventListener('abort', leave);
    await source.leave();
  }
}
