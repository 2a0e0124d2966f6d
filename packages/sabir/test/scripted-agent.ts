/** An agent that does what the prompt's first word says: see `agent-conformance.ts`, and more. */
import type { Chunk } from '../src/core/chunks.ts';
import type { Agent, AgentAnswer, AgentPrompt } from '../src/sessions/index.ts';
import type { LooseDelta } from '../src/turns/agent.ts';

type Said = Chunk | LooseDelta;

export type ScriptedAgent = Agent & {
  /** What it was asked, in order. */
  readonly prompts: AgentPrompt[];
  /** Lets every `slow` prompt go on. */
  go(): void;
};

export function scriptedAgent({
  onDrop,
  ...options
}: {
  needsHistory?: boolean;
  onDrop?: () => void;
} = {}): ScriptedAgent {
  const prompts: AgentPrompt[] = [];
  const gate = Promise.withResolvers<void>();
  return {
    name: 'scripted',
    ...options,
    prompts,
    go: gate.resolve,
    async *prompt(prompt) {
      prompts.push(prompt);
      if (prompt.signal.aborted) return;
      const [word = '', ...rest] = prompt.text.split(' ');
      const script = Object.hasOwn(SCRIPTS, word) ? SCRIPTS[word] : undefined;
      if (word === 'slow') {
        yield { type: 'text-delta', delta: 'Half ' };
        await Promise.race([gate.promise, aborted(prompt.signal)]);
        if (!prompt.signal.aborted) yield { type: 'text-delta', delta: 'and whole.' };
      } else if (word === 'drop') {
        yield { type: 'text-delta', delta: 'Half ' };
        onDrop?.();
        await aborted(prompt.signal);
      } else
        yield* script
          ? script(prompt, rest)
          : [{ type: 'text-delta', delta: prompt.text } as const];
    },
  };
}

type Script = (prompt: AgentPrompt, words: string[]) => Iterable<Said> | AsyncIterable<Said>;

const CALL = { toolCallId: 'call-1' };
const NAMED = { ...CALL, toolName: 'lookup' };
const CALLED: Chunk = { type: 'tool-input-available', ...NAMED, input: { port: 'Oran' } };

const SCRIPTS: Record<string, Script> = {
  *text() {
    for (const delta of ['Hello', ', ', 'world!']) yield { type: 'text-delta', delta };
  },
  *count(_, [count = '1000']) {
    for (let i = 1; i <= Number(count); i++) yield { type: 'text-delta', delta: `${i} ` };
  },
  async *paced(_, [count = '100']) {
    for (let i = 1; i <= Number(count); i++) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      yield { type: 'text-delta', delta: `${i} ` };
    }
  },
  async *bursts(_, [count = '100']) {
    for (let i = 1; i <= Number(count); i++) {
      if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
      yield { type: 'text-delta', delta: `${i} ` };
    }
  },
  *tool() {
    yield { type: 'text-delta', delta: 'Looking. ' };
    yield { type: 'tool-input-start', ...NAMED };
    yield CALLED;
    yield { type: 'tool-output-available', ...CALL, output: { berths: 42 } };
    yield { type: 'text-delta', delta: '42 berths.' };
  },
  *toolerror() {
    yield CALLED;
    yield { type: 'tool-output-error', ...CALL, errorText: 'No such port.' };
    yield { type: 'text-delta', delta: 'It failed.' };
  },
  *everything({ emit }) {
    yield { type: 'start-step' };
    yield { type: 'reasoning-delta', delta: 'Let me ' };
    yield { type: 'reasoning-delta', delta: 'think.' };
    yield { type: 'tool-input-start', ...NAMED };
    yield { type: 'tool-input-delta', ...CALL, inputTextDelta: '{"port":' };
    yield { type: 'tool-input-delta', ...CALL, inputTextDelta: '"Oran"}' };
    yield CALLED;
    yield { type: 'tool-output-available', ...CALL, output: 3 };
    yield { type: 'finish-step' };
    yield { type: 'start-step' };
    yield { type: 'text-delta', delta: 'See ' };
    yield { type: 'source-url', sourceId: 's1', url: 'https://example.com/', title: 'Example' };
    yield { type: 'text-delta', delta: 'there.' };
    yield { type: 'file', url: 'data:text/plain;base64,aGk=', mediaType: 'text/plain' };
    yield { type: 'data-weather', id: 'w', data: { wind: 'east' } };
    const usage = { inputTokens: 10, outputTokens: 5 };
    yield { type: 'message-metadata', messageMetadata: { usage } };
    emit({ type: 'git-state', branch: 'main' });
  },
  async *question({ ask }) {
    yield { type: 'text-delta', delta: 'I need a decision. ' };
    const answer = await ask({ questionId: 'q1', text: 'Deploy?', options: ['Yes', 'No'] });
    yield { type: 'text-delta', delta: `Answered: ${toWords(answer)}` };
  },
  async *ask({ ask }) {
    const answer = await ask({ text: 'Shall I?', options: ['Yes', 'No'] });
    yield { type: 'text-delta', delta: `Answered: ${toWords(answer)}` };
  },
  // biome-ignore lint/correctness/useYield: it fails before it says anything
  *fail() {
    throw new Error('It broke.');
  },
  *failhalf() {
    yield { type: 'text-delta', delta: 'Half ' };
    throw new Error('It broke.');
  },
  async *stubborn() {
    yield { type: 'text-delta', delta: 'Half ' };
    await new Promise(() => undefined);
  },
};

function toWords(answer: AgentAnswer): unknown {
  return answer.status === 'answered' ? answer.answer : 'nobody';
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
