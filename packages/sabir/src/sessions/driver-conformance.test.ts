import { z } from 'zod';
import {
  AI_SDK_7,
  callTool,
  type ModelCall,
  type ScriptedStep,
  say,
  stuckAfter,
} from '../../test/ai-sdk-models.ts';
import { describeDriver } from '../../test/driver-conformance.ts';
import type { Chunk } from '../core/chunks.ts';
import { aiSdkDriver } from '../sources/ai-sdk/agent.ts';
import { chunkDriver } from '../sources/ai-sdk/chunk-driver.ts';
import type { AgentDriver, DriverAnswer, DriverEvent, DriverPrompt } from '../turns/driver.ts';

const wordOf = ({ content }: { content: string }) => content.split(' ')[0];
const toWords = (given: DriverAnswer) =>
  `Answered: ${given.status === 'answered' ? given.answer : 'nothing'}`;
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve());
  });
const question = { text: 'Shall I?', options: ['Yes', 'No'] };

/** Written by hand, without anything of ours. */
const plain: AgentDriver = {
  name: 'plain',
  async *prompt(prompt: DriverPrompt): AsyncGenerator<DriverEvent> {
    if (prompt.signal.aborted) return;
    const word = wordOf(prompt);
    if (word === 'text') {
      yield { type: 'text', delta: 'Hello, ' };
      yield { type: 'text', delta: 'world!' };
    } else if (word === 'tool' || word === 'toolerror') {
      const call = { type: 'tool', callId: 'c1', toolName: 'lookup' } as const;
      yield { ...call, status: 'pending' };
      yield { ...call, status: 'running', args: { q: 'x' } };
      if (word === 'tool') yield { ...call, status: 'completed', result: '42' };
      else yield { ...call, status: 'error', error: 'Not found.' };
      yield { type: 'text', delta: 'It is 42.' };
    } else if (word === 'ask') yield { type: 'text', delta: toWords(await prompt.ask(question)) };
    else if (word === 'fail') throw new Error('It broke.');
    else {
      yield { type: 'text', delta: 'Half ' };
      await aborted(prompt.signal);
    }
  },
};

describeDriver('written by hand', async () => ({ driver: plain }));

async function* answerInChunks(prompt: DriverPrompt): AsyncGenerator<Chunk> {
  const word = wordOf(prompt);
  const text = (delta: string): Chunk[] => [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta },
    { type: 'text-end', id: 't' },
  ];
  yield { type: 'start' };
  yield { type: 'start-step' };
  if (word === 'text') yield* text('Hello, world!');
  else if (word === 'tool' || word === 'toolerror') {
    const toolCallId = 'c1';
    yield { type: 'tool-input-start', toolCallId, toolName: 'lookup' };
    yield { type: 'tool-input-delta', toolCallId, inputTextDelta: '{"q":"x"}' };
    yield { type: 'tool-input-available', toolCallId, toolName: 'lookup', input: { q: 'x' } };
    if (word === 'tool') yield { type: 'tool-output-available', toolCallId, output: '42' };
    else yield { type: 'tool-output-error', toolCallId, errorText: 'Not found.' };
    yield* text('It is 42.');
  } else if (word === 'ask') yield* text(toWords(await prompt.ask(question)));
  else if (word === 'fail') yield { type: 'error', errorText: 'It broke.' };
  else {
    yield { type: 'text-start', id: 't' };
    yield { type: 'text-delta', id: 't', delta: 'Half ' };
    // Whatever the signal says.
    await new Promise(() => undefined);
  }
  yield { type: 'finish-step' };
  yield { type: 'finish', finishReason: 'stop' };
}

describeDriver('of chunks', async () => ({ driver: chunkDriver({ answer: answerInChunks }) }));

const half = say('Half ').slice(0, 2);
const STEPS: Record<string, ScriptedStep> = {
  text: say('Hello, world!'),
  tool: callTool('c1', 'lookup', { q: 'x' }),
  toolerror: callTool('c1', 'lookup', { q: 'bad' }),
  ask: callTool('c1', 'question', {}),
  fail: new Error('It broke.'),
  slow: () => stuckAfter([{ type: 'stream-start', warnings: [] }, ...half]),
};

/** Says what its tools have found, as a model would. */
function tellResult({ prompt }: ModelCall) {
  const [part] = (prompt.at(-1)?.content ?? []) as { output: { value: string } }[];
  return say(`${part?.output.value}`);
}

describeDriver('of the AI SDK', async () => {
  let pending: DriverPrompt | undefined;
  const lookup = {
    inputSchema: z.object({ q: z.string() }),
    execute({ q }: { q: string }) {
      if (q === 'bad') throw new Error('Not found.');
      return 'It is 42.';
    },
  };
  const ask = {
    inputSchema: z.object({}),
    execute: async () => toWords((await pending?.ask(question)) as DriverAnswer),
  };
  const driver = aiSdkDriver({
    ai: AI_SDK_7.ai,
    model: AI_SDK_7.model([]).model,
    models: (word) => AI_SDK_7.model([STEPS[word] ?? [], tellResult]).model,
    tools: { lookup, question: ask },
    settings: { maxRetries: 0 },
  });
  return {
    driver: {
      ...driver,
      prompt(prompt) {
        pending = prompt;
        return driver.prompt({ ...prompt, model: wordOf(prompt) as string });
      },
    },
  };
});
