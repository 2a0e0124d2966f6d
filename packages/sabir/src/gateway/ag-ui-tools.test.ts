import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createHttpAgent, saidBy, watchWarnings } from '../../test/ag-ui-client.ts';
import { connectAgUi, runInput } from '../../test/ag-ui-gateway.ts';
import { AI_SDK_7, callTool, say } from '../../test/ai-sdk-models.ts';
import { listen } from '../../test/approval-agent.ts';
import { eventually, openSse } from '../../test/gateway-client.ts';
import { startHosted } from '../../test/hosted-gateway.ts';
import { aiSdkAgent } from '../sources/ai-sdk/agent.ts';
import type { AgentFunction } from '../turns/agent.ts';
import type { AgUiEvent } from '../wires/ag-ui/index.ts';
import { asUpstream } from './index.ts';

const PATH = '/api/sessions/s1/ag-ui';
const LOCATE = { name: 'locate', description: '', parameters: {} };

/** Asks the client for its position, `calls` times at once, and repeats the results. */
const locator = (calls = 1): AgentFunction =>
  async function* ({ text, toolOutput }) {
    if (text !== 'hi') {
      yield { type: 'text-delta', delta: `You said ${text}.` };
      return;
    }
    const ids = Array.from({ length: calls }, (_, n) => `where-${n + 1}`);
    for (const toolCallId of ids) {
      yield { type: 'tool-input-available', toolCallId, toolName: 'locate', input: {} };
    }
    const results = await Promise.all(ids.map((toolCallId) => toolOutput(toolCallId)));
    for (const result of results) {
      yield { type: 'text-delta', delta: `${JSON.stringify(result)} ` };
    }
  };

type Connected = Awaited<ReturnType<typeof connectAgUi>>;
type Message = Parameters<Connected['agent']['addMessage']>[0];

const toolMessage = (toolCallId: string, content: string, more = {}): Message => ({
  id: `result of ${toolCallId}`,
  role: 'tool',
  toolCallId,
  content,
  ...more,
});

/** The calls that the last run has left to the client, as `HttpAgent` reports them. */
function watchPending(agent: Connected['agent']) {
  let pending: unknown;
  agent.subscribe({
    onRunFinishedEvent(finished) {
      pending = 'pendingToolCallIds' in finished ? finished.pendingToolCallIds : undefined;
    },
  });
  return () => pending;
}

const eventsIn = (raw: string): AgUiEvent[] =>
  [...raw.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string));

