import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  chatBody,
  createTestGateway,
  createUser,
  eventually,
  openSse,
  readChunks,
  type SseReader,
} from '../../../test/gateway-client.ts';
import type { Output } from '../../../test/openai-agents/responses-script.ts';
import { type Script, scriptedModel } from '../../../test/openai-agents/scripted-model.ts';
import { SDKS, type Sdk } from '../../../test/openai-agents/sdks.ts';
import type { Chunk } from '../../chunks.ts';
import { foldChunks } from '../../fold.ts';
import { asUpstream, type ChatGatewayOptions } from '../../gateway/index.ts';
import type { UIMessage } from '../../message.ts';
import { verifyChunks } from '../../verify.ts';
import { type AgentTurnsOptions, createAgentTurns, type PendingRuns } from './index.ts';

type Process = Partial<AgentTurnsOptions> & {
  script: Script;
  store?: Map<string, string>;
  gateway?: Partial<ChatGatewayOptions>;
};

/** Only text goes in, as into a table: what is found there is a copy. */
function textStore(store: Map<string, string>): PendingRuns {
  return {
    get: async (key) => JSON.parse(store.get(key) ?? 'null') ?? undefined,
    set: async (key, run) => void store.set(key, JSON.stringify(run)),
    delete: async (key) => store.delete(key),
  };
}

/** One process: an agent with a tool that asks first, its model, and a gateway in front of it. */
function start(sdk: Sdk, { script, store = new Map(), gateway = {}, ...options }: Process) {
  const { Agent, run, RunState, tool } = sdk;
  const model = scriptedModel(sdk, script);
  const inputs: unknown[] = [];
  const ask = model.getStreamedResponse.bind(model);
  model.getStreamedResponse = (request) => {
    inputs.push(structuredClone(request.input));
    return ask(request);
  };
  const deleted: string[] = [];
  const deleteFile = tool({
    name: 'delete_file',
    description: 'Deletes a file.',
    parameters: z.object({ path: z.string() }),
    needsApproval: true,
    execute: async ({ path }) => {
      deleted.push(path);
      return `${path} is gone`;
    },
  });
  const agent = new Agent({ name: 'Clerk', tools: [deleteFile], model });
  const pending = textStore(store);
  const turns = createAgentTurns({ agent, run, RunState, pending, ...options });
  const finished: { message: UIMessage; outcome: string }[] = [];
  const server = createTestGateway(asUpstream(turns.answer, turns), {
    onFinish: ({ message, outcome }) => void finished.push({ message, outcome: outcome.status }),
    ...gateway,
  });
  const [carl, olga] = [createUser(server, 'carl'), createUser(server, 'olga')];
  const ended = () => eventually(() => finished.at(-1), 'the end of a turn');
  return { gateway: server, carl, olga, inputs, deleted, finished, ended, store, turns };
}

const SEVEN = { query: 'aiSdk=7', headers: { 'x-sabir-detach': '1' } };
const call = (path: string): Output => ({ call: 'delete_file', input: { path }, callId: path });
const say = (text: string) => ({ outputs: [{ text }] });
const ASKS: Script = [{ outputs: [{ text: 'One moment. ' }, call('a')] }, say('All done.')];

const questionsOf = (chunks: Chunk[]) =>
  chunks.flatMap((chunk) => (chunk.type === 'data-question' ? [chunk.data as Question] : []));
type Question = { questionId: string; status: string; answer?: unknown; text: string };
const openQuestion = (sse: SseReader) =>
  sse.until(() => questionsOf(sse.chunks()).findLast(({ status }) => status === 'open'));
const toolsOf = ({ parts }: UIMessage) =>
  parts.flatMap((part) => ('toolCallId' in part ? [part] : []));
