import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import {
  HttpAgent,
  type RunAgentInput,
  runHttpRequest,
  transformHttpEventStream,
} from '@ag-ui/client';
import { describe, expect, it } from 'vitest';
import { namedBlocks } from '../../../../scripts/named-blocks.ts';
import { saidBy, saidIn, watchWarnings } from '../../test/ag-ui-client.ts';
import { connectAgUi, runInput, talker } from '../../test/ag-ui-gateway.ts';
import { createApprovalAgent } from '../../test/approval-agent.ts';
import {
  chatBody,
  createAgent,
  createUser,
  eventually,
  openSse,
  readChunks,
} from '../../test/gateway-client.ts';
import type { Chunk } from '../core/chunks.ts';
import { foldChunks } from '../core/fold.ts';
import { asUpstream } from './index.ts';

describe('HttpAgent of AG-UI on a gateway', () => {
  it('has the reasoning, the text and the tools that an AI SDK client has', async () => {
    const finish = watchWarnings();
    const { agent, events, carl } = await connectAgUi(talker);
    const { newMessages } = await agent.runAgent({ runId: 'r1' });
    finish();
    expect(newMessages.map(({ role }) => role)).toEqual([
      'reasoning',
      'assistant',
      'tool',
      'assistant',
    ]);
    const chunks = await readChunks(await carl.post(chatBody('hi', { id: 'c2' })));
    expect(saidBy(newMessages)).toEqual(saidIn(await foldChunks(chunks)));
    expect(events[0]).toMatchObject({ type: 'RUN_STARTED', threadId: 'c1', runId: 'r1' });
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
    expect(events).toContainEqual({
      type: 'CUSTOM',
      name: 'source-url',
      value: { sourceId: 's', url: 'https://a.example', title: 'A' },
    });
  });

  it('sends the whole conversation with the next message, and the agent reads it', async () => {
    const agents = createAgent();
    const { agent } = await connectAgUi(agents.upstream);
    const first = agent.runAgent({ tools: [], context: [{ description: 'place', value: 'port' }] });
    const run = await agents.run();
    run.say(
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'Hm.' },
    );
    run.say({ type: 'reasoning-end', id: 'r' });
    run.say({ type: 'tool-input-available', toolCallId: 'c', toolName: 'look', input: { at: 1 } });
    run.say({ type: 'tool-output-available', toolCallId: 'c', output: 'seen' });
    run.text('Hello.');
    run.end();
    await first;
    agent.addMessage({
      id: 'u2',
      role: 'user',
      content: [
        { type: 'text', text: 'And this?' },
        { type: 'image', source: { type: 'data', value: 'aGk=', mimeType: 'image/png' } },
      ],
    });
    const second = agent.runAgent();
    const { turn } = await agents.run(1);
    expect(turn.text).toBe('And this?');
    expect(turn.attachments).toEqual([
      { url: 'data:image/png;base64,aGk=', mediaType: 'image/png' },
    ]);
    expect(turn.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    const { id, parts } = turn.messages[1] as { id: string; parts: object[] };
    expect(id).toBe(run.turn.messageId);
    expect(parts).toMatchObject([
      { type: 'reasoning', text: 'Hm.' },
      {
        type: 'dynamic-tool',
        toolName: 'look',
        input: { at: 1 },
        state: 'output-available',
        output: 'seen',
      },
      { type: 'text', text: 'Hello.' },
    ]);
    expect(run.turn.body).toMatchObject({ context: [{ description: 'place', value: 'port' }] });
    (await agents.run(1)).end();
    await second;
  });

  it('gets RUN_ERROR when the agent fails, after everything is closed', async () => {
    const agents = createAgent();
    const { agent, types, events } = await connectAgUi(agents.upstream);
    const ended = agent.runAgent();
    const run = await agents.run();
    run.delta('Half of');
    await eventually(() => types().includes('TEXT_MESSAGE_CONTENT'));
    run.fail(new Error('No wind.'));
    await ended;
    expect(
      types()
        .filter((type) => type !== 'CUSTOM')
        .slice(-3),
    ).toEqual(['TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_ERROR']);
    expect(events.at(-1)).toEqual({ type: 'RUN_ERROR', message: 'No wind.' });
  });

  it('gets the outcome cancelled when another user stops the turn', async () => {
    const agents = createAgent();
    const { agent, events, url } = await connectAgUi(agents.upstream);
    const ended = agent.runAgent();
    (await agents.run()).delta('Half of');
    await eventually(() => events.some(({ type }) => type === 'TEXT_MESSAGE_CONTENT'));
    const response = await fetch(`${url}/api/sessions/s1/ag-ui/c1/stop`, {
      method: 'POST',
      headers: { authorization: 'Bearer cora' },
    });
    expect(response.status).toBe(202);
    await ended;
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
  });

  it('ends the turn by abortRun, once the time to come back is over', async () => {
    const agents = createAgent();
    const { agent, events } = await connectAgUi(agents.upstream, {
      timing: { disconnectGraceMs: 10 },
    });
    const ended = agent.runAgent();
    const run = await agents.run();
    run.delta('Half of');
    await eventually(() => events.some(({ type }) => type === 'TEXT_MESSAGE_CONTENT'));
    agent.abortRun();
    await ended;
    await eventually(() => run.turn.signal.aborted);
  });

  it('that was reloaded follows the running turn by connectAgent, from its beginning', async () => {
    class FollowingAgent extends HttpAgent {
      protected override connect({ threadId, runId, protocolVersion = '1.0' }: RunAgentInput) {
        const { headers } = this;
        const run = new URLSearchParams({ runId, protocolVersion });
        const follow = () => fetch(`${this.url}/${threadId}/stream?${run}`, { headers });
        return transformHttpEventStream(runHttpRequest(follow));
      }
    }
    const agents = createAgent();
    const { agent, events } = await connectAgUi(agents.upstream);
    const ended = agent.runAgent();
    const run = await agents.run();
    run.delta('Half of ');
    await eventually(() => events.some(({ type }) => type === 'TEXT_MESSAGE_CONTENT'));
    const { url, headers, threadId } = agent;
    const reloaded = new FollowingAgent({ url, headers, threadId });
    const runIds: unknown[] = [];
    reloaded.subscribe({
      onRunStartedEvent: ({ event }) => void runIds.push(event.runId),
      onRunFinishedEvent: ({ event }) => void runIds.push(event.runId),
    });
    const followed = reloaded.connectAgent({ runId: 'r7' });
    await eventually(() => saidBy(reloaded.messages).text);
    run.delta('it.');
    run.end();
    await Promise.all([ended, followed]);
    expect(reloaded.messages).toEqual(agent.messages.slice(1));
    expect(saidBy(reloaded.messages).text).toBe('Half of it.');
    expect(runIds).toEqual(['r7', 'r7']);
  });

  it('is asked a question by an interrupt, answers it with resume, and the message goes on', async () => {
    const finish = watchWarnings();
    // An id may have any characters, also half of one.
    const questionId = 'q@1:\n\ud800';
    const upstream = asUpstream(async function* ({ answer }): AsyncGenerator<Chunk> {
      yield { type: 'text-start', id: '1' };
      yield { type: 'text-delta', id: '1', delta: 'One moment. ' };
      const data = {
        questionId,
        text: 'Which port?',
        options: ['Genoa', 'Tunis'],
        status: 'open',
      };
      yield { type: 'data-question', id: questionId, data };
      yield { type: 'text-delta', id: '1', delta: `To ${await answer(questionId)}.` };
    });
    const { agent, events } = await connectAgUi(upstream);
    await agent.runAgent();
    const [interrupt] = agent.pendingInterrupts;
    expect(interrupt).toMatchObject({
      reason: 'input_required',
      message: 'Which port?',
      responseSchema: { type: 'string', enum: ['Genoa', 'Tunis'] },
      metadata: { questionId },
    });
    const { id: interruptId } = interrupt as { id: string };
    await agent.runAgent({
      runId: 'r2',
      resume: [{ interruptId, status: 'resolved', payload: 'Tunis' }],
    });
    finish();
    expect(saidBy(agent.messages).text).toBe('One moment. To Tunis.');
    expect(agent.messages.filter(({ role }) => role === 'assistant')).toHaveLength(1);
    expect(agent.pendingInterrupts).toEqual([]);
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', runId: 'r2' });
  });

  it('approves one tool and cancels another, asked together', async () => {
    const { upstream, heard } = createApprovalAgent({ steps: [['a', 'b']] });
    const { agent } = await connectAgUi(upstream);
    await agent.runAgent();
    expect(agent.pendingInterrupts).toMatchObject([
      { reason: 'tool_call', toolCallId: 'call-a' },
      { reason: 'tool_call', toolCallId: 'call-b' },
    ]);
    const [a, b] = agent.pendingInterrupts.map(({ id }) => id) as [string, string];
    await agent.runAgent({
      resume: [
        { interruptId: a, status: 'resolved', payload: { approved: true } },
        { interruptId: b, status: 'cancelled' },
      ],
    });
    expect(heard).toEqual({ a: { approved: true }, b: { approved: false, cancelled: true } });
    expect(saidBy(agent.messages)).toMatchObject({
      text: 'Done: a true, b false.',
      calls: [{ result: 'paid a' }, { result: 'The call was denied.' }],
    });
  });

  it('is interrupted again by a question whose interrupt it has lost, or left out of its resume', async () => {
    const { upstream, heard } = createApprovalAgent({ steps: [['a', 'b']] });
    const { agent, carl } = await connectAgUi(upstream);
    await agent.runAgent();
    const [a = ''] = agent.pendingInterrupts.map(({ id }) => id);
    const headers = { 'last-event-id': a.slice(0, a.indexOf('@')) };
    const lost = openSse(await carl.send('GET', '/api/sessions/s1/ag-ui/c1/stream', { headers }));
    await lost.ended;
    const asked = [{ toolCallId: 'call-a' }, { toolCallId: 'call-b' }];
    expect(JSON.parse(lost.frames.at(-1)?.data ?? '')).toMatchObject({
      outcome: { type: 'interrupt', interrupts: asked },
    });
    const resume = async (runId: string, interruptId: string) => {
      const answer = { interruptId, status: 'resolved', payload: true };
      const sse = openSse(
        await carl.send(
          'POST',
          '/api/sessions/s1/ag-ui',
          {},
          runInput({ runId, resume: [answer] }),
        ),
      );
      await sse.ended;
      return JSON.parse(sse.frames.at(-1)?.data ?? '');
    };
    const { outcome } = await resume('r2', a);
    expect(outcome).toMatchObject({ type: 'interrupt', interrupts: [{ toolCallId: 'call-b' }] });
    expect(await resume('r3', outcome.interrupts[0].id)).toMatchObject({
      type: 'RUN_FINISHED',
      outcome: { type: 'success' },
    });
    expect(heard).toEqual({ a: true, b: true });
  });

  it('goes on with a turn that was kept while its process was away', async () => {
    const store = new Map();
    const before = createApprovalAgent({ steps: [['a']], store });
    const first = await connectAgUi(before.upstream);
    await first.agent.runAgent();
    await first.gateway.close();
    const { messages, pendingInterrupts } = first.agent;
    const after = await connectAgUi(createApprovalAgent({ steps: [['a']], store }).upstream);
    const { agent } = after.as('carl', messages as []);
    const interruptId = (pendingInterrupts[0] as { id: string }).id;
    await agent.runAgent({ resume: [{ interruptId, status: 'resolved', payload: true }] });
    expect(saidBy(agent.messages)).toMatchObject({
      text: 'Done: a true.',
      calls: [{ id: 'call-a', input: { approvalId: 'a' }, result: 'paid a' }],
    });
  });

  it('is answered with the rest of the turn when another user answered first', async () => {
    const { upstream, heard } = createApprovalAgent({ steps: [['a']] });
    const { agent, gateway } = await connectAgUi(upstream);
    await agent.runAgent();
    const cora = createUser(gateway, 'cora');
    expect((await cora.answer('a', { approved: true })).status).toBe(202);
    const interruptId = agent.pendingInterrupts[0]?.id ?? '';
    await agent.runAgent({ resume: [{ interruptId, status: 'cancelled' }] });
    expect(heard.a).toEqual({ approved: true });
    expect(saidBy(agent.messages).text).toBe('Done: a true.');
  });

  it('that may not answer is not interrupted, and sees what comes of the question', async () => {
    const { upstream } = createApprovalAgent({
      steps: [['a']],
      question: { answerBy: { role: 'owner' } },
    });
    const { agent, events, gateway } = await connectAgUi(upstream);
    const ended = agent.runAgent();
    await eventually(() => events.some((event) => event.type === 'CUSTOM'));
    expect((await createUser(gateway, 'olga').answer('a', true)).status).toBe(202);
    await ended;
    expect(saidBy(agent.messages).text).toBe('Done: a true.');
  });

  it('that reports the result of a tool of its own gets an empty run, and nothing is prompted', async () => {
    const agents = createAgent();
    const { agent, types } = await connectAgUi(agents.upstream);
    agent.addMessage({
      id: 'm1',
      role: 'assistant',
      toolCalls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
    });
    agent.addMessage({ id: 't1', role: 'tool', toolCallId: 'c', content: 'seen' });
    await agent.runAgent();
    expect(types()).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
    expect(agents.runs).toHaveLength(0);
  });
});

describe('docs/AG-UI.md', () => {
  it('begins with code that runs', async () => {
    const page = new URL('../../../../docs/AG-UI.md', import.meta.url);
    const [first] = namedBlocks(readFileSync(page, 'utf8'));
    const src = new URL('../', import.meta.url);
    const code = (first as { code: string }).code
      .replace("'sabir/gateway'", `'${new URL('gateway/index.ts', src)}'`)
      .replace("'sabir/node'", `'${new URL('platforms/node/serve.ts', src)}'`)
      .replace("'@ag-ui/client'", `'${import.meta.resolve('@ag-ui/client')}'`);
    const args = ['--input-type=module-typescript', '--eval', code];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout).toBe('You said ahoy\n');
  });
});
