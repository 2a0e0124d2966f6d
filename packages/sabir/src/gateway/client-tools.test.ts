import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { AI_SDK_RELEASES, callTool, say } from '../../test/ai-sdk-models.ts';
import { createApprovalClient, listen } from '../../test/approval-agent.ts';
import {
  chatBody,
  createTestGateway,
  createUser,
  eventually,
  openSse,
} from '../../test/gateway-client.ts';
import { startHosted } from '../../test/hosted-gateway.ts';
import { type ClientName, loadSdk } from '../../test/real-clients.ts';
import type { UIMessage } from '../core/message.ts';
import { aiSdkAgent } from '../sources/ai-sdk/agent.ts';
import type { Agent, AgentFunction } from '../turns/agent.ts';
import { asUpstream, type ChatGatewayOptions } from './index.ts';

const NAMES: ClientName[] = ['ai@5', 'ai@6.0.9', 'ai@6', 'ai@7'];
/** An agent that asks the browser for its position, `calls` times. */
const locator = (calls = 1, wait = {}): AgentFunction =>
  async function* ({ toolOutput }) {
    for (let n = 1; n <= calls; n++) {
      const toolCallId = `where-${n}`;
      yield { type: 'tool-input-available', toolCallId, toolName: 'locate', input: { n } };
      const result = await toolOutput(toolCallId, wait);
      yield { type: 'text-delta', delta: `${JSON.stringify(result)} ` };
    }
  };

function startGateway(agent: AgentFunction, options: Partial<ChatGatewayOptions> = {}) {
  const finished: UIMessage[] = [];
  const onFinish = ({ message }: { message: UIMessage }) => void finished.push(message);
  return { gateway: createTestGateway(asUpstream(agent), { onFinish, ...options }), finished };
}

type ToolPage = { runs: object[]; messages?: UIMessage[]; isIdle?: boolean };

/** A page that runs the tool and sends its output by itself, as the AI SDK's documents show it. */
async function openPage(
  name: ClientName,
  url: string | (() => string),
  { runs, messages = [], isIdle = false }: ToolPage,
) {
  const sdk = await loadSdk(name);
  const give = (toolCallId: string, more: object) =>
    (client.chat as unknown as { addToolOutput(given: object): Promise<void> }).addToolOutput({
      tool: 'locate',
      toolCallId,
      ...more,
    });
  const client: Awaited<ReturnType<typeof createApprovalClient>> = await createApprovalClient(
    name,
    typeof url === 'string' ? () => url : url,
    {
      messages,
      saysMajor: false,
      init: {
        sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls,
        onToolCall: ({ toolCall }: { toolCall: { toolCallId: string; input: object } }) => {
          runs.push(toolCall.input);
          // Not awaited: the SDK waits for `onToolCall` before it reads on.
          if (!isIdle) void give(toolCall.toolCallId, { output: { port: 'Valletta' } });
        },
      },
    },
  );
  return { ...client, give };
}

