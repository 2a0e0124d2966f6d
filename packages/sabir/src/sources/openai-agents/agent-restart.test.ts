import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { chatBody, eventually, openSse, readChunks } from '../../../test/gateway-client.ts';
import {
  ASKS,
  call,
  openQuestion,
  questionsOf,
  SEVEN,
  say,
  start,
  textOf,
  toolsOf,
} from '../../../test/openai-agents/agent-process.ts';
import type { Script } from '../../../test/openai-agents/scripted-model.ts';
import { SDKS } from '../../../test/openai-agents/sdks.ts';
import { promptOf } from '../../../test/run-prompt.ts';
import { foldChunks } from '../../core/fold.ts';
import { verifyChunks } from '../../core/verify.ts';
import { type AgentsSdkAgentOptions, agentsSdkAgent, type PendingRun } from './index.ts';

describe.each(SDKS)('a run of Agents SDK $version that waits when its process ends', ({ sdk }) => {
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
    const options: AgentsSdkAgentOptions['options'] = ({ user }) => {
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

  it('keeps nothing for a restart without RunState, and still waits while it lives', async () => {
    const { Agent, run } = sdk;
    const agent = new Agent({ name: 'A' });
    expect(agentsSdkAgent({ agent, run })).not.toHaveProperty('restore');
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

  it('asks without a store that hangs, and takes away what lands there too late', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const store = new Map<string, PendingRun>();
    let hasLanded = false;
    const held = Promise.withResolvers<void>();
    const { clerk } = start(sdk, {
      script: ASKS,
      pending: {
        get: (key) => store.get(key),
        set: async (key, run) => {
          await held.promise;
          store.set(key, run);
          hasLanded = true;
        },
        delete: (key) => store.delete(key),
      },
    });
    const answer = Promise.withResolvers<unknown>();
    const prompt = { ...promptOf('go'), chatKey: 'k', answer: () => answer.promise };
    const chunks = clerk.prompt(prompt);
    for (let next = chunks.next(); ; next = chunks.next()) {
      await vi.advanceTimersByTimeAsync(10_000);
      if ((await next).value?.type === 'data-question') break;
    }
    answer.resolve(true);
    for await (const _ of chunks);
    expect(hasLanded).toBe(false);
    held.resolve();
    await vi.advanceTimersByTimeAsync(100);
    expect([hasLanded, store.size]).toEqual([true, 0]);
  });
});
