/** An agent that does what the prompt's first word says: see `driver-conformance.ts`, and more. */
import type { AgentDriver, DriverEvent, DriverPrompt } from '../src/sessions/index.ts';

export type ScriptedDriver = AgentDriver & {
  /** What it was asked, in order. */
  readonly prompts: DriverPrompt[];
  /** Lets every `slow` prompt go on. */
  go(): void;
};

export function scriptedDriver({
  onDrop,
  ...options
}: {
  needsHistory?: boolean;
  onDrop?: () => void;
} = {}): ScriptedDriver {
  const prompts: DriverPrompt[] = [];
  const gate = Promise.withResolvers<void>();
  return {
    name: 'scripted',
    ...options,
    prompts,
    go: gate.resolve,
    async *prompt(prompt) {
      prompts.push(prompt);
      const [word = '', ...rest] = prompt.content.split(' ');
      const script = Object.hasOwn(SCRIPTS, word) ? SCRIPTS[word] : undefined;
      if (word === 'slow') {
        yield { type: 'text', delta: 'Half ' };
        await Promise.race([gate.promise, aborted(prompt.signal)]);
        if (!prompt.signal.aborted) yield { type: 'text', delta: 'and whole.' };
      } else if (word === 'drop') {
        yield { type: 'text', delta: 'Half ' };
        onDrop?.();
        await aborted(prompt.signal);
      } else
        yield* script ? script(prompt, rest) : [{ type: 'text', delta: prompt.content } as const];
    },
  };
}

type Script = (
  prompt: DriverPrompt,
  words: string[],
) => Iterable<DriverEvent> | AsyncIterable<DriverEvent>;

const LOOKUP = { callId: 'call-1', toolName: 'lookup', args: { port: 'Oran' } };

const SCRIPTS: Record<string, Script> = {
  *text() {
    for (const delta of ['Hello', ', ', 'world!']) yield { type: 'text', delta };
  },
  *count(_, [count = '1000']) {
    for (let i = 1; i <= Number(count); i++) yield { type: 'text', delta: `${i} ` };
  },
  async *paced(_, [count = '100']) {
    for (let i = 1; i <= Number(count); i++) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      yield { type: 'text', delta: `${i} ` };
    }
  },
  async *bursts(_, [count = '100']) {
    for (let i = 1; i <= Number(count); i++) {
      if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
      yield { type: 'text', delta: `${i} ` };
    }
  },
  *tool() {
    yield { type: 'text', delta: 'Looking. ' };
    yield { type: 'tool', ...LOOKUP, args: {}, status: 'pending' };
    yield { type: 'tool', ...LOOKUP, status: 'running' };
    yield { type: 'tool', ...LOOKUP, status: 'completed', result: { berths: 3 } };
    yield { type: 'text', delta: 'Three berths.' };
  },
  *toolerror() {
    yield { type: 'tool', ...LOOKUP, status: 'running' };
    yield { type: 'tool', ...LOOKUP, status: 'error', error: 'No such port.' };
    yield { type: 'text', delta: 'It failed.' };
  },
  *everything() {
    yield { type: 'reasoning', delta: 'Let me ' };
    yield { type: 'reasoning', delta: 'think.' };
    yield { type: 'tool-input', callId: 'call-1', toolName: 'lookup', delta: '{"port":' };
    yield { type: 'tool-input', callId: 'call-1', toolName: 'lookup', delta: '"Oran"}' };
    yield { type: 'tool', ...LOOKUP, status: 'running' };
    yield { type: 'tool', ...LOOKUP, status: 'completed', result: 3 };
    yield { type: 'step' };
    yield { type: 'text', delta: 'See ' };
    yield { type: 'source', sourceId: 's1', url: 'https://example.com/', title: 'Example' };
    yield { type: 'text', delta: 'there.' };
    yield { type: 'file', url: 'data:text/plain;base64,aGk=', mediaType: 'text/plain' };
    yield { type: 'data', name: 'weather', id: 'w', data: { wind: 'east' } };
    yield { type: 'usage', usage: { inputTokens: 10, outputTokens: 5 } };
    yield { type: 'event', event: { type: 'git-state', branch: 'main' } };
  },
  async *question({ ask }) {
    yield { type: 'text', delta: 'I need a decision. ' };
    const answer = await ask({ questionId: 'q1', text: 'Deploy?', options: ['Yes', 'No'] });
    const said = answer.status === 'answered' ? answer.answer : 'nobody';
    yield { type: 'text', delta: `Answered: ${said}` };
  },
  // biome-ignore lint/correctness/useYield: it fails before it says anything
  *fail() {
    throw new Error('It broke.');
  },
  *failhalf() {
    yield { type: 'text', delta: 'Half ' };
    throw new Error('It broke.');
  },
  async *stubborn() {
    yield { type: 'text', delta: 'Half ' };
    await new Promise(() => undefined);
  },
};

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
