import type { Chunk } from '../../src/core/chunks.ts';
import type { Agent } from '../../src/turns/agent.ts';
import type { Prompt } from '../../src/turns/upstream.ts';
import { type PromptRun, runPrompt, type ShownQuestion } from '../run-prompt.ts';

export type Played = PromptRun & { error?: Error };

/** In place of an answer: the time of the question runs out. */
export const EXPIRED = Symbol('expired');

type Given = Partial<Prompt> & {
  model?: string;
  /** Stops the turn. */
  signal?: AbortSignal;
  answer?: (question: ShownQuestion) => unknown;
  /** Called with each chunk as it comes. */
  on?: (chunk: Chunk) => void;
};

/** One prompt, to its end, with everything that was said and asked on the way. */
export async function playPrompt(agent: Agent, text: string, given: Given = {}): Promise<Played> {
  const { model, signal, answer, on, ...more } = given;
  let asked = 0;

  async function reply(question: ShownQuestion): Promise<void> {
    if (!answer) throw new Error('Nobody is there to answer.');
    const reply = await answer(question);
    if (reply === EXPIRED) run.expire();
    else run.answer(reply);
  }

  const run = runPrompt(agent, text, {
    ...more,
    ...(model !== undefined && { body: { model } }),
    on(chunk) {
      on?.(chunk);
      const question = run.questions[asked];
      if (!question) return;
      asked++;
      reply(question).catch(() => run.abort());
    },
  });
  signal?.addEventListener('abort', () => run.abort());
  try {
    await run.done;
    return run;
  } catch (error) {
    return Object.assign(run, { error: error as Error });
  }
}
