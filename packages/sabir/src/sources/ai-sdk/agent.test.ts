import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect, promisify } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import {
  AI_SDK_6,
  AI_SDK_7,
  AI_SDK_RELEASES,
  callTool,
  type ModelCall,
  type ScriptedStep,
  say,
  streamOf,
  stuckAfter,
} from '../../../test/ai-sdk-models.ts';
import { runPrompt, until } from '../../../test/run-prompt.ts';
import type { Chunk } from '../../core/chunks.ts';
import type { Prompt } from '../../turns/upstream.ts';
import { type AiSdkModelOptions, aiSdkAgent } from './agent.ts';

const USAGE = {
  inputTokens: 3,
  outputTokens: 4,
  totalTokens: 7,
  reasoningTokens: 2,
  cachedInputTokens: 1,
};

describe.each(AI_SDK_RELEASES)('a model of $name', (release) => {
  function play(
    steps: ScriptedStep[],
    more: Partial<AiSdkModelOptions> = {},
    prompt: Partial<Prompt> = {},
  ) {
    const { model, calls } = release.model(steps);
    const settings = { maxRetries: 0, ...more.settings };
    const agent = aiSdkAgent({ ai: release.ai, model, ...more, settings });
    return { turn: runPrompt(agent, 'Hi', prompt), calls };
  }

  const lookup = {
    inputSchema: z.object({ q: z.string() }),
    execute({ q }: { q: string }): string {
      if (q === 'bad') throw new Error('Nothing there.');
      return `found ${q}`;
    },
  };

  it('says its text and its reasoning, and what they cost [RUN-07]', async () => {
    const reasoning = [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'Hm.' },
      { type: 'reasoning-end', id: 'r' },
    ];
    const { turn, calls } = play([[...reasoning, ...say('Hello!')]], { instructions: 'Be brief.' });
    await turn.done;
    expect(turn.reasoning).toBe('Hm.');
    expect(turn.text).toBe('Hello!');
    expect(turn.metadata.usage).toEqual(USAGE);
    expect(turn.outcome).toEqual({ status: 'finished', finishReason: 'stop', usage: USAGE });
    expect(calls[0]?.prompt).toMatchObject([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
    ]);
  });

  it('calls a tool, and goes on with its result in another step', async () => {
    const { turn, calls } = play(
      [[...say('Let me see.'), ...callTool('c1', 'lookup', { q: 'x' })], say('It is x.')],
      { tools: { lookup } },
    );
    await turn.done;
    const call = { toolCallId: 'c1', toolName: 'lookup' };
    const input = { q: 'x' };
    const isOther = ({ type }: Chunk) => type !== 'message-metadata';
    expect(turn.chunks.slice(1).filter(isOther)).toMatchObject([
      { type: 'start-step' },
      { type: 'text-start' },
      { type: 'text-delta', delta: 'Let me see.' },
      { type: 'text-end' },
      { type: 'tool-input-start', ...call },
      { type: 'tool-input-delta', inputTextDelta: '{"q' },
      { type: 'tool-input-delta', inputTextDelta: '":"x"}' },
      { type: 'tool-input-available', ...call, input },
      { type: 'tool-output-available', toolCallId: 'c1', output: 'found x' },
      { type: 'finish-step' },
      { type: 'start-step' },
      { type: 'text-start' },
      { type: 'text-delta', delta: 'It is x.' },
      { type: 'text-end' },
      { type: 'finish-step' },
      { type: 'finish', finishReason: 'stop' },
    ]);
    const usages = turn.chunks.filter((chunk) => !isOther(chunk));
    expect(usages[0]).toMatchObject({ messageMetadata: { usage: USAGE } });
    expect(turn.metadata.usage).toEqual({
      inputTokens: 6,
      outputTokens: 8,
      totalTokens: 14,
      reasoningTokens: 4,
      cachedInputTokens: 2,
    });
    expect(calls[1]?.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  });

  it('tells of tools that fail, also by their input, and goes on', async () => {
    const { turn } = play(
      [
        [...callTool('c1', 'lookup', { q: 'bad' }), ...callTool('c2', 'lookup', { q: 5 })],
        say('Sorry.'),
      ],
      { tools: { lookup } },
    );
    await turn.done;
    expect(turn.tools).toMatchObject([
      { toolCallId: 'c1', state: 'output-error', errorText: 'Nothing there.' },
      {
        toolCallId: 'c2',
        state: 'output-error',
        errorText: expect.stringContaining('Invalid input for tool'),
      },
    ]);
    expect(turn.text).toBe('Sorry.');
  });

  it('runs tools side by side', async () => {
    const both = Promise.withResolvers<void>();
    let running = 0;
    const meet = {
      inputSchema: z.object({}),
      async execute() {
        if (++running === 2) both.resolve();
        await both.promise;
        return 'met';
      },
    };
    const { turn } = play(
      [[...callTool('c1', 'meet', {}), ...callTool('c2', 'meet', {})], say('They met.')],
      { tools: { meet } },
    );
    await turn.done;
    expect(turn.tools.map(({ toolCallId, output }) => [toolCallId, output])).toEqual([
      ['c1', 'met'],
      ['c2', 'met'],
    ]);
  });

  it('tells what a tool has found so far', async () => {
    const count = {
      inputSchema: z.object({}),
      async *execute() {
        yield 1;
        yield 2;
      },
    };
    const { turn } = play([callTool('c1', 'count', {}), say('2')], { tools: { count } });
    await turn.done;
    const outputs = turn.chunks.filter(({ type }) => type === 'tool-output-available');
    expect(outputs).toMatchObject([
      { output: 1, preliminary: true },
      { output: 2, preliminary: true },
      { output: 2 },
    ]);
    expect(outputs[2]).not.toHaveProperty('preliminary');
  });

  it('gives sources and files', async () => {
    const source = { type: 'source', sourceType: 'url', id: 's1', url: 'https://example.com' };
    const document = {
      type: 'source',
      sourceType: 'document',
      id: 's2',
      mediaType: 'text/plain',
      title: 'Notes',
      filename: 'notes.txt',
    };
    const { turn } = play([[source, document, release.file('image/png', 'AAAA'), ...say('See.')]]);
    await turn.done;
    expect(turn.message.parts.slice(1, 4)).toMatchObject([
      { type: 'source-url', sourceId: 's1', url: 'https://example.com' },
      {
        type: 'source-document',
        sourceId: 's2',
        mediaType: 'text/plain',
        title: 'Notes',
        filename: 'notes.txt',
      },
      { type: 'file', url: 'data:image/png;base64,AAAA', mediaType: 'image/png' },
    ]);
  });

  it('stops after so many steps', async () => {
    const again = (id: string) => callTool(id, 'lookup', { q: id });
    const { turn, calls } = play([again('a'), again('b'), again('c')], {
      tools: { lookup },
      maxSteps: 2,
    });
    await turn.done;
    expect(calls).toHaveLength(2);
  });

  it('fails with the words of the provider, and with nothing of the request', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const error = release.error('Too many requests.', {
      url: 'https://api.example.com',
      statusCode: 429,
      requestBodyValues: { secret: 'sk-secret', messages: ['Hi'] },
      responseHeaders: { 'retry-after-ms': '1', key: 'sk-secret' },
      isRetryable: true,
    });
    const { turn } = play([error, error], { settings: { maxRetries: 1 } });
    const thrown = await turn.done.catch((reason: unknown) => reason);
    expect((thrown as Error).message).toBe('Too many requests.');
    expect(inspect(thrown, { depth: 9, showHidden: true })).not.toContain('sk-secret');
    expect(logged).not.toHaveBeenCalled();
    logged.mockRestore();
  });

  it('fails in the middle of an answer, behind what was said', async () => {
    const { turn } = play([[...say('Half '), { type: 'error', error: new Error('It broke.') }]]);
    await expect(turn.done).rejects.toThrow('It broke.');
    expect(turn.text).toBe('Half ');
  });

  it('fails when the stream itself does', async () => {
    const broken = () =>
      new ReadableStream({
        pull(controller) {
          controller.error(new Error('Connection lost.'));
        },
      });
    const { turn } = play([broken]);
    await expect(turn.done).rejects.toThrow('Connection lost.');
  });

  it('fails with the words of the application', async () => {
    const errorText = (error: unknown) => `Sorry: ${(error as Error).message}`;
    const { turn } = play([new Error('x')], { errorText });
    await expect(turn.done).rejects.toThrow('Sorry: x');
  });

  it('stops in the middle of an answer, and so does the model', async () => {
    const { turn, calls } = play([() => stuckAfter(say('Half ').slice(0, 2))]);
    await until(() => turn.text === 'Half ');
    turn.abort();
    await turn.done;
    expect(calls[0]?.abortSignal?.aborted).toBe(true);
  });

  it('stops in the middle of a tool, and so does the tool', async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const wait = {
      inputSchema: z.object({}),
      execute(_: unknown, { abortSignal }: { abortSignal: AbortSignal }) {
        begun.resolve(abortSignal);
        // Takes no notice.
        return new Promise(() => undefined);
      },
    };
    const { turn, calls } = play([callTool('c1', 'wait', {}), say('Never.')], { tools: { wait } });
    const signal = await begun.promise;
    await until(() => turn.tools.at(-1)?.state === 'input-available');
    turn.abort();
    await turn.done;
    expect(signal.aborted).toBe(true);
    expect(calls).toHaveLength(1);
    expect(turn.text).toBe('');
  });

  it('is the one that was chosen', async () => {
    const other = release.model([say('Other.'), say('Other.')], 'other');
    const { turn } = play([], { models: { other: other.model } }, { body: { model: 'other' } });
    await turn.done;
    expect(turn.text).toBe('Other.');
    const byName = play([], { models: () => other.model }, { body: { model: 'anything' } });
    await byName.turn.done;
    expect(byName.turn.text).toBe('Other.');
    for (const model of ['none', 'toString']) {
      const missing = play([say('x')], { models: { other: other.model } }, { body: { model } });
      await expect(missing.turn.done).rejects.toThrow(`There is no model “${model}” here.`);
    }
    const choiceless = play([say('Mine.')], {}, { body: { model: 'other' } });
    await choiceless.turn.done;
    expect(choiceless.turn.text).toBe('Mine.');
  });

  it('is called with what the application has set', async () => {
    const { turn, calls } = play([say('x')], { settings: { temperature: 0.5 } });
    await turn.done;
    expect(calls[0]?.temperature).toBe(0.5);
  });

  it('is behind an agent of the SDK just as well [RUN-07]', async () => {
    const { model, calls } = release.model([callTool('c1', 'lookup', { q: 'x' }), say('It is x.')]);
    const more = release.name === 'ai@5' ? { stopWhen: stopAfterTwo } : {};
    const agent = new release.Agent({ model, tools: { lookup }, ...more });
    const turn = runPrompt(aiSdkAgent({ ai: release.ai, agent }), 'Hi');
    await turn.done;
    expect(turn.tools).toMatchObject([{ state: 'output-available', output: 'found x' }]);
    expect(turn.text).toBe('It is x.');
    expect(calls).toHaveLength(2);
  });
});

