/** The SDK's own types fit what agents ask for structurally, in every major. */
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
  aiSdkAgent,
} from '../src/sources/ai-sdk/agent.ts';
import { asUpstream } from '../src/sources/ai-sdk/upstream.ts';
import { OpenHarnessChatTransport } from '../src/sources/open-harness/index.ts';
import { toChunks } from '../src/sources/openai-agents/index.ts';
import type { Agent } from '../src/turns/agent.ts';

const inputSchema = z.object({ q: z.string() });
const execute = ({ q }: { q: string }) => q;

describe('aiSdkAgent', () => {
  it('takes the models of every major', () => {
    expectTypeOf<v5.LanguageModel>().toExtend<AiSdkModel>();
    expectTypeOf<v609.LanguageModel>().toExtend<AiSdkModel>();
    expectTypeOf<v6.LanguageModel>().toExtend<AiSdkModel>();
    expectTypeOf<v7.LanguageModel>().toExtend<AiSdkModel>();
    // @ts-expect-error No model.
    aiSdkAgent({ model: {} });
    // @ts-expect-error Neither a model nor an agent.
    aiSdkAgent({});
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
    const agent = aiSdkAgent({ model: new MockLanguageModelV2(), tools: tools5, ai: v5 });
    expectTypeOf(agent).toEqualTypeOf<Agent>();
    aiSdkAgent({ model: new OldMockLanguageModelV3(), tools: tools609, ai: v609 });
    aiSdkAgent({ model: new MockLanguageModelV3(), tools: tools6, ai: v6 });
    aiSdkAgent({ model: new MockLanguageModelV4(), tools: tools7, ai: v7 });
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
    for (const agent of [agent5, agent609, agent6, agent7]) aiSdkAgent({ agent });
    expectTypeOf<v6.Agent>().toExtend<AiSdkAgent>();
    expectTypeOf<v7.Agent>().toExtend<AiSdkAgent>();
    // @ts-expect-error An agent has its own model.
    aiSdkAgent({ agent: agent7, models: {} });
  });

  it('takes models to choose from, as a list or by name', () => {
    const model = new MockLanguageModelV4();
    aiSdkAgent({ model, models: { fast: model, slow: 'acme/slow' } });
    aiSdkAgent({ model, models: (name) => (name === 'fast' ? model : undefined) });
  });
});

describe('a function that is an agent', () => {
  it('gives the streams of every major and source, or chunks of a generator', () => {
    const model = new MockLanguageModelV4();
    asUpstream(() => v7.streamText({ model, prompt: 'x' }).toUIMessageStream());
    const model6 = new MockLanguageModelV3();
    asUpstream(() => v6.streamText({ model: model6, prompt: 'x' }).toUIMessageStream());
    const model5 = new MockLanguageModelV2();
    asUpstream(() => v5.streamText({ model: model5, prompt: 'x' }).toUIMessageStream());
    asUpstream(() => toChunks({} as Parameters<typeof toChunks>[0]));
    const transport = new OpenHarnessChatTransport({} as never);
    asUpstream(() => transport.sendMessages({} as never));
    asUpstream(async function* () {
      yield { type: 'text-delta', id: 't', delta: 'x' };
      yield { type: 'reasoning-delta', delta: 'x' };
    });
    asUpstream(() => ({}) as AsyncIterable<Chunk>);
    // @ts-expect-error Not a chunk.
    asUpstream(() => ({}) as AsyncIterable<{ type: 'nonsense' }>);
  });

  it('is told what the body is expected to be', () => {
    asUpstream<{ model: string }>(async function* ({ body }) {
      yield { type: 'text-delta', delta: body.model };
    });
  });
});
