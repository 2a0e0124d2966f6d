/** The SDK's own types fit what the drivers ask for structurally, in every major. */
import * as v5 from 'ai-v5';
import { MockLanguageModelV2 } from 'ai-v5/test';
import * as v6 from 'ai-v6';
import { MockLanguageModelV3 } from 'ai-v6/test';
import * as v609 from 'ai-v6-0-9';
import { MockLanguageModelV3 as OldMockLanguageModelV3 } from 'ai-v6-0-9/test';
import * as v7 from 'ai-v7';
import { MockLanguageModelV4 } from 'ai-v7/test';
import { describe, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import type { Chunk } from '../src/core/chunks.ts';
import {
  type AiSdk,
  type AiSdkAgent,
  type AiSdkModel,
  aiSdkDriver,
} from '../src/sources/ai-sdk/agent.ts';
import { chunkDriver } from '../src/sources/ai-sdk/chunk-driver.ts';
import { OpenHarnessChatTransport } from '../src/sources/open-harness/index.ts';
import { toChunks } from '../src/sources/openai-agents/index.ts';
import type { AgentDriver } from '../src/turns/driver.ts';

const inputSchema = z.object({ q: z.string() });
const execute = ({ q }: { q: string }) => q;

describe('aiSdkDriver', () => {
  it('takes the models of every major', () => {
    expectTypeOf<v5.LanguageModel>().toExtend<AiSdkModel>();
    expectTypeOf<v609.LanguageModel>().toExtend<AiSdkModel>();
    expectTypeOf<v6.LanguageModel>().toExtend<AiSdkModel>();
    expectTypeOf<v7.LanguageModel>().toExtend<AiSdkModel>();
    // @ts-expect-error No model.
    aiSdkDriver({ model: {} });
    // @ts-expect-error Neither a model nor an agent.
    aiSdkDriver({});
  });

  it('takes the module itself', () => {
    expectTypeOf<typeof v5>().toExtend<AiSdk>();
    expectTypeOf<typeof v609>().toExtend<AiSdk>();
    expectTypeOf<typeof v6>().toExtend<AiSdk>();
    expectTypeOf<typeof v7>().toExtend<AiSdk>();
  });

  it('takes the tools of every major', () => {
    const tools5 = { lookup: v5.tool({ inputSchema, execute }) };
    const tools609 = { lookup: v609.tool({ inputSchema, execute, needsApproval: true }) };
    const tools6 = { lookup: v6.tool({ inputSchema, execute, needsApproval: true }) };
    const tools7 = { lookup: v7.tool({ inputSchema, execute, needsApproval: true }) };
    const driver = aiSdkDriver({ model: new MockLanguageModelV2(), tools: tools5, ai: v5 });
    expectTypeOf(driver).toEqualTypeOf<AgentDriver>();
    aiSdkDriver({ model: new OldMockLanguageModelV3(), tools: tools609, ai: v609 });
    aiSdkDriver({ model: new MockLanguageModelV3(), tools: tools6, ai: v6 });
    aiSdkDriver({ model: new MockLanguageModelV4(), tools: tools7, ai: v7 });
    expectTypeOf<v5.ToolSet>().toExtend<Readonly<Record<string, object>>>();
    expectTypeOf<v609.ToolSet>().toExtend<Readonly<Record<string, object>>>();
    expectTypeOf<v6.ToolSet>().toExtend<Readonly<Record<string, object>>>();
    expectTypeOf<v7.ToolSet>().toExtend<Readonly<Record<string, object>>>();
  });

  it('takes the agents of every major', () => {
    const agent5 = new v5.Experimental_Agent({ model: new MockLanguageModelV2() });
    const agent609 = new v609.ToolLoopAgent({ model: new OldMockLanguageModelV3() });
    const tools = { lookup: v6.tool({ inputSchema, execute }) };
    const agent6 = new v6.ToolLoopAgent({ model: new MockLanguageModelV3(), tools });
    const agent7 = new v7.ToolLoopAgent({ model: new MockLanguageModelV4() });
    for (const agent of [agent5, agent609, agent6, agent7]) aiSdkDriver({ agent });
    expectTypeOf<v6.Agent>().toExtend<AiSdkAgent>();
    expectTypeOf<v7.Agent>().toExtend<AiSdkAgent>();
    // @ts-expect-error An agent has its own model.
    aiSdkDriver({ agent: agent7, models: {} });
  });

  it('takes models to choose from, as a list or by name', () => {
    const model = new MockLanguageModelV4();
    aiSdkDriver({ model, models: { fast: model, slow: 'acme/slow' } });
    aiSdkDriver({ model, models: (name) => (name === 'fast' ? model : undefined) });
  });
});

describe('chunkDriver', () => {
  it('takes the streams of every major and source, and generators', () => {
    const model = new MockLanguageModelV4();
    chunkDriver({ answer: () => v7.streamText({ model, prompt: 'x' }).toUIMessageStream() });
    const model6 = new MockLanguageModelV3();
    chunkDriver({
      answer: () => v6.streamText({ model: model6, prompt: 'x' }).toUIMessageStream(),
    });
    const model5 = new MockLanguageModelV2();
    chunkDriver({
      answer: () => v5.streamText({ model: model5, prompt: 'x' }).toUIMessageStream(),
    });
    chunkDriver({ answer: () => toChunks({} as Parameters<typeof toChunks>[0]) });
    const transport = new OpenHarnessChatTransport({} as never);
    chunkDriver({ answer: () => transport.sendMessages({} as never) });
    chunkDriver({
      async *answer() {
        yield { type: 'text-delta', id: 't', delta: 'x' };
        yield { type: 'usage', usage: { inputTokens: 1 } };
      },
    });
    chunkDriver({ answer: () => ({}) as AsyncIterable<Chunk> });
    // @ts-expect-error Not a chunk.
    chunkDriver({ answer: () => ({}) as AsyncIterable<{ type: 'nonsense' }> });
  });
});