describe('a tool that an AG-UI client runs and has named in its run', () => {
  it('ends the run without an interrupt, and the tool message of the next run is its output', async () => {
    const finish = watchWarnings();
    const { agent, events, types } = await connectAgUi(asUpstream(locator()));
    const pending = watchPending(agent);
    await agent.runAgent({ tools: [LOCATE] });
    expect(agent.pendingInterrupts).toEqual([]);
    expect(pending()).toEqual(['where-1']);
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED' });
    agent.addMessage(toolMessage('where-1', '{"port": "Valletta"}'));
    await agent.runAgent({ tools: [LOCATE] });
    finish();
    expect(saidBy(agent.messages)).toEqual({
      text: '{"status":"done","output":{"port":"Valletta"}} ',
      calls: [{ id: 'where-1', name: 'locate', input: {}, result: '{"port": "Valletta"}' }],
    });
    expect(agent.messages.filter(({ role }) => role === 'tool')).toHaveLength(1);
    expect(types().filter((type) => type === 'RUN_STARTED')).toHaveLength(2);
    expect(types().filter((type) => type === 'TOOL_CALL_START')).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({ outcome: { type: 'success' } });
  });

  it('is the only one that is pending, where a tool of the agent has no result either', async () => {
    const gate = Promise.withResolvers<void>();
    const { agent } = await connectAgUi(
      asUpstream(async function* ({ toolOutput }) {
        yield { type: 'tool-input-available', toolCallId: 's', toolName: 'search', input: {} };
        yield { type: 'tool-input-available', toolCallId: 'w', toolName: 'locate', input: {} };
        await toolOutput('w');
        await gate.promise;
        yield { type: 'tool-output-available', toolCallId: 's', output: 'found' };
      }),
    );
    const pending = watchPending(agent);
    await agent.runAgent({ tools: [LOCATE] });
    expect(pending()).toEqual(['w']);
    gate.resolve();
    agent.addMessage(toolMessage('w', 'Valletta'));
    await agent.runAgent({ tools: [LOCATE] });
    expect(saidBy(agent.messages).calls).toMatchObject([
      { result: 'found' },
      { result: 'Valletta' },
    ]);
  });

  it.each([
    ['text', 'Valletta', {}, { status: 'done', output: 'Valletta' }],
    ['text that is a number', '42', {}, { status: 'done', output: '42' }],
    [
      'an error',
      '',
      { error: 'No permission.' },
      { status: 'failed', errorText: 'No permission.' },
    ],
  ])('takes a tool message of %s', async (_, content, more, result) => {
    const { agent } = await connectAgUi(asUpstream(locator()));
    await agent.runAgent({ tools: [LOCATE] });
    agent.addMessage(toolMessage('where-1', content, more));
    await agent.runAgent();
    expect(saidBy(agent.messages).text).toBe(`${JSON.stringify(result)} `);
  });

  it('called twice at once waits for both outputs, together or one after the other', async () => {
    const { agent } = await connectAgUi(asUpstream(locator(2)));
    const pending = watchPending(agent);
    await agent.runAgent({ tools: [LOCATE] });
    expect(pending()).toEqual(['where-1', 'where-2']);
    agent.addMessage(toolMessage('where-1', 'Valletta'));
    await agent.runAgent({ tools: [LOCATE] });
    expect(pending()).toEqual(['where-2']);
    agent.addMessage(toolMessage('where-2', 'Gozo'));
    await agent.runAgent({ tools: [LOCATE] });
    const { text, calls } = saidBy(agent.messages);
    expect(text).toContain('Valletta');
    expect(text).toContain('Gozo');
    expect(calls).toHaveLength(2);
    expect(agent.messages.filter(({ role }) => role === 'tool')).toHaveLength(2);
  });

  it('takes the output of a client that writes a message as well, then prompts the message', async () => {
    const upstream = asUpstream(locator());
    const { agent, carl } = await connectAgUi(upstream);
    await agent.runAgent({ tools: [LOCATE] });
    const whole = openSse(await carl.send('GET', `${PATH}/c1/stream?wire=contract`));
    agent.addMessage(toolMessage('where-1', '', { error: 'Cancelled.' }));
    agent.addMessage({ id: 'u2', role: 'user', content: 'never mind' });
    const { newMessages } = await agent.runAgent({ tools: [LOCATE] });
    expect(saidBy(newMessages).text).toBe('You said never mind.');
    await whole.ended;
    expect(whole.raw()).toContain('Cancelled.');
  });

  it('of a client before 1.0 ends the run without an outcome', async () => {
    const { carl } = await connectAgUi(asUpstream(locator()));
    const input = runInput({ protocolVersion: undefined, tools: [LOCATE] });
    const sse = openSse(await carl.send('POST', PATH, {}, input));
    await sse.ended;
    const last = eventsIn(sse.raw()).at(-1);
    expect(last).toEqual({ type: 'RUN_FINISHED', threadId: 'c1', runId: 'r1' });
  });

  it('counts once: a client that is second gets the output of the first', async () => {
    const { agent, as } = await connectAgUi(asUpstream(locator()));
    await agent.runAgent({ tools: [LOCATE] });
    const slow = as('carl', structuredClone(agent.messages) as []).agent;
    agent.addMessage(toolMessage('where-1', 'Valletta'));
    slow.addMessage(toolMessage('where-1', 'Gozo'));
    await agent.runAgent({ tools: [LOCATE] });
    await slow.runAgent({ tools: [LOCATE] });
    expect(saidBy(slow.messages).text).toBe(saidBy(agent.messages).text);
    expect(saidBy(slow.messages).text).toContain('Valletta');
  });

  it('answers a turn that was kept while its process was away', async () => {
    const store = new Map<string, { messageId: string }>();
    const keeper = () =>
      asUpstream({
        name: 'keeper',
        concurrent: true,
        async *prompt({ chatKey, messageId, toolOutput }) {
          store.set(chatKey, { messageId });
          const call = { toolCallId: 'where-1', toolName: 'locate' };
          yield { type: 'tool-input-available', ...call, input: {} };
          yield { type: 'text-delta', delta: JSON.stringify(await toolOutput('where-1')) };
        },
        restore: ({ chatKey }) => store.get(chatKey),
      });
    const first = await connectAgUi(keeper());
    await first.agent.runAgent({ tools: [LOCATE] });
    await first.gateway.close();
    const { agent } = (await connectAgUi(keeper())).as('carl', first.agent.messages as []);
    agent.addMessage(toolMessage('where-1', 'Valletta'));
    await agent.runAgent({ tools: [LOCATE] });
    expect(saidBy(agent.messages).text).toBe('{"status":"done","output":"Valletta"}');
    expect(agent.messages.filter(({ role }) => role === 'tool')).toHaveLength(1);
  });

  it('is taken in a session, where a model has the tool without execute', async () => {
    const { model, calls } = AI_SDK_7.model([callTool('c', 'locate', { n: 1 }), say('Valletta!')]);
    const tools = { locate: { description: '', inputSchema: z.object({ n: z.number() }) } };
    const { gateway } = startHosted({
      sessions: { agent: () => aiSdkAgent({ ai: AI_SDK_7.ai, model, tools }) },
    });
    const { agent } = createHttpAgent({
      url: `${await listen(gateway)}${PATH}`,
      headers: { authorization: 'Bearer carl' },
      threadId: 'c1',
      initialMessages: [{ id: 'u1', role: 'user', content: 'where am I?' }],
    });
    await agent.runAgent({ tools: [LOCATE] });
    agent.addMessage(toolMessage('c', '{"port":"Valletta"}'));
    await agent.runAgent({ tools: [LOCATE] });
    expect(saidBy(agent.messages).text).toBe('Valletta!');
    const [result] = calls[1]?.prompt.filter(({ role }) => role === 'tool') ?? [];
    expect(JSON.stringify(result)).toContain('"value":{"port":"Valletta"}');
  });
});

