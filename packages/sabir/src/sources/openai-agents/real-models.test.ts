/** Runs whose model is one of the SDK's own, for each API of OpenAI, or one of the AI SDK. */
import { aisdk } from '@openai/agents-extensions/ai-sdk';
import { describe, expect, it } from 'vitest';
import { outline } from '../../../test/openai-agents/outline.ts';
import { deltasOf, readRun } from '../../../test/openai-agents/read-run.ts';
import {
  type ChatDelta,
  scriptedChatModel,
} from '../../../test/openai-agents/scripted-chat-model.ts';
import { type Script, scriptedModel } from '../../../test/openai-agents/scripted-model.ts';
import { SDKS } from '../../../test/openai-agents/sdks.ts';
import { watchRejections } from '../../../test/openai-agents/watch-rejections.ts';
import { foldChunks } from '../../core/fold.ts';

watchRejections();

const [{ sdk: newest }] = SDKS as [(typeof SDKS)[number]];

describe.each(SDKS)('a model of the Agents SDK $version', ({ sdk }) => {
  it('streams words, thoughts and arguments as they come', async () => {
    const script: Script = [
      {
        outputs: [{ reasoning: 'abcdef' }, { call: 'weather', input: { city: 'Paris' } }],
        pieces: 3,
      },
      { outputs: [{ text: 'abcdef' }], pieces: 3 },
    ];
    const chunks = await readRun(sdk, scriptedModel(sdk, script));
    expect(deltasOf(chunks)).toEqual([
      ...['thinks abc', 'thinks def'],
      ...['asks {"c', 'asks ity', 'asks ":"', 'asks Par', 'asks is"', 'asks }'],
      ...['says abc', 'says def'],
    ]);
  });

  it('reads Chat Completions: thoughts, words, calls at the same time, a citation', async () => {
    const call = (index: number, fields: object) => ({
      delta: { tool_calls: [{ index, ...fields }] },
    });
    const cited = { type: 'url_citation', url_citation: { url: 'https://a.example/', title: 'A' } };
    const script: ChatDelta[][] = [
      [
        { delta: { role: 'assistant', reasoning: 'Let me ' } },
        { delta: { reasoning: 'look.' } },
        { delta: { content: 'I ' } },
        { delta: { content: 'look.' } },
        call(0, { id: 'c1', type: 'function', function: { name: 'weather', arguments: '' } }),
        call(0, { function: { arguments: '{"city":' } }),
        call(1, { id: 'c2', type: 'function', function: { name: 'find', arguments: '{}' } }),
        call(0, { function: { arguments: '"Paris"}' } }),
        { finish_reason: 'tool_calls' },
      ],
      [
        { delta: { content: 'It is ' } },
        { delta: { content: 'warm.', annotations: [cited] } },
        { finish_reason: 'stop' },
      ],
    ];
    const chunks = await readRun(sdk, scriptedChatModel(sdk, script));
    expect(deltasOf(chunks)).toEqual([
      ...['thinks Let me ', 'thinks look.', 'says I ', 'says look.'],
      ...['asks {"city":', 'asks {}', 'asks "Paris"}', 'says It is ', 'says warm.'],
    ]);
    expect(outline(foldChunks(chunks))).toEqual([
      ...['—', 'is Helper', 'thinks Let me look.', 'says I look.'],
      ...['weather({"city":"Paris"}) = "21° in Paris"', 'find({}) = {"hits":[1,2]}'],
      ...['—', 'says It is warm.', 'cites https://a.example/'],
    ]);
    expect(chunks.at(-1)).toMatchObject({
      finishReason: 'stop',
      messageMetadata: { usage: { inputTokens: 20, outputTokens: 10, totalTokens: 30 } },
    });
  });

  it('tells that Chat Completions stopped at the length, or said no', async () => {
    const answer = async (...script: ChatDelta[]) => {
      const chunks = await readRun(sdk, scriptedChatModel(sdk, [script]));
      const { parts } = foldChunks(chunks);
      return { said: outline({ parts }).slice(2), last: chunks.at(-1) };
    };
    const cut = await answer({ delta: { content: 'Half a' } }, { finish_reason: 'length' });
    expect(cut.said).toEqual(['says Half a']);
    expect(cut.last).toMatchObject({ finishReason: 'length' });
    const filtered = await answer(
      { delta: { content: 'Ha' } },
      { finish_reason: 'content_filter' },
    );
    expect(filtered.last).toMatchObject({ finishReason: 'content-filter' });
  });
});