const stopAfterTwo = ({ steps }: { steps: unknown[] }) => steps.length >= 2;

it.each([AI_SDK_6, AI_SDK_7])(
  'a timeout among the settings fails a turn ($name)',
  async (release) => {
    const stuck = ({ abortSignal }: ModelCall) =>
      new ReadableStream({
        start(controller) {
          abortSignal?.addEventListener('abort', () => controller.error(abortSignal.reason));
        },
      });
    const { model } = release.model([stuck]);
    const agent = aiSdkAgent({ ai: release.ai, model, settings: { timeout: 10 } });
    await expect(runPrompt(agent, 'Hi').done).rejects.toMatchObject({ code: 'model-timeout' });
  },
);

describe('the SDK', () => {
  const { model } = AI_SDK_7.model([() => streamOf(say('x'))]);

  it('is the one that is installed, where none is given', async () => {
    const agent = aiSdkAgent({ model });
    await agent.start?.({
      sessionId: 's',
      emit: () => undefined,
      signal: new AbortController().signal,
    });
    const turn = runPrompt(agent, 'Hi');
    await turn.done;
    expect(turn.text).toBe('x');
  });

  it('is missed with words, before the first prompt', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sabir-'));
    try {
      const source = join(import.meta.dirname, '../..');
      await cp(source, join(folder, 'src'), {
        recursive: true,
        filter: (path) => !path.endsWith('.test.ts'),
      });
      const script = `
        const { aiSdkAgent } = await import('./src/sources/ai-sdk/agent.ts');
        await aiSdkAgent({ model: 'x' }).start().catch((error) => console.log(error.message));
      `;
      const run = promisify(execFile);
      const args = ['--input-type=module', '-e', script];
      const { stdout } = await run(process.execPath, args, { cwd: folder });
      expect(stdout).toContain('Install it beside sabir: npm install ai');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
