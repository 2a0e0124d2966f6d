import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createTestGateway,
  createUser,
  eventually,
  openSse,
  readChunks,
} from '../../../test/gateway-client.ts';
import {
  ASKS,
  call,
  openQuestion,
  questionsOf,
  say,
  start,
  textOf,
  toolsOf,
} from '../../../test/openai-agents/agent-process.ts';
import { removingTool } from '../../../test/openai-agents/removing-tool.ts';
import { scriptedModel } from '../../../test/openai-agents/scripted-model.ts';
import { SDKS } from '../../../test/openai-agents/sdks.ts';
import { foldChunks } from '../../core/fold.ts';
import { verifyChunks } from '../../core/verify.ts';
import { asUpstream } from '../../gateway/index.ts';
import { type AgentsSdkAgentOptions, agentsSdkAgent, type PendingRuns } from './index.ts';

describe.each(SDKS)('a run of Agents SDK $version behind the gateway', ({ sdk }) => {
  it('asks, waits, and goes on in the same turn and message when it is approved', async () => {
    const { carl, deleted, ended, store } = start(sdk, { script: ASKS });
    const sse = openSse(await carl.post(chatBody('go')));
    const { questionId, text } = await openQuestion(sse);
    expect(text).toBe('Allow delete_file?');
    expect(deleted).toEqual([]);
    expect(store.size).toBe(1);
    expect((await carl.answer(questionId, 'Approve')).status).toBe(202);
    await sse.ended;
    expect(verifyChunks(sse.chunks())).toEqual([]);
    const { message, outcome } = await ended();
    expect(outcome).toBe('finished');
    expect(deleted).toEqual(['a']);
    expect(toolsOf(message)).toMatchObject([{ state: 'output-available', output: 'a is gone' }]);
    expect(textOf(message)).toBe('One moment. All done.');
    expect(questionsOf(sse.chunks()).at(-1)).toMatchObject({
      status: 'answered',
      answer: { approved: true },
    });
    expect(message.metadata).toMatchObject({ usage: { inputTokens: 20 } });
    expect(store.size).toBe(0);
  });

  it('tells the agent why it may not, and viewers that it was denied', async () => {
    const { carl, deleted, ended, inputs } = start(sdk, { script: ASKS });
    const sse = openSse(await carl.post(chatBody('go')));
    const { questionId } = await openQuestion(sse);
    await carl.answer(questionId, { approved: false, reason: 'Still needed.' });
    const { message } = await ended();
    expect(deleted).toEqual([]);
    expect(toolsOf(message)).toMatchObject([{ state: 'output-denied' }]);
    expect(JSON.stringify(inputs.at(-1))).toContain('Still needed.');
    await sse.ended;
    // A client that did not say which it is gets what every client can show.
    expect(toolsOf(foldChunks(sse.chunks()))).toMatchObject([{ state: 'output-error' }]);
  });

  it('asks for several at once, and again later', async () => {
    const script = [{ outputs: [call('a'), call('b')] }, { outputs: [call('c')] }, say('Done.')];
    const { carl, deleted, ended } = start(sdk, { script });
    const sse = openSse(await carl.post(chatBody('go')));
    await sse.until(() => questionsOf(sse.chunks()).length === 2);
    await carl.answer('approve-b', true);
    await carl.answer('approve-a', false);
    await sse.until(() => questionsOf(sse.chunks()).some((one) => one.questionId === 'approve-c'));
    expect((await carl.answer('approve-b', false)).status).toBe(409);
    await carl.answer('approve-c', true);
    const { message } = await ended();
    expect(deleted).toEqual(['b', 'c']);
    expect(toolsOf(message).map(({ state }) => state)).toEqual([
      'output-denied',
      'output-available',
      'output-available',
    ]);
    await sse.ended;
    expect(verifyChunks(sse.chunks())).toEqual([]);
  });

  it('is gone when it was stopped while it waited', async () => {
    const { carl, deleted, ended, store, clerk } = start(sdk, { script: ASKS });
    const sse = openSse(await carl.post(chatBody('go')));
    await openQuestion(sse);
    await carl.stop();
    expect((await ended()).outcome).toBe('stopped');
    await eventually(() => store.size === 0, 'an empty store');
    const chat = { sessionId: 's1', chatId: 'c1', chatKey: '["s1","c1"]', user: { id: 'carl' } };
    expect(await clerk.restore?.(chat)).toBeUndefined();
    expect(deleted).toEqual([]);
  });

  it('withdraws its question when another message comes instead of an answer', async () => {
    const { carl, deleted, finished, store } = start(sdk, { script: [...ASKS] });
    const sse = openSse(await carl.post(chatBody('go')));
    await openQuestion(sse);
    const [next] = [await readChunks(await carl.post(chatBody('never mind')))];
    expect(textOf(foldChunks(next))).toBe('All done.');
    await sse.ended;
    expect(questionsOf(sse.chunks()).at(-1)?.status).toBe('withdrawn');
    await eventually(() => finished.length === 2, 'both ends');
    expect(finished.map(({ outcome }) => outcome).sort()).toEqual(['finished', 'stopped']);
    expect(deleted).toEqual([]);
    expect(store.size).toBe(0);
  });

  it('takes no answer for a no', async () => {
    const { carl, ended, inputs, deleted } = start(sdk, {
      script: ASKS,
      question: () => ({ expiresAt: Date.now() + 300 }),
      gateway: { timing: { idleMs: 200 } },
    });
    const sse = openSse(await carl.post(chatBody('go')));
    await openQuestion(sse);
    const { message, outcome } = await ended();
    expect(outcome).toBe('finished');
    expect(deleted).toEqual([]);
    expect(JSON.stringify(inputs.at(-1))).toContain('Nobody answered in time.');
    expect(toolsOf(message)).toMatchObject([{ state: 'output-denied' }]);
    expect((await carl.answer('approve-a', true)).status).toBe(410);
  });

  it('takes an answer only from whom the question is for, also after a restart', async () => {
    const store = new Map<string, string>();
    const question: AgentsSdkAgentOptions['question'] = ({ toolName, input }, { user }) => ({
      text: `${user.id} wants ${toolName} for ${JSON.stringify(input)}`,
      answerBy: { role: 'owner' },
    });
    const first = start(sdk, { script: ASKS, store, question });
    const sse = openSse(await first.carl.post(chatBody('go')));
    expect((await openQuestion(sse)).text).toBe('carl wants delete_file for {"path":"a"}');
    expect((await first.carl.answer('approve-a', true)).status).toBe(403);
    await first.gateway.close();
    const second = start(sdk, { script: ASKS.slice(1), store, question });
    expect((await second.carl.answer('approve-a', true)).status).toBe(403);
    expect(second.deleted).toEqual([]);
    expect((await second.olga.answer('approve-a', true)).status).toBe(202);
    await second.ended();
    expect(second.deleted).toEqual(['a']);
  });

  it('asks nobody before it is stored, and asks when a store does not answer', async () => {
    let isStored = false;
    const held = Promise.withResolvers<void>();
    const pending: PendingRuns = {
      get: () => undefined,
      set: async () => {
        await held.promise;
        isStored = true;
      },
      delete: () => undefined,
    };
    const { carl, ended } = start(sdk, { script: ASKS, pending });
    const sse = openSse(await carl.post(chatBody('go')));
    await sse.until(() => sse.raw().includes('tool-input-available'));
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect([isStored, questionsOf(sse.chunks())]).toEqual([false, []]);
    held.resolve();
    await openQuestion(sse);
    await carl.answer('approve-a', true);
    expect((await ended()).outcome).toBe('finished');
  });

  it('asks about every call that has the same id as another, and makes only those it may', async () => {
    const { Agent, run, RunState } = sdk;
    const gone: string[] = [];
    const remove = removingTool(sdk, gone);
    const helper = (name: string, path: string) =>
      new Agent({
        name,
        tools: [remove],
        model: scriptedModel(sdk, [
          { outputs: [{ call: 'remove', input: { path }, callId: 'call_0' }] },
          say('ok'),
        ]),
      }).asTool({ toolName: name, toolDescription: name });
    const agent = new Agent({
      name: 'Desk',
      tools: [helper('one', 'tmp.log'), helper('two', 'payroll.db')],
      model: scriptedModel(sdk, [
        {
          outputs: [
            { call: 'one', input: { input: 'go' }, callId: 'call_0' },
            { call: 'two', input: { input: 'go' }, callId: 'call_1' },
          ],
        },
        say('Done.'),
      ]),
    });
    const gateway = createTestGateway(asUpstream(agentsSdkAgent({ agent, run, RunState })));
    const carl = createUser(gateway, 'carl');
    const sse = openSse(await carl.post(chatBody('go')));
    await sse.until(() => questionsOf(sse.chunks()).length === 2);
    const asked = toolsOf(foldChunks(sse.chunks())).filter(({ type }) => type === 'tool-remove');
    expect(asked.map(({ input }) => input)).toEqual([{ path: 'tmp.log' }, { path: 'payroll.db' }]);
    const [first, second] = questionsOf(sse.chunks());
    expect(first?.questionId).not.toBe(second?.questionId);
    await carl.answer(first?.questionId, true);
    await carl.answer(second?.questionId, false);
    await sse.ended;
    // Some releases know calls by their ids alone, so that one no keeps both from being made.
    expect(gone).toEqual([]);
  });

  it('leaves a question to the owner whose terms could not be found', async () => {
    const { carl, olga, ended } = start(sdk, {
      script: ASKS,
      question: () => {
        throw new Error('no terms');
      },
    });
    const sse = openSse(await carl.post(chatBody('go')));
    await openQuestion(sse);
    expect((await carl.answer('approve-a', true)).status).toBe(403);
    expect((await olga.answer('approve-a', true)).status).toBe(202);
    expect((await ended()).outcome).toBe('finished');
  });

  it('is given the conversation, or the last message where a session keeps the rest', async () => {
    const messages = [
      { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'first' }] },
      { id: 'a1', role: 'assistant', parts: [{ type: 'text', text: 'answer' }] },
      { id: 'u2', role: 'user', parts: [{ type: 'text', text: 'second' }] },
    ];
    const plain = start(sdk, { script: [say('ok')] });
    await readChunks(await plain.carl.post(chatBody('', { messages })));
    expect(JSON.stringify(plain.inputs[0])).toMatch(/first.*answer.*second/);
    const session = new sdk.MemorySession();
    const kept = start(sdk, { script: [say('ok')], options: () => ({ session }) });
    await readChunks(await kept.carl.post(chatBody('', { messages })));
    expect(JSON.stringify(kept.inputs[0])).toMatch(/second/);
    expect(JSON.stringify(kept.inputs[0])).not.toMatch(/first|answer/);
    expect(await session.getItems()).toHaveLength(2);
    const own = start(sdk, { script: [say('ok')], input: ({ text }) => `Say this: ${text}` });
    await readChunks(await own.carl.post(chatBody('', { messages })));
    expect(JSON.stringify(own.inputs[0])).toContain('Say this: second');
  });

  it('ends as failed with a sentence for people when the run throws', async () => {
    const { carl, ended, store } = start(sdk, {
      script: [
        { outputs: [call('a')] },
        new Error('529 overloaded\n    at secret (/srv/x.ts:1:1)'),
      ],
    });
    const sse = openSse(await carl.post(chatBody('go')));
    await openQuestion(sse);
    await carl.answer('approve-a', true);
    expect((await ended()).outcome).toBe('failed');
    await sse.ended;
    expect(sse.chunks().findLast(({ type }) => type === 'error')).toEqual({
      type: 'error',
      errorText: '529 overloaded',
    });
    expect(store.size).toBe(0);
  });

  it('leaves a run that takes no notice of its signal when the turn is stopped', async () => {
    let hasLeft = false;
    const never = new Promise<never>(() => undefined);
    const { carl, ended } = start(sdk, {
      script: [],
      run: (async () => ({
        completed: never,
        async *[Symbol.asyncIterator]() {
          try {
            const data = { type: 'output_text_delta', delta: 'word ' };
            for (;;) {
              yield { type: 'raw_model_stream_event', data };
              await new Promise((resolve) => setTimeout(resolve, 1));
            }
          } finally {
            hasLeft = true;
          }
        },
      })) as never,
    });
    const sse = openSse(await carl.post(chatBody('go')));
    await sse.until(() => sse.text().includes('word'));
    await carl.stop();
    expect((await ended()).outcome).toBe('stopped');
    await eventually(() => hasLeft, 'the end of the run');
  });

  it('stops the run when the turn is stopped', async () => {
    let signal: AbortSignal | undefined;
    const { carl, ended } = start(sdk, {
      script: [say('never')],
      run: ((_: never, __: never, options: { signal: AbortSignal }) => {
        signal = options.signal;
        return new Promise(() => undefined);
      }) as never,
    });
    await carl.post(chatBody('go'));
    await eventually(() => signal, 'a run');
    await carl.stop();
    expect((await ended()).outcome).toBe('stopped');
    expect(signal?.aborted).toBe(true);
  });
});

describe('agentsSdkAgent', () => {
  it('says at once what is missing', () => {
    const run = async () => undefined as never;
    expect(() => agentsSdkAgent({ run } as never)).toThrow('agent is no agent');
    expect(() => agentsSdkAgent({ agent: { name: 'A' } } as never)).toThrow('run is not');
  });
});