describe('a tool that an AG-UI client runs and has not named', () => {
  it.each([
    [
      'a payload',
      { status: 'resolved', payload: { port: 'Valletta' } },
      { output: { port: 'Valletta' } },
    ],
    [
      'a payload of the shape { output }',
      { status: 'resolved', payload: { output: 1 } },
      { output: 1 },
    ],
    [
      'a payload with more than an output',
      { status: 'resolved', payload: { output: 1, unit: 'm' } },
      { output: { output: 1, unit: 'm' } },
    ],
    ['no payload', { status: 'resolved' }, { output: null }],
    [
      'a payload of the shape { errorText }',
      { status: 'resolved', payload: { errorText: 'Broken.' } },
      { errorText: 'Broken.' },
    ],
    ['a cancellation', { status: 'cancelled' }, { errorText: 'The user cancelled the tool.' }],
  ] as const)('interrupts the run, and takes %s as its output', async (_, entry, heard) => {
    const { agent } = await connectAgUi(asUpstream(locator()));
    await agent.runAgent();
    const [interrupt] = agent.pendingInterrupts;
    expect(interrupt).toMatchObject({ toolCallId: 'where-1' });
    await agent.runAgent({ resume: [{ interruptId: interrupt?.id ?? '', ...entry }] });
    const { text, calls } = saidBy(agent.messages);
    expect(JSON.parse(text)).toMatchObject(heard);
    expect(calls).toHaveLength(1);
    expect(calls[0]).not.toMatchObject({ result: undefined });
  });

  it('takes a tool message of a run that names no interrupt', async () => {
    const { agent, carl } = await connectAgUi(asUpstream(locator()));
    await agent.runAgent();
    const messages = [...agent.messages, toolMessage('where-1', 'Valletta')];
    const sse = openSse(await carl.send('POST', PATH, {}, runInput({ runId: 'r2', messages })));
    await sse.ended;
    const said = eventsIn(sse.raw());
    expect(said.map(({ type }) => type)).not.toContain('TOOL_CALL_RESULT');
    expect(JSON.stringify(said)).toContain('Valletta');
  });
});

describe('a tool message of an AG-UI client', () => {
  it('does not answer the approval of its call', async () => {
    let heard: unknown;
    const { agent, carl } = await connectAgUi(
      asUpstream(async function* ({ answer }) {
        const call = { toolCallId: 'c', toolName: 'locate' };
        yield { type: 'tool-input-available', ...call, input: {} };
        const data = { questionId: 'c', text: 'Run it?', toolCallId: 'c', status: 'open' };
        yield { type: 'data-question', id: 'c', data };
        heard = await answer('c');
      }),
    );
    await agent.runAgent({ tools: [LOCATE] });
    expect(agent.pendingInterrupts).toMatchObject([{ toolCallId: 'c' }]);
    const messages = [...agent.messages, toolMessage('c', 'done')];
    const sse = openSse(await carl.send('POST', PATH, {}, runInput({ runId: 'r2', messages })));
    await sse.ended;
    expect(eventsIn(sse.raw()).map(({ type }) => type)).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
    expect(heard).toBeUndefined();
    const [interrupt] = agent.pendingInterrupts;
    await agent.runAgent({
      resume: [
        { interruptId: interrupt?.id ?? '', status: 'resolved', payload: { approved: true } },
      ],
    });
    await eventually(() => heard);
  });
});