describe.each(NAMES)('a tool that runs in a page of %s', (name) => {
  it('gets its output to the agent, and the turn goes on in the same message', async () => {
    const { gateway, finished } = startGateway(locator(2));
    const runs: object[] = [];
    const page = await openPage(name, await listen(gateway), { runs });
    await page.chat.sendMessage({ text: 'where am I?' });
    await eventually(() => finished[0] && page.result().status === 'ready', 'its end');
    expect(runs).toEqual([{ n: 1 }, { n: 2 }]);
    const told = '{"status":"done","output":{"port":"Valletta"}} ';
    expect(page.text()).toBe(told + told);
    expect(page.tools().map(({ state }) => state)).toEqual([
      'output-available',
      'output-available',
    ]);
    expect(page.result().messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(page.result().message?.id).toBe(finished[0]?.id);
    expect(page.posts()).toBe(3);
  });

  it('tells the agent that it failed', async () => {
    const { gateway, finished } = startGateway(locator());
    const page = await openPage(name, await listen(gateway), { runs: [], isIdle: true });
    await page.chat.sendMessage({ text: 'where am I?' });
    await page.give('where-1', { state: 'output-error', errorText: 'No permission.' });
    await eventually(() => finished[0] && page.result().status === 'ready', 'its end');
    expect(page.text()).toBe('{"status":"failed","errorText":"No permission."} ');
    expect(page.tools()[0]).toMatchObject({ state: 'output-error', errorText: 'No permission.' });
  });

  it('loses nothing when the page is reloaded before it has run', async () => {
    const { gateway, finished } = startGateway(locator(), { timing: { disconnectGraceMs: 20 } });
    const url = await listen(gateway);
    const before = await openPage(name, url, { runs: [], isIdle: true });
    await before.chat.sendMessage({ text: 'where am I?' });
    await new Promise((resolve) => setTimeout(resolve, 100));
    const runs: object[] = [];
    const asked = before.result().messages.slice(0, 1);
    const page = await openPage(name, url, { runs, messages: asked });
    await page.chat.resumeStream();
    await eventually(() => finished[0] && page.result().status === 'ready', 'its end');
    expect(runs).toEqual([{ n: 1 }]);
    expect(page.text()).toContain('Valletta');
    expect(page.result().message?.id).toBe(finished[0]?.id);
  });

  it('counts once: the page that is second goes on with the output of the first', async () => {
    const { gateway, finished } = startGateway(locator());
    const url = await listen(gateway);
    const slow = await openPage(name, url, { runs: [], isIdle: true });
    await slow.chat.sendMessage({ text: 'where am I?' });
    const asked = slow.result().messages.slice(0, 1);
    const fast = await openPage(name, url, { runs: [], messages: asked });
    await fast.chat.resumeStream();
    await eventually(() => finished[0], 'its end');
    await slow.give('where-1', { output: { port: 'Gozo' } });
    await eventually(() => slow.text() !== '' && slow.result().status === 'ready', 'what follows');
    expect(slow.text()).toBe(fast.text());
    expect(slow.tools()[0]).toMatchObject({ output: { port: 'Valletta' } });
    expect(slow.posts()).toBe(2);
  });
});

describe('a tool without execute', () => {
  it.each(AI_SDK_RELEASES)('of $name runs in the page, in a session', async (release) => {
    const { model, calls } = release.model([callTool('c', 'locate', { n: 1 }), say('Valletta!')]);
    const tools = { locate: { description: '', inputSchema: z.object({ n: z.number() }) } };
    const { gateway, finished } = startHosted({
      sessions: { agent: () => aiSdkAgent({ ai: release.ai, model, tools }) },
    });
    const runs: object[] = [];
    const page = await openPage('ai@7', await listen(gateway), { runs });
    await page.chat.sendMessage({ text: 'where am I?' });
    await eventually(() => finished[0] && page.result().status === 'ready', 'its end');
    expect(runs).toEqual([{ n: 1 }]);
    expect(page.text()).toBe('Valletta!');
    expect(calls).toHaveLength(2);
    const [told] = calls[1]?.prompt.filter(({ role }) => role === 'tool') ?? [];
    expect(JSON.stringify(told)).toContain('"value":{"port":"Valletta"}');
    const history = await createUser(gateway, 'carl').messages();
    expect(JSON.stringify(await history.json())).toContain('"output":{"port":"Valletta"}');
  });
});

describe('a tool without execute that `clientTools` leaves out', () => {
  it.each(AI_SDK_RELEASES)('of $name ends the turn', async (release) => {
    const { model, calls } = release.model([callTool('c', 'answer', { n: 1 }), say('Not asked.')]);
    const tools = { answer: { description: '', inputSchema: z.object({ n: z.number() }) } };
    const agent = aiSdkAgent({ ai: release.ai, model, tools, clientTools: [] });
    const { gateway, finished } = startHosted({ sessions: { agent: () => agent } });
    await openSse(await createUser(gateway, 'carl').post(chatBody('go'))).ended;
    await eventually(() => finished[0], 'its end');
    expect(calls).toHaveLength(1);
    expect(finished[0]?.message.parts).toContainEqual(expect.objectContaining({ input: { n: 1 } }));
  });
});

describe('a tool of a turn that was kept when its process ended', () => {
  /** An agent that tells again, `tellMs` after its process has started, which call waits. */
  function startProcess(kept: Map<string, string>, tellMs = 0) {
    const agent: Agent = {
      name: 'keeper',
      concurrent: true,
      restore: ({ chatKey }) => {
        const messageId = kept.get(chatKey);
        return messageId === undefined ? undefined : { messageId };
      },
      async *prompt({ chatKey, messageId, toolOutput }) {
        kept.set(chatKey, messageId);
        await new Promise((resolve) => setTimeout(resolve, tellMs));
        const call = { toolCallId: 'where-1', toolName: 'locate', input: {} };
        yield { type: 'tool-input-available', ...call };
        const result = await toolOutput('where-1');
        kept.delete(chatKey);
        yield { type: 'text-delta', delta: JSON.stringify(result) };
      },
    };
    return createTestGateway(asUpstream(agent));
  }

  it.each(NAMES)('gets its output from a page of %s that stayed open', async (name) => {
    const kept = new Map<string, string>();
    const first = startProcess(kept);
    let url = await listen(first);
    const page = await openPage(name, () => url, { runs: [], isIdle: true });
    await page.chat.sendMessage({ text: 'where am I?' });
    await first.close();
    url = await listen(startProcess(kept, 100));
    await page.give('where-1', { output: { port: 'Valletta' } });
    await eventually(() => page.text() !== '' && page.result().status === 'ready', 'the rest');
    expect(page.text()).toBe('{"status":"done","output":{"port":"Valletta"}}');
  });
});

describe('a turn that waits for a page to run a tool', () => {
  it('takes the output at /answer, from clients of the contract too', async () => {
    const { gateway } = startGateway(locator());
    const carl = createUser(gateway, 'carl');
    const sse = openSse(await carl.post(chatBody('where?'), { query: 'wire=contract' }));
    await eventually(() => sse.frames.some(({ data }) => data.includes('"waiting"')), 'the wait');
    const given = await carl.answer('where-1', { output: { port: 'Valletta' } });
    expect(given.status).toBe(202);
    await sse.ended;
    expect(sse.frames.map(({ data }) => data).join()).toContain('Valletta');
    expect((await carl.answer('where-1', { output: 1 })).status).toBe(409);
  });

  it('fails the tool when the answer is no output', async () => {
    const { gateway, finished } = startGateway(locator());
    const carl = createUser(gateway, 'carl');
    const sse = openSse(await carl.post(chatBody('where?')));
    await sse.ended;
    expect((await carl.answer('where-1', 'here')).status).toBe(202);
    await eventually(() => finished[0], 'its end');
    expect(JSON.stringify(finished[0])).toContain('The client sent no output for the tool.');
  });

  it('ends the wait when the time for it is over', async () => {
    const { gateway, finished } = startGateway(locator(1, { expiresInMs: 60 }));
    const carl = createUser(gateway, 'carl');
    await openSse(await carl.post(chatBody('where?'))).ended;
    await eventually(() => finished[0], 'its end');
    expect(JSON.stringify(finished[0])).toContain('expired');
    expect(JSON.stringify(finished[0])).toContain('No client ran the tool in time.');
    expect((await carl.answer('where-1', { output: 1 })).status).toBe(410);
  });

  it('takes the output from the asker, and from no other collaborator, owner or viewer', async () => {
    const { gateway } = startGateway(locator());
    const carl = createUser(gateway, 'carl');
    await openSse(await carl.post(chatBody('where?'))).ended;
    for (const [other, status] of [
      ['cora', 403],
      ['olga', 403],
      ['vera', 404],
    ] as const) {
      const given = await createUser(gateway, other).answer('where-1', { output: 1 });
      expect([other, given.status]).toEqual([other, status]);
    }
    expect((await carl.answer('where-1', { output: 1 })).status).toBe(202);
  });

  it('takes the output from another user whom the agent names', async () => {
    const { gateway } = startGateway(locator(1, { answerBy: { role: 'owner' } }));
    const carl = createUser(gateway, 'carl');
    const sse = openSse(await carl.post(chatBody('where?')));
    await eventually(() => sse.frames.some(({ data }) => data.includes('"waiting"')), 'the wait');
    expect((await carl.answer('where-1', { output: 1 })).status).toBe(403);
    expect((await createUser(gateway, 'olga').answer('where-1', { output: 1 })).status).toBe(202);
    // The asker could not answer, so that their stream went on.
    await sse.ended;
    expect(sse.frames.map(({ data }) => data).join()).toContain('done');
  });

  it.each([
    ['5 minutes', {}, {}, 5 * 60_000],
    ['the time of asUpstream', { questionMs: 9_000 }, {}, 9_000],
    ['the time that the agent says', {}, { expiresInMs: 70_000 }, 70_000],
    ['no time where the agent says Infinity', {}, { expiresInMs: Infinity }, undefined],
  ] as const)('gives clients %s', async (_, options, wait, ms) => {
    const gateway = createTestGateway(asUpstream(locator(1, wait), options));
    const before = Date.now();
    const sse = openSse(await createUser(gateway, 'carl').post(chatBody('where?')));
    await sse.ended;
    const waiting = sse.chunks().find(({ type }) => type === 'data-client-tool');
    const { expiresAt } = (waiting as { data: { expiresAt?: number } }).data;
    if (ms === undefined) expect(expiresAt).toBeUndefined();
    else expect(Math.abs((expiresAt ?? 0) - before - ms)).toBeLessThan(5_000);
  });
});
