/** An agent that says what the test has it say, when the test has it say it. */
import type { Chunk } from '../src/core/chunks.ts';
import type { Agent, AgentPrompt } from '../src/sessions/index.ts';
import type { LooseDelta } from '../src/turns/agent.ts';
import { eventually } from './gateway-client.ts';

type Said = Chunk | LooseDelta;
type LedRun = ReturnType<typeof createRun>;

export function createLedAgent() {
  const runs: LedRun[] = [];
  const agent: Agent = {
    name: 'led',
    prompt(prompt) {
      const run = createRun(prompt);
      runs.push(run);
      return run.chunks();
    },
  };
  return {
    ...agent,
    runs,
    /** The nth run, as soon as there is one. */
    run: (index = 0) => eventually(() => runs[index], `run ${index}`),
  };
}

function createRun(prompt: AgentPrompt) {
  const queue: Said[] = [];
  let isOver = false;
  let isAborted = false;
  prompt.signal.addEventListener('abort', () => {
    // A turn that has ended lets its signal go as well.
    isAborted = !isOver;
    wake();
  });
  let wake: () => void = () => undefined;
  const say = (...chunks: Said[]) => {
    queue.push(...chunks);
    wake();
  };
  return {
    prompt,
    say,
    text: (...deltas: string[]) =>
      say(...deltas.map((delta) => ({ type: 'text-delta' as const, delta }))),
    end(): void {
      isOver = true;
      wake();
    },
    /** It was stopped before it had said all. */
    get isAborted() {
      return isAborted;
    },
    async *chunks(): AsyncGenerator<Said> {
      for (;;) {
        for (let next = queue.shift(); next; next = queue.shift()) yield next;
        if (isOver || isAborted) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