const textOf = ({ parts }: UIMessage) =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('');

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

  it('says the same whether or not the process ended while it waited', async () => {
    const calm = start(sdk, { script: ASKS });
    const asked = openSse(await calm.carl.post(chatBody('go'), SEVEN));
    await openQuestion(asked);
    await calm.carl.answer('approve-a', true);
    const expected = await calm.ended();

    const store = new Map<string, string>();
    const first = start(sdk, { script: ASKS, store });
    const before = foldChunks(await readChunks(await first.carl.post(chatBody('go'), SEVEN)));
    await first.gateway.close();
    expect(first.finished).toMatchObject([{ outcome: 'paused', message: { id: before.id } }]);
    const second = start(sdk, { script: ASKS.slice(1), store });
    const watching = openSse(await second.carl.resume());
    const { questionId } = await openQuestion(watching);
    expect((await second.carl.answer(questionId, true)).status).toBe(202);
    const { message, outcome } = await second.ended();
    expect(outcome).toBe('finished');
    expect(message.id).toBe(before.id);
    expect({ ...message, id: '' }).toEqual({ ...expected.message, id: '' });
    expect([first.deleted, second.deleted]).toEqual([[], ['a']]);
    await watching.ended;
    expect(verifyChunks(watching.chunks())).toEqual([]);
    expect(store.size).toBe(0);
    expect((await second.carl.resume()).status).toBe(204);
  });

  it('survives two ends of its process in one turn', async () => {
    const script = [{ outputs: [call('a')] }, { outputs: [call('b')] }, say('Done.')];
    const store = new Map<string, string>();
    const first = start(sdk, { script, store });
    await readChunks(await first.carl.post(chatBody('go'), SEVEN));
    await first.gateway.close();
    const second = start(sdk, { script: script.slice(1), store });
    await second.carl.answer('approve-a', true);
    await eventually(() => store.values().next().value?.includes('approve-b'), 'the second');
    await second.gateway.close();
    const third = start(sdk, { script: script.slice(2), store });
    await third.carl.answer('approve-b', { approved: false, reason: 'No.' });
    const { message } = await third.ended();
    expect([first, second, third].map(({ deleted }) => deleted)).toEqual([[], ['a'], []]);
    expect(toolsOf(message)).toMatchObject([
      { state: 'output-available', output: 'a is gone' },
      { state: 'output-denied' },
    ]);
    expect(textOf(message)).toBe('Done.');
    expect(message.metadata).toMatchObject({ usage: { inputTokens: 30 } });
  });

  it('is gone when it was stopped while it waited', async () => {
    const { carl, deleted, ended, store, turns } = start(sdk, { script: ASKS });
    const sse = openSse(await carl.post(chatBody('go')));
    await openQuestion(sse);
    await carl.stop();
    expect((await ended()).outcome).toBe('stopped');
    await eventually(() => store.size === 0, 'an empty store');
    expect(await turns.waiting?.({ chatKey: '["s1","c1"]' })).toBeUndefined();
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
    const question: AgentTurnsOptions['question'] = ({ toolName, input }, { user }) => ({
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

  it('keeps an answer that was taken, also when others are missing as the process ends', async () => {
    const script = [{ outputs: [call('a'), call('b')] }, say('Done.')];
    const store = new Map<string, string>();
    const first = start(sdk, { script, store });
    await readChunks(await first.carl.post(chatBody('go'), SEVEN));
    await first.carl.answer('approve-a', { approved: false, reason: 'Never.' });
    await eventually(() => [...store.values()][0]?.includes('Never.'), 'the answer in the store');
    await first.gateway.close();
    const second = start(sdk, { script: script.slice(1), store });
    const sse = openSse(await second.carl.resume());
    await openQuestion(sse);
    expect((await second.carl.answer('approve-a', true)).status).toBe(409);
    await second.carl.answer('approve-b', true);
    const { message } = await second.ended();
    expect(second.deleted).toEqual(['b']);
    expect(toolsOf(message)).toMatchObject([
      { state: 'output-denied' },
      { state: 'output-available' },
    ]);
    expect(JSON.stringify(second.inputs.at(-1))).toContain('Never.');
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
    const { Agent, run, RunState, tool } = sdk;
    const gone: string[] = [];
    const remove = tool({
      name: 'remove',
      description: 'Removes a file.',
      parameters: z.object({ path: z.string() }),
      needsApproval: true,
      execute: async ({ path }) => {
        gone.push(path);
        return 'gone';
      },
    });
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
    const turns = createAgentTurns({ agent, run, RunState });
    const gateway = createTestGateway(asUpstream(turns.answer, turns));
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

  it('runs a tool once, whoever answers wherever it waits', async () => {
    const store = new Map<string, string>();
    const first = start(sdk, { script: ASKS, store });
    await readChunks(await first.carl.post(chatBody('go'), SEVEN));
    // Another process, which knows nothing of the first but what is stored.
    const second = start(sdk, { script: ASKS.slice(1), store });
    expect((await second.carl.answer('approve-a', true)).status).toBe(202);
    await second.ended();
    expect((await first.carl.answer('approve-a', true)).status).toBe(202);
    expect((await first.ended()).outcome).toBe('failed');
    expect([first.deleted, second.deleted]).toEqual([[], ['a']]);
  });

  it('does not run a tool again whose process ended behind it', async () => {
    const store = new Map<string, string>();
    const hanging: Script = [{ outputs: [call('a')] }, { outputs: [call('b')] }];
    const first = start(sdk, { script: hanging, store });
    await readChunks(await first.carl.post(chatBody('go'), SEVEN));
    const before = new Map(store);
    await first.carl.answer('approve-a', true);
    await eventually(() => first.deleted.length === 1, 'the tool');
    await eventually(
      () => store.size === 1 && [...store.values()][0] !== [...before.values()][0],
      'b',
    );
    const second = start(sdk, { script: [], store });
    const sse = openSse(await second.carl.resume());
    expect((await openQuestion(sse)).questionId).toBe('approve-b');
    await sse.leave();
  });

  it('stays the run of who asked, whoever comes back first', async () => {
    const store = new Map<string, string>();
    const users: unknown[] = [];
    const options: AgentTurnsOptions['options'] = ({ user }) => {
      users.push(user);
      return {};
    };
    const first = start(sdk, { script: ASKS, store, options });
    await readChunks(await first.carl.post(chatBody('go'), SEVEN));
    await first.gateway.close();
    const second = start(sdk, { script: ASKS.slice(1), store, options });
    await second.olga.answer('approve-a', true);
    await second.ended();
    expect(users).toEqual([{ id: 'carl' }, { id: 'carl' }]);
  });

  it('shows what was said where nobody can go on with it, and asks no more', async () => {
    const store = new Map<string, string>();
    const first = start(sdk, { script: ASKS, store });
    await readChunks(await first.carl.post(chatBody('go'), SEVEN));
    await first.gateway.close();
    const [[key, text] = ['', '']] = store;
    store.set(key, JSON.stringify({ ...JSON.parse(text), state: '{"secret":' }));
    const warnings: unknown[] = [];
    const logger = { warn: (...given: unknown[]) => void warnings.push(given) };
    const { carl, ended } = start(sdk, { script: [], store, logger });
    const sse = openSse(await carl.resume());
    await sse.ended;
    expect(sse.chunks().find(({ type }) => type === 'error')).toEqual({
      type: 'error',
      errorText: 'The question is no longer open.',
    });
    const { message, outcome } = await ended();
    expect([textOf(message), outcome]).toEqual(['One moment. ', 'failed']);
    expect(questionsOf(sse.chunks()).at(-1)?.status).toBe('withdrawn');
    expect(warnings).toEqual([['the run that waits could not be read', expect.anything()]]);
    expect(JSON.stringify(warnings)).not.toContain('secret');
    await eventually(() => store.size === 0, 'an empty store');
    expect((await carl.resume()).status).toBe(204);
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

  it('keeps nothing for a restart without RunState, and still waits while it lives', async () => {
    const { Agent, run } = sdk;
    const agent = new Agent({ name: 'A' });
    const turns = createAgentTurns({ agent, run });
    expect(turns).not.toHaveProperty('waiting');
    const { carl, store, ended } = start(sdk, { script: ASKS, RunState: undefined as never });
    const sse = openSse(await carl.post(chatBody('go')));
    await openQuestion(sse);
    expect(store.size).toBe(0);
    await carl.answer('approve-a', true);
    expect((await ended()).outcome).toBe('finished');
  });

  it('asks all the same when the store fails, and says so to the operator', async () => {
    const fail = async () => {
      throw new Error('no database');
    };
    const warnings: string[] = [];
    const { carl, ended } = start(sdk, {
      script: ASKS,
      pending: { get: fail, set: fail, delete: fail },
      logger: { warn: (message) => void warnings.push(message) },
    });
    const sse = openSse(await carl.post(chatBody('go')));
    await openQuestion(sse);
    await carl.answer('approve-a', true);
    expect((await ended()).outcome).toBe('finished');
    await eventually(() => warnings.length === 3, 'all warnings');
    expect(warnings).toEqual(
      ['deleted', 'stored', 'deleted'].map((what) => `the run that waits could not be ${what}`),
    );
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

describe('createAgentTurns', () => {
  it('says at once what is missing', () => {
    const run = async () => undefined as never;
    expect(() => createAgentTurns({ run } as never)).toThrow('agent is no agent');
    expect(() => createAgentTurns({ agent: { name: 'A' } } as never)).toThrow('run is not');
  });
});
