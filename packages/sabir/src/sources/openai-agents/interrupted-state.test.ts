import { createUIMessageStreamResponse } from 'ai-v7';
import { describe, expect, it, vi } from 'vitest';
import { removingTool } from '../../../test/openai-agents/removing-tool.ts';
import type { ScriptedResponse } from '../../../test/openai-agents/responses-script.ts';
import { scriptedModel } from '../../../test/openai-agents/scripted-model.ts';
import { SDKS, type Sdk } from '../../../test/openai-agents/sdks.ts';
import { type ClientName, createClient, httpTransport } from '../../../test/real-clients.ts';
import type { UIMessage } from '../../core/message.ts';
import { applyDecisions, toAgentInput, toChunks } from './index.ts';

type Post = { id: string; messages: UIMessage[] };

/** The guide's route without the gateway: the run's state is kept between two requests. */
function createRoute(sdk: Sdk, script: ScriptedResponse[]) {
  const { Agent, RunState, run } = sdk;
  const deleted: string[] = [];
  const remove = removingTool(sdk, deleted);
  const agent = new Agent({ name: 'Desk', tools: [remove], model: scriptedModel(sdk, script) });
  const runs = new Map<string, string>();
  const verdicts: boolean[] = [];
  async function post({ id, messages }: Post): Promise<Response> {
    const message = messages.at(-1) as UIMessage;
    const saved = runs.get(id);
    runs.delete(id);
    const isAnswer = message.role === 'assistant';
    if (isAnswer && saved === undefined) return new Response('Nothing waits.', { status: 409 });
    const state = isAnswer && saved ? await RunState.fromString(agent, saved) : undefined;
    if (state) verdicts.push(applyDecisions(state, message));
    const running = await run(agent, state ?? toAgentInput(messages), { stream: true });
    const keep = () => running.interruptions.length > 0 && runs.set(id, running.state.toString());
    running.completed.then(keep, () => undefined);
    const stream = toChunks(running, { approvals: true, ...(state && { message }) });
    return createUIMessageStreamResponse({ stream });
  }
  return { post, deleted, verdicts };
}

async function createChat(name: ClientName, post: (body: Post) => Promise<Response>) {
  let posts = 0;
  const transport = await httpTransport(name, (_, { body }) => {
    posts++;
    return post(JSON.parse(String(body)));
  });
  const { lastAssistantMessageIsCompleteWithApprovalResponses: sendAutomaticallyWhen } =
    await (name === 'ai@6' ? import('ai-v6') : import('ai-v7'));
  const { chat, result } = await createClient(name, transport, { sendAutomaticallyWhen });
  type Answer = { id: string; approved: boolean; reason?: string };
  const { addToolApprovalResponse: answer } = chat as unknown as {
    addToolApprovalResponse(given: Answer): Promise<void>;
  };
  return { chat, result, answer, posts: () => posts };
}

const call = (path: string) => ({ call: 'remove', input: { path }, callId: path });
const toolsOf = (message: UIMessage | undefined) =>
  (message?.parts ?? []).flatMap((part) => ('toolCallId' in part ? [part] : []));

describe.each(SDKS)('a run of Agents SDK $version that waits between two requests', ({ sdk }) => {
  it.each(['ai@6', 'ai@7'] as const)('goes on in the same message of %s', async (name) => {
    const script = [{ outputs: [call('a'), call('b')] }, { outputs: [{ text: 'Done.' }] }];
    const { post, deleted, verdicts } = createRoute(sdk, script);
    const { chat, result, answer, posts } = await createChat(name, post);
    await chat.sendMessage({ text: 'go' });
    const asked = result().message;
    expect(toolsOf(asked).map(({ state }) => state)).toEqual([
      'approval-requested',
      'approval-requested',
    ]);
    await answer({ id: 'approve-a', approved: true });
    await answer({ id: 'approve-b', approved: false, reason: 'Not that one.' });
    await vi.waitUntil(() => result().message?.parts.some(({ type }) => type === 'text'));
    await vi.waitUntil(() => result().status === 'ready');
    expect(verdicts).toEqual([true]);
    expect(deleted).toEqual(['a']);
    expect(result().messages).toHaveLength(2);
    expect(result().message?.id).toBe(asked?.id);
    expect(toolsOf(result().message)).toMatchObject([
      { state: 'output-available', output: 'a is gone' },
      { state: 'output-denied' },
    ]);
    expect(posts()).toBe(2);
  });

  it('has its tools run once, however often the answer is sent', async () => {
    const { post, deleted } = createRoute(sdk, [
      { outputs: [call('a')] },
      { outputs: [{ text: 'Done.' }] },
    ]);
    const { chat, result } = await createChat('ai@7', post);
    await chat.sendMessage({ text: 'go' });
    const [user, message] = result().messages as [UIMessage, UIMessage];
    const parts = message.parts.map((part) =>
      'toolCallId' in part
        ? { ...part, state: 'approval-responded', approval: { id: 'approve-a', approved: true } }
        : part,
    ) as UIMessage['parts'];
    const body = { id: 'chat', messages: [user, { ...message, parts }] };
    const answers = await Promise.all([post(body), post(body)]);
    await Promise.all(answers.map((answer) => answer.text()));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(deleted).toEqual(['a']);
  });

  it('takes only what was really answered, and says what is missing', async () => {
    const { Agent, run } = sdk;
    const remove = removingTool(sdk, []);
    const model = scriptedModel(sdk, [{ outputs: [call('a'), call('b')] }]);
    const running = await run(new Agent({ name: 'A', tools: [remove], model }), 'go', {
      stream: true,
    });
    await running.completed;
    const part = (toolCallId: string, state: string, approved?: unknown) => ({
      type: 'tool-remove',
      toolCallId,
      state,
      approval: { id: 'x', approved },
    });
    const message = (...parts: object[]) =>
      ({ id: 'm', role: 'assistant', parts }) as unknown as UIMessage;
    const approve = vi.spyOn(running.state, 'approve');
    const reject = vi.spyOn(running.state, 'reject');
    const asked = part('a', 'approval-requested', true);
    expect(applyDecisions(running.state, message(asked, part('ab', 'approval-responded')))).toBe(
      false,
    );
    expect([approve.mock.calls, reject.mock.calls]).toEqual([[], []]);
    // What is no yes is a no; an id that was used before has a number.
    const odd = part('a-2', 'approval-responded', 'yes');
    const yes = part('b', 'approval-responded', true);
    expect(applyDecisions(running.state, message(odd, yes))).toBe(true);
    // A no to one call is no answer to another that is called alike.
    const [a, b] = running.interruptions;
    expect(reject.mock.calls).toEqual([[a, {}]]);
    expect(approve.mock.calls).toEqual([[b]]);
  });

  it('does not take a yes to one call for a yes to another that is called alike', () => {
    const item = (callId: string) => ({ type: 'tool_approval_item', rawItem: { callId } });
    const [first, second] = [item('call'), item('call-2')];
    const decided: unknown[] = [];
    const state = {
      getInterruptions: () => [first, second],
      approve: (given: unknown) => decided.push(['yes', given]),
      reject: (given: unknown) => decided.push(['no', given]),
    };
    const answer = (toolCallId: string, approved: boolean) => ({
      type: 'tool-x',
      toolCallId,
      state: 'approval-responded',
      approval: { approved },
    });
    const parts = [answer('call', false), answer('call-2', true)];
    const message = { id: 'm', role: 'assistant', parts } as unknown as UIMessage;
    expect(applyDecisions(state, message)).toBe(true);
    expect(decided).toEqual([
      ['no', first],
      ['yes', second],
    ]);
  });
});
