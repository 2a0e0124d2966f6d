/** The SDK's own types fit what we ask for structurally, in both of the releases that are tested. */
import * as newest from '@openai/agents';
import * as v5 from 'ai-v5';
import * as v6 from 'ai-v6';
import * as v7 from 'ai-v7';
import * as older from 'openai-agents-v0-8';
import { describe, expectTypeOf, it } from 'vitest';
import type { ChunkOf, PortableChunk } from '../src/core/chunks.ts';
import { asUpstream } from '../src/gateway/index.ts';
import {
  agentsSdkAgent,
  type OpenAIAgentsUIMessage,
  type PendingRun,
  type RunStreamEvent,
  toAgentInput,
  toChunks,
} from '../src/sources/openai-agents/index.ts';

describe('with the types of the SDK', () => {
  it('takes its runs, awaited or not', async () => {
    const agent = new newest.Agent({ name: 'A' });
    const running = newest.run(agent, 'hi', { stream: true });
    expectTypeOf(toChunks(running)).toEqualTypeOf<ReadableStream<PortableChunk>>();
    expectTypeOf(toChunks(await running)).toEqualTypeOf<ReadableStream<PortableChunk>>();
    const old = new older.Agent({ name: 'A' });
    toChunks(older.run(old, 'hi', { stream: true }));
    toChunks(await older.run(old, 'hi', { stream: true }), { messageId: 'm', approvals: true });
  });

  it('gives what a stock server of each major answers with', () => {
    const running = newest.run(new newest.Agent({ name: 'A' }), 'hi', { stream: true });
    v5.createUIMessageStreamResponse({ stream: toChunks(running) });
    v6.createUIMessageStreamResponse({ stream: toChunks(running) });
    v7.createUIMessageStreamResponse({ stream: toChunks(running) });
    v6.createUIMessageStreamResponse({ stream: toChunks(running, { approvals: true }) });
    v7.createUIMessageStreamResponse({ stream: toChunks(running, { approvals: true }) });
    // @ts-expect-error AI SDK 5 knows no approvals.
    v5.createUIMessageStreamResponse({ stream: toChunks(running, { approvals: true }) });
    expectTypeOf(toChunks(running, { approvals: true })).toEqualTypeOf<
      ReadableStream<ChunkOf<6>>
    >();
  });

  it('takes its events', () => {
    expectTypeOf<newest.RunStreamEvent>().toExtend<RunStreamEvent>();
    expectTypeOf<older.RunStreamEvent>().toExtend<RunStreamEvent>();
  });

  it('takes its run, its Runner and its RunState', () => {
    const agent = new newest.Agent({ name: 'A' });
    const { run, RunState } = newest;
    const pending = new Map<string, PendingRun>();
    asUpstream(agentsSdkAgent({ agent, run, RunState, pending }));
    const runner = new newest.Runner();
    agentsSdkAgent({
      agent,
      run: (from: typeof agent, input: string, options: { stream: true }) =>
        runner.run(from, input, options),
    });
    const old = new older.Agent({ name: 'A' });
    agentsSdkAgent({ agent: old, run: older.run, RunState: older.RunState });
  });

  it('gives what its run takes', () => {
    const agent = new newest.Agent({ name: 'A' });
    newest.run(agent, toAgentInput([]), { stream: true });
    older.run(new older.Agent({ name: 'A' }), toAgentInput([]), { stream: true });
  });

  it('types the parts of a message', () => {
    type Part = OpenAIAgentsUIMessage['parts'][number];
    type AgentPart = Extract<Part, { type: 'data-agent' }>;
    expectTypeOf<AgentPart['data']>().toEqualTypeOf<{ name: string; from?: string }>();
  });
});
