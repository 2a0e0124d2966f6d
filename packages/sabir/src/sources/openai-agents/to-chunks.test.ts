import { describe, expect, it } from 'vitest';
import { outline } from '../../../test/openai-agents/outline.ts';
import { collect, createRuns } from '../../../test/openai-agents/play-scenario.ts';
import { silentRun } from '../../../test/openai-agents/read-run.ts';
import { SCENARIOS } from '../../../test/openai-agents/scenarios.ts';
import { type Script, scriptedModel } from '../../../test/openai-agents/scripted-model.ts';
import { SDKS } from '../../../test/openai-agents/sdks.ts';
import { watchRejections } from '../../../test/openai-agents/watch-rejections.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import { verifyChunks } from '../../core/verify.ts';
import { type StreamedRun, toChunks } from './to-chunks.ts';

watchRejections();

describe.each(SDKS)('a run of the Agents SDK $version behind toChunks', ({ sdk }) => {
  it('stops the run when its stream is cancelled, though the model says nothing', async () => {
    const { signals, run } = await silentRun(sdk);
    const reader = toChunks(run).getReader();
    while ((await reader.read()).value?.type !== 'text-delta');
    const pending = reader.read();
    // Until it waits for the model.
    await new Promise((resolve) => setTimeout(resolve, 10));
    await reader.cancel();
    expect(signals.map((signal) => signal?.aborted)).toEqual([true]);
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(run.cancelled).toBe(true);
  });

  it('stops the run when it is read no further', async () => {
    const { signals, run } = await silentRun(sdk);
    for await (const chunk of toChunks(run)) if (chunk.type === 'text-delta') break;
    expect(signals.map((signal) => signal?.aborted)).toEqual([true]);
  });

  it('ends as stopped when the signal of the run is aborted', async () => {
    const stop = new AbortController();
    const { run } = await silentRun(sdk, { signal: stop.signal });
    const chunks: Chunk[] = [];
    for await (const chunk of toChunks(run, { messageId: 'm' })) {
      chunks.push(chunk);
      if (chunk.type === 'text-delta') stop.abort();
    }
    expect(verifyChunks(chunks)).toEqual([]);
    expect(outline(foldChunks(chunks)).at(-1)).toBe('says Hello.');
    expect(chunks.at(-1)).toEqual({
      type: 'finish',
      finishReason: 'other',
      messageMetadata: { outcome: 'stopped' },
    });
  });

  it('reads no further ahead than its reader', async () => {
    const script: Script = [{ outputs: [{ text: 'x'.repeat(1_000) }], pieces: 1 }];
    const agent = new sdk.Agent({ name: 'Helper', model: scriptedModel(sdk, script) });
    const run = await sdk.run(agent, 'Hi', { stream: true });
    let taken = 0;
    const counted = {
      completed: run.completed,
      interruptions: undefined,
      async *[Symbol.asyncIterator]() {
        for await (const event of run) {
          taken++;
          yield event;
        }
      },
    };
    const reader = toChunks(counted as unknown as StreamedRun).getReader();
    await reader.read();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(taken).toBeLessThan(5);
    while (!(await reader.read()).done);
    expect(taken).toBeGreaterThan(1_000);
  });
});

describe('what toChunks is given', () => {
  it('makes a failed turn of a run that never began', async () => {
    const chunks = await collect(toChunks(Promise.reject(new Error('no key')), { messageId: 'm' }));
    expect(chunks).toEqual([
      { type: 'start', messageId: 'm' },
      {
        type: 'message-metadata',
        messageMetadata: { outcome: 'failed', code: 'run-failed' },
      },
      { type: 'error', errorText: 'no key' },
      { type: 'finish', finishReason: 'error' },
    ]);
    const nothing = await collect(toChunks(Promise.reject(undefined)));
    expect(nothing.at(-1)).toEqual({ type: 'finish', finishReason: 'error' });
  });

  it('lets nothing out of a run that is cancelled before it began', async () => {
    const { promise: run, resolve: begin } = Promise.withResolvers<StreamedRun>();
    const [{ sdk }] = SDKS as [(typeof SDKS)[number]];
    const { signals, run: started } = await silentRun(sdk);
    const stream = toChunks(run);
    const reader = stream.getReader();
    const first = reader.read();
    const cancelled = reader.cancel();
    begin(started);
    await cancelled;
    expect(await first).toEqual({ done: true, value: undefined });
    expect(signals.every((signal) => signal?.aborted)).toBe(true);
  });

  it('takes anything that can be iterated, and tells when it breaks', async () => {
    const broken = {
      completed: Promise.resolve(),
      async *[Symbol.asyncIterator]() {
        const said = { type: 'output_text_delta', delta: 'Half' };
        yield { type: 'raw_model_stream_event' as const, data: said };
        throw new Error('socket closed');
      },
    };
    const chunks = await collect(toChunks(broken));
    expect(verifyChunks(chunks)).toEqual([]);
    expect(outline(foldChunks(chunks))).toEqual(['—', 'says Half']);
    expect(chunks.at(-2)).toEqual({ type: 'error', errorText: 'socket closed' });
  });

  it('names the agent as the application says', async () => {
    const [{ sdk }] = SDKS as [(typeof SDKS)[number]];
    const { start } = createRuns(sdk, SCENARIOS[0] as (typeof SCENARIOS)[number]);
    const chunks = await collect(toChunks((await start()) as StreamedRun, { agent: 'Front desk' }));
    expect(outline(foldChunks(chunks)).slice(0, 2)).toEqual(['—', 'is Front desk']);
  });

  it.each([
    ['a run that does not stream', { finalOutput: 'hi', currentAgent: { name: 'A' } }],
    ['nothing', undefined],
    ['the text of an answer', 'hi'],
  ])('says what is missing when it is given %s', async (_, given) => {
    const chunks = await collect(toChunks(given as unknown as StreamedRun));
    expect(chunks.find(({ type }) => type === 'error')).toMatchObject({
      errorText: expect.stringContaining('{ stream: true }'),
    });
  });
});
