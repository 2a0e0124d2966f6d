/** The same agent behind a gateway and in a session: it asks before it acts, and knows the conversation. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { asUpstream } from '../src/gateway/index.ts';
import { aiSdkAgent } from '../src/sources/ai-sdk/agent.ts';
import { agentsSdkAgent } from '../src/sources/openai-agents/index.ts';
import type { Agent } from '../src/turns/agent.ts';
import { AI_SDK_7, callTool, say } from './ai-sdk-models.ts';
import { chatBody, createTestGateway, createUser, openSse } from './gateway-client.ts';
import { removingTool } from './openai-agents/removing-tool.ts';
import { scriptedModel } from './openai-agents/scripted-model.ts';
import { SDKS } from './openai-agents/sdks.ts';
import { joinSession, startSessionChain } from './session-chain.ts';

type Question = { questionId: string; toolCallId?: string; status?: string };
type Made = { agent: Agent; removed: string[]; inputs(): unknown[] };

const PATH = { path: 'a' };

function makeAiSdkAgent(): Made {
  const removed: string[] = [];
  const remove = {
    inputSchema: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }: { path: string }) => void removed.push(path),
  };
  const { model, calls } = AI_SDK_7.model([callTool('c', 'remove', PATH), say('Gone.')]);
  const agent = aiSdkAgent({ ai: AI_SDK_7.ai, model, tools: { remove } });
  return { agent, removed, inputs: () => calls.map(({ prompt }) => prompt) };
}

function makeAgentsSdkAgent(): Made {
  const [{ sdk }] = SDKS as [(typeof SDKS)[number]];
  const removed: string[] = [];
  const inputs: unknown[] = [];
  const script = [
    { outputs: [{ call: 'remove', input: PATH, callId: 'c' }] },
    { outputs: [{ text: 'Gone.' }] },
  ];
  const onRequest = ({ input }: Record<string, unknown>) => void inputs.push(input);
  const model = scriptedModel(sdk, script, undefined, { onRequest });
  const clerk = new sdk.Agent({ name: 'Clerk', tools: [removingTool(sdk, removed)], model });
  const { run, RunState } = sdk;
  return { agent: agentsSdkAgent({ agent: clerk, run, RunState }), removed, inputs: () => inputs };
}

const AGENTS = [
  ['the AI SDK', makeAiSdkAgent],
  ['the Agents SDK', makeAgentsSdkAgent],
] as const;

/** How often the model was told so. */
const count = (inputs: unknown[], text: string) =>
  JSON.stringify(inputs[0]).split(`"${text}"`).length - 1;

it.each(AGENTS)('an agent of %s asks behind a gateway, and goes on', async (_, make) => {
  const { agent, removed, inputs } = make();
  const carl = createUser(createTestGateway(asUpstream(agent)), 'carl');
  const sse = openSse(await carl.post(chatBody('remove a')));
  const questions = () =>
    sse
      .chunks()
      .flatMap((chunk) => (chunk.type === 'data-question' ? [chunk.data as Question] : []));
  const { questionId, toolCallId } = await sse.until(() => questions()[0]);
  expect(toolCallId).toBe('c');
  expect(removed).toEqual([]);
  expect((await carl.answer(questionId, 'Approve')).status).toBe(202);
  await sse.ended;
  expect(removed).toEqual(['a']);
  expect(sse.text()).toBe('Gone.');
  expect(questions().at(-1)?.status).toBe('answered');
  expect(count(inputs(), 'remove a')).toBe(1);
});

it.each(AGENTS)('an agent of %s asks in a session, and goes on', async (_, make) => {
  const { agent, removed, inputs } = make();
  const ann = await joinSession(await startSessionChain({ agent }), { query: '&dialect=v2' });
  ann.send({ type: 'prompt', content: 'remove a' });
  const question = await ann.until(({ type }) => type === 'question');
  expect(question).toMatchObject({ callId: 'c', options: ['Approve', 'Deny'] });
  expect(removed).toEqual([]);
  ann.send({ type: 'answer', questionId: question.questionId, answer: 'Approve' });
  await ann.until(({ type }) => type === 'message.finalize');
  expect(removed).toEqual(['a']);
  expect(ann.text()).toBe('Gone.');
  expect(ann.of('question')).toHaveLength(1);
  expect(ann.of('message.part.tool-update').at(-1)).toMatchObject({ status: 'completed' });
  expect(ann.of('usage-report')).toHaveLength(1);
  expect(count(inputs(), 'remove a')).toBe(1);
});