it('shows a refusal of Chat Completions as the answer', async () => {
  const script = [[{ delta: { refusal: 'I ' } }, { delta: { refusal: 'cannot.' } }]];
  const chunks = await readRun(newest, scriptedChatModel(newest, script));
  expect(outline(foldChunks(chunks)).slice(2)).toEqual(['says I cannot.']);
  expect(deltasOf(chunks)).toEqual(['says I ', 'says cannot.']);
  expect(chunks.at(-1)).toMatchObject({
    finishReason: 'content-filter',
    messageMetadata: { outcome: 'finished' },
  });
});

describe('a model of the AI SDK in a run', () => {
  type Part = { type: string } & Record<string, unknown>;
  const usage = {
    inputTokens: { total: 10, noCache: 6, cacheRead: 4, cacheWrite: 0 },
    outputTokens: { total: 5, text: 3, reasoning: 2 },
  };
  const finish = (unified: string) => ({
    type: 'finish',
    usage,
    finishReason: { unified, raw: unified },
  });

  function aiSdkModel(...script: Part[][]) {
    let next = 0;
    return aisdk({
      specificationVersion: 'v3',
      provider: 'scripted',
      modelId: 'scripted',
      supportedUrls: {},
      doGenerate: () => Promise.reject(new Error('Not streamed.')),
      doStream: async () => ({ stream: streamOf(script[next++] ?? []) }),
    } as never);
  }

  it('streams thoughts, words and arguments', async () => {
    const input = '{"city":"Paris"}';
    const model = aiSdkModel(
      [
        { type: 'stream-start', warnings: [] },
        { type: 'reasoning-start', id: 'r1' },
        { type: 'reasoning-delta', id: 'r1', delta: 'Let me ' },
        { type: 'reasoning-delta', id: 'r1', delta: 'look.' },
        { type: 'reasoning-end', id: 'r1' },
        { type: 'tool-input-start', id: 'c1', toolName: 'weather' },
        { type: 'tool-input-delta', id: 'c1', delta: '{"city":' },
        { type: 'tool-input-delta', id: 'c1', delta: '"Paris"}' },
        { type: 'tool-input-end', id: 'c1' },
        { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input },
        finish('tool-calls'),
      ],
      [
        { type: 'text-start', id: 't1' },
        { type: 'text-delta', id: 't1', delta: 'It is ' },
        { type: 'text-delta', id: 't1', delta: 'warm.' },
        { type: 'text-end', id: 't1' },
        { type: 'source', sourceType: 'url', id: 's', url: 'https://a.example/', title: 'A' },
        finish('stop'),
      ],
    );
    const chunks = await readRun(newest, model);
    expect(deltasOf(chunks)).toEqual([
      ...['thinks Let me ', 'thinks look.', 'asks {"city":', 'asks "Paris"}'],
      ...['says It is ', 'says warm.'],
    ]);
    expect(outline(foldChunks(chunks))).toEqual([
      ...['—', 'is Helper', 'thinks Let me look.', 'weather({"city":"Paris"}) = "21° in Paris"'],
      ...['—', 'says It is warm.', 'cites https://a.example/'],
    ]);
    expect(chunks.at(-1)).toMatchObject({ messageMetadata: { usage: { totalTokens: 30 } } });
  });

  it('tells why it stopped', async () => {
    const model = aiSdkModel([
      { type: 'text-start', id: 't1' },
      { type: 'text-delta', id: 't1', delta: 'Half a' },
      { type: 'text-end', id: 't1' },
      finish('length'),
    ]);
    expect((await readRun(newest, model)).at(-1)).toMatchObject({ finishReason: 'length' });
  });

  it('tells an error of the model', async () => {
    const model = aiSdkModel([
      { type: 'text-start', id: 't1' },
      { type: 'text-delta', id: 't1', delta: 'Half a' },
      { type: 'error', error: new Error('overloaded') },
    ]);
    const chunks = await readRun(newest, model);
    expect(outline(foldChunks(chunks)).at(-1)).toBe('says Half a');
    expect(chunks.at(-2)).toEqual({ type: 'error', errorText: 'overloaded' });
  });
});

function streamOf<T>(items: readonly T[]): ReadableStream<T> {
  return new ReadableStream({
    start(controller) {
      for (const item of items) controller.enqueue(item);
      controller.close();
    },
  });
}
