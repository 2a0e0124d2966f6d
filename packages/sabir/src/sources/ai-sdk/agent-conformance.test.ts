import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { describeAgent } from '../../../test/agent-conformance.ts';
import {
  AI_SDK_7,
  callTool,
  type ModelCall,
  type ScriptedStep,
  say,
  stuckAfter,
} from '../../../test/ai-sdk-models.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import type { Chunk } from '../../core/chunks.ts';
import type { Agent, AgentAnswer, AgentPrompt, LooseDelta } from '../../turns/agent.ts';
import { aiSdkAgent } from './agent.ts';

const wordOf = ({ text }: { text: string }) => text.split(' ')[0] ?? '';
const toWords = (given: AgentAnswer) =>
  `Answered: ${given.status === 'answered' ? given.answer : 'nothing'}`;
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve());
  });
const question = { text: 'Shall I?', options: ['Yes', 'No'] };

/** The least that an agent can be. */
async function* plain(prompt: AgentPrompt): AsyncGenerator<Chunk | LooseDelta> {
  if (prompt.signal.aborted) return;
  const word = wordOf(prompt);
  const toolCallId = 'c1';
  if (word === 'text') {
    yield { type: 'text-delta', delta: 'Hello, ' };
    yield { type: 'text-delta', delta: 'world!' };
  } else if (word === 'tool' || word === 'toolerror') {
    yield { type: 'tool-input-available', toolCallId, toolName: 'lookup', input: { q: 'x' } };
    if (word === 'tool') yield { type: 'tool-output-available', toolCallId, output: '42' };
    else yield { type: 'tool-output-error', toolCallId, errorText: 'Not found.' };
    yield { type: 'text-delta', delta: 'It is 42.' };
  } else if (word === 'ask') {
    yield { type: 'text-delta', delta: toWords(await prompt.ask(question)) };
  } else if (word === 'fail') throw new Error('It broke.');
  else {
    yield { type: 'text-delta', delta: 'Half ' };
    await aborted(prompt.signal);
  }
}

describeAgent('that is a generator function', async () => ({ agent: plain }));

/** Takes messages, and leaves it to others to show them. */
function steerable(): Agent {
  const waiting = new Map<string, (text: string) => void>();
  return {
    name: 'steerable',
    async *prompt(prompt) {
      const { turnId } = prompt;
      if (wordOf(prompt) !== 'steer') return yield* plain(prompt);
      yield { type: 'text-delta', delta: 'Half ' };
      const text = await new Promise<string>((resolve) => waiting.set(turnId, resolve));
      yield { type: 'text-delta', delta: `Steered: ${text}` };
    },
    steer({ turnId, text }) {
      waiting.get(turnId)?.(text);
      return waiting.delete(turnId);
    },
  };
}

describeAgent('that takes messages', async () => ({ agent: steerable() }));

/** With all that clients see, an error in words, and no attention to its signal. */
async function write(prompt: AgentPrompt, give: (chunk: Chunk) => void): Promise<void> {
  const word = wordOf(prompt);
  const text = (delta: string): Chunk[] => [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta },
    { type: 'text-end', id: 't' },
  ];
  give({ type: 'start' });
  give({ type: 'start-step' });
  if (word === 'text') text('Hello, world!').forEach(give);
  else if (word === 'tool' || word === 'toolerror') {
    const toolCallId = 'c1';
    give({ type: 'tool-input-start', toolCallId, toolName: 'lookup' });
    give({ type: 'tool-input-delta', toolCallId, inputTextDelta: '{"q":"x"}' });
    give({ type: 'tool-input-available', toolCallId, toolName: 'lookup', input: { q: 'x' } });
    if (word === 'tool') give({ type: 'tool-output-available', toolCallId, output: '42' });
    else give({ type: 'tool-output-error', toolCallId, errorText: 'Not found.' });
    text('It is 42.').forEach(give);
  } else if (word === 'ask') text(toWords(await prompt.ask(question))).forEach(give);
  else if (word === 'fail') give({ type: 'error', errorText: 'It broke.' });
  else {
    text('Half ').slice(0, 2).forEach(give);
    await new Promise(() => undefined);
  }
  give({ type: 'finish-step' });
  give({ type: 'finish', finishReason: 'stop' });
}

function stream(prompt: AgentPrompt): ReadableStream<Chunk> {
  return new ReadableStream({
    async start(controller) {
      if (prompt.signal.aborted) return controller.close();
      // Not awaited: a stream whose start is under way cannot be read.
      write(prompt, (chunk) => controller.enqueue(chunk)).then(
        () => controller.close(),
        (error) => controller.error(error),
      );
    },
  });
}

describeAgent('that gives a stream', async () => ({ agent: stream }));

describeAgent('of the session tests', async () => ({ agent: scriptedAgent() }));

const half = say('Half ').slice(0, 2);
const STEPS: Record<string, ScriptedStep> = {
  text: say('Hello, world!'),
  tool: callTool('c1', 'lookup', { q: 'x' }),
  toolerror: callTool('c1', 'lookup', { q: 'bad' }),
  ask: callTool('c1', 'question', {}),
  fail: new Error('It broke.'),
  steer: callTool('c1', 'wait', {}),
  slow: () => stuckAfter([{ type: 'stream-start', warnings: [] }, ...half]),
};

/** Says what its tools have found, or what a person has said meanwhile, as a model would. */
function tellResult({ prompt }: ModelCall) {
  const last = prompt.at(-1);
  if (last?.role === 'user')
    return say(`Steered: ${(last.content as { text: string }[])[0]?.text}`);
  const [part] = (prompt.at(-1)?.content ?? []) as { output: { value: string } }[];
  return say(`${part?.output.value}`);
}

describeAgent('of the AI SDK', async () => {
  let pending: AgentPrompt | undefined;
  const lookup = {
    inputSchema: z.object({ q: z.string() }),
    execute({ q }: { q: string }) {
      if (q === 'bad') throw new Error('Not found.');
      return 'It is 42.';
    },
  };
  const ask = {
    inputSchema: z.object({}),
    execute: async () => toWords((await pending?.ask(question)) as AgentAnswer),
  };
  /** Until the message is on its way. */
  const wait = { inputSchema: z.object({}), execute: () => sleep(20) };
  const agent = aiSdkAgent({
    ai: AI_SDK_7.ai,
    model: AI_SDK_7.model([]).model,
    models: (word) => AI_SDK_7.model([STEPS[word] ?? [], tellResult]).model,
    tools: { lookup, question: ask, wait },
    settings: { maxRetries: 0 },
  });
  return {
    agent: {
      ...agent,
      prompt(prompt) {
        pending = prompt;
        return agent.prompt({ ...prompt, model: wordOf(prompt) });
      },
    },
  };
});
