import type { Chunk } from '../../core/chunks.ts';
import { toSteeringChunk, toSteeringRefusal } from '../../core/steering.ts';
import type { Agent } from '../../turns/agent.ts';
import type { Steer } from '../../turns/log.ts';
import type { Prompt } from '../../turns/upstream.ts';

/** Messages for one run of an agent: gives each to the agent once, and shows whether the agent has taken it. */
export function createRunSteering(
  agent: Pick<Agent, 'steer'>,
  prompt: Prompt,
  show: (chunk: Chunk) => void,
) {
  const opened = Promise.withResolvers<void>();
  const given = new Set<string>();
  /** Messages that the agent's own stream has shown. */
  const shown = new Set<unknown>();

  async function take({ id, text, attachments, by }: Steer): Promise<boolean> {
    if (!agent.steer) return false;
    await opened.promise;
    const { sessionId, chatId, chatKey, turnId } = prompt;
    const user = { id: by?.userId ?? prompt.user.id };
    return agent.steer({ sessionId, chatId, chatKey, turnId, id, user, text, attachments });
  }

  return {
    /** The agent has the prompt. */
    open: opened.resolve,
    see(chunk: unknown): void {
      const { type, id } = Object(chunk) as { type?: unknown; id?: unknown };
      if (type === 'steering-message') shown.add(id);
    },
    /** Rejects with what the agent throws. */
    async steer(message: Steer): Promise<void> {
      // A session sends it again when its runner comes back.
      if (given.has(message.id)) return;
      given.add(message.id);
      let isTaken = false;
      try {
        isTaken = (await take(message)) === true;
      } finally {
        if (!isTaken) show(toSteeringRefusal(message));
        else if (!shown.has(message.id)) show(toSteeringChunk(message));
      }
    },
  };
}
