/** The real OpenCode, started once, with a model that says what it was told to. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AGENT_SCRIPTS, PNG } from '../../../test/opencode/agent-scripts.ts';
import { type FaultyProxy, startFaultyProxy } from '../../../test/opencode/faulty-proxy.ts';
import {
  createOpenCodeHome,
  launchHome,
  type OpenCodeHome,
} from '../../../test/opencode/opencode-options.ts';
import { EXPIRED, playPrompt } from '../../../test/opencode/play-prompt.ts';
import { type ScriptedModel, startScriptedModel } from '../../../test/opencode/scripted-model.ts';
import type { Chunk } from '../../core/chunks.ts';
import { type OpenCodeAgentOptions, openCodeAgent } from '../../platforms/node/opencode.ts';
import type { OpenCodeProcess } from '../../platforms/node/opencode-server.ts';
import type { Agent } from '../../turns/agent.ts';
import { createOpenCodeApi, type OpenCodeApi } from './api.ts';

/** The first time it has to be installed. */
const START_LIMIT_MS = 180_000;
const OTHER = { channelType: 'web', channelId: 'other' };

let model: ScriptedModel;
let home: OpenCodeHome;
let server: OpenCodeProcess;
let proxy: FaultyProxy;
let api: OpenCodeApi;
let agent: Agent;
const emitted: { type: string; [field: string]: unknown }[] = [];

beforeAll(async () => {
  model = await startScriptedModel(AGENT_SCRIPTS);
  home = createOpenCodeHome(model);
  server = await launchHome(home);
  proxy = await startFaultyProxy(server.url);
  api = createOpenCodeApi(server);
  agent = await startAgent();
}, START_LIMIT_MS);

async function startAgent(options: OpenCodeAgentOptions = {}): Promise<Agent> {
  const { url } = proxy;
  const started = openCodeAgent({ server: { url, headers: server.headers }, ...options });
  await started.start?.({
    sessionId: 'session',
    signal: new AbortController().signal,
    emit: (event) => emitted.push(event),
  });
  return started;
}

afterAll(async () => {
  await agent?.close?.();
  await proxy?.close();
  await server?.stop();
  await model?.close();
  home?.remove();
});

describe('the OpenCode agent', () => {
  it('tells which models there are', () => {
    const offered = [
      { id: 'scripted/one', name: 'One' },
      { id: 'scripted/two', name: 'Two' },
    ];
    expect(emitted).toContainEqual({
      type: 'models',
      models: [{ provider: 'Scripted', models: offered }],
    });
  });

  it('tells the words of an answer and what it used [RUN-04]', async () => {
    const played = await playPrompt(agent, 'Say hello');
    expect(played.error).toBeUndefined();
    expect(played.text).toBe('Hello there.');
    expect(played.metadata).toMatchObject({
      outcome: 'finished',
      usage: {
        inputTokens: 100,
        outputTokens: 20,
        totalTokens: 120,
        reasoningTokens: 5,
        cachedInputTokens: 40,
      },
    });
  });

  it('goes on with the conversation of a channel, and begins one for another', async () => {
    const again = await playPrompt(agent, 'What did I say');
    expect(again.text).toBe('You said: Say hello | What did I say');
    const other = await playPrompt(agent, 'What did I say here', { channel: OTHER });
    expect(other.text).toBe('You said: What did I say here');
    const created = emitted.filter(({ type }) => type === 'channel-session-created');
    expect(created.map(({ channelKey }) => channelKey)).toEqual(['web:default', 'web:other']);
    expect(new Set(created.map(({ opencodeSessionId }) => opencodeSessionId)).size).toBe(2);
  });

  it('tells reasoning, a tool in all its states, and the next step [RUN-04]', async () => {
    const played = await playPrompt(agent, 'Think and read');
    expect(played.reasoning).toBe('I should look.');
    expect(played.text).toBe('Looking.It says hello.');
    expect(played.tools).toMatchObject([
      { toolCallId: 'read-1', state: 'output-available', input: { filePath: 'hello.txt' } },
    ]);
    expect(played.tools[0]?.output).toContain('hello file');
    const order = played.chunks.map(({ type }) => type);
    const tools = order.filter((type) => type.startsWith('tool-'));
    expect(tools).toEqual([
      ...['tool-input-start', 'tool-input-delta', 'tool-input-available', 'tool-output-available'],
    ]);
    const step = order.lastIndexOf('start-step');
    expect(step).toBeGreaterThan(order.indexOf('tool-output-available'));
    expect(order.lastIndexOf('text-delta')).toBeGreaterThan(step);
  });

  it('tells what a tool failed with, and goes on', async () => {
    const played = await playPrompt(agent, 'Read what is not there');
    expect(played.tools).toMatchObject([{ toolCallId: 'read-2', state: 'output-error' }]);
    expect(played.tools[0]?.errorText).toContain('missing.txt');
    expect(played.text).toBe('It is not there.');
  });

  it('asks before it runs a command, and runs it when it may [RUN-05]', async () => {
    const played = await playPrompt(agent, 'Run it', {
      answer: () => 'Allow once',
    });
    expect(played.questions).toMatchObject([
      { options: ['Allow once', 'Always allow', 'Deny'], toolCallId: 'run-1' },
    ]);
    expect(played.questions[0]?.text).toContain('echo ran');
    expect(played.tools).toMatchObject([{ state: 'output-available', output: 'ran\n' }]);
    expect(played.text).toBe('It ran.');
  });

  it('does not run what was denied', async () => {
    const played = await playPrompt(agent, 'Run nothing', {
      answer: () => 'Deny',
    });
    expect(played.error).toBeUndefined();
    expect(played.tools.at(-1)?.state).toBe('output-error');
    expect(played.text).toBe('');
  });

  it('does not run what nobody decided on, and lets the agent say so', async () => {
    const played = await playPrompt(agent, 'Run nothing', {
      answer: () => EXPIRED,
    });
    expect(played.tools.at(-1)?.errorText).toContain('Nobody answered in time.');
    expect(played.text).toBe('I could not.');
  });

  it('tells the agent what was said instead of a yes or no', async () => {
    const played = await playPrompt(agent, 'Run nothing', {
      answer: () => 'Use printf.',
    });
    expect(played.tools.at(-1)?.errorText).toContain('Use printf.');
  });

  it('asks for the agent itself, one thing after the other', async () => {
    const played = await playPrompt(agent, 'Ask me', {
      answer: ({ options }) => options?.[0] ?? '',
    });
    expect(played.questions.map(({ text, toolCallId }) => [text, toolCallId])).toEqual([
      ['Red or not?', 'ask-1'],
      ['Square or not?', 'ask-1'],
    ]);
    expect(played.tools.at(-1)?.output).toContain('"Square or not?"="Square"');
    expect(played.text).toBe('I see.');
  });

  it('asks for a subagent, whose words are not part of the answer', async () => {
    const played = await playPrompt(agent, 'Send somebody', {
      answer: () => true,
    });
    expect(played.questions).toMatchObject([{ toolCallId: 'task-1' }]);
    expect(played.tools.at(-1)?.output).toContain('Errand done.');
    expect(played.tools.map(({ type }) => type)).toEqual(['tool-task']);
    expect(played.text).toBe('Somebody went.');
  });

  it('stops in mid-answer, and answers the next prompt', async () => {
    const stopping = new AbortController();
    const played = await playPrompt(agent, 'Talk for ever', {
      signal: stopping.signal,
      on: () => stopping.abort(),
    });
    expect(played.error).toBeUndefined();
    expect('On and '.startsWith(played.text)).toBe(true);
    const next = await playPrompt(agent, 'Say hello');
    expect(next.text).toBe('Hello there.');
  });

  it('stops while somebody is asked, and does not run it later', async () => {
    const stopping = new AbortController();
    const { promise: never } = Promise.withResolvers<never>();
    const stopped = new Promise<never>((_, reject) => {
      stopping.signal.addEventListener('abort', () => reject(stopping.signal.reason));
    });
    const played = await playPrompt(agent, 'Run it again', {
      signal: stopping.signal,
      answer: () => {
        stopping.abort();
        return Promise.race([never, stopped]);
      },
    });
    expect(played.error).toBeUndefined();
    expect(played.tools.map(({ state }) => state)).not.toContain('output-available');
    expect((await playPrompt(agent, 'Say hello')).text).toBe('Hello there.');
  });

  it('fails with the words of the provider [RUN-04]', async () => {
    const played = await playPrompt(agent, 'Who are you');
    expect(played.error?.message).toBe('Incorrect API key provided.');
    expect((await playPrompt(agent, 'Say hello')).text).toBe('Hello there.');
  });

  it('takes the model that a prompt names, and says which there is not [RUN-04]', async () => {
    const named = await playPrompt(agent, 'Which model', { model: 'scripted/two' });
    expect(named.text).toBe('I am two.');
    const unknown = await playPrompt(agent, 'Which model', { model: 'scripted/three' });
    expect(unknown.error?.message).toContain('scripted/three');
    const odd = await playPrompt(agent, 'Which model', { model: 'two' });
    expect(odd.error?.message).toContain('provider/model');
    expect((await playPrompt(agent, 'Which model')).text).toBe('I am one.');
  });

  it('hands on what is attached', async () => {
    const played = await playPrompt(agent, 'See this', {
      attachments: [{ url: PNG, mediaType: 'image/png', filename: 'dot.png' }],
    });
    expect(played.text).toBe('I see it.');
  });
});

describe('the OpenCode agent on a bad connection', () => {
  const HALVES = 'One two three four';

  /** Once the first words have come. */
  const onFirst = (act: () => void) => {
    let isFirst = true;
    return ({ type }: Chunk) => {
      if (type !== 'text-delta') return;
      if (isFirst) act();
      isFirst = false;
    };
  };

  it('loses no word and tells none twice when the events break off', async () => {
    const cutAndGoOn = onFirst(() => {
      proxy.cut();
      model.release();
    });
    const played = await playPrompt(agent, 'Talk in two halves', { on: cutAndGoOn });
    expect(played.error).toBeUndefined();
    expect(played.text).toBe(HALVES);
  });

  it('ends a turn that ended while it was away', async () => {
    const created = emitted.find(({ channelKey }) => channelKey === 'web:default');
    const beAway = onFirst(() => {
      proxy.isOpen = false;
      proxy.cut();
      model.release();
      waitFor(() => api.isIdle(`${created?.opencodeSessionId}`)).then(() => {
        proxy.isOpen = true;
      });
    });
    const played = await playPrompt(agent, 'Talk in two halves', { on: beAway });
    expect(played.error).toBeUndefined();
    expect(played.text).toBe(HALVES);
    expect(played.metadata.usage).toMatchObject({ inputTokens: 100 });
  });

  it('asks what was asked while it was away', async () => {
    const beAway = onFirst(() => {
      proxy.isOpen = false;
      proxy.cut();
      waitFor(async () => (await api.permissions()).length > 0).then(() => {
        proxy.isOpen = true;
      });
    });
    const played = await playPrompt(agent, 'Talk, then run', {
      on: beAway,
      answer: () => 'Allow once',
    });
    expect(played.questions).toMatchObject([{ toolCallId: 'run-5' }]);
    expect(played.text).toBe('Running.Done.');
  });

  it('notices a connection that is only half there', async () => {
    const impatient = await startAgent({ timing: { silenceMs: 500 } });
    const freeze = onFirst(() => {
      proxy.freeze();
      model.release();
    });
    const played = await playPrompt(impatient, 'Talk in two halves', { on: freeze });
    expect(played.text).toBe(HALVES);
    await impatient.close?.();
  });

  it('says so when the connection does not come back, and works when it does', async () => {
    const impatient = await startAgent({ timing: { reconnectMs: 100 } });
    const leave = onFirst(() => {
      proxy.isOpen = false;
      proxy.cut();
    });
    const played = await playPrompt(impatient, 'Talk in two halves', { on: leave });
    expect(played.error?.message).toBe('The connection to OpenCode was lost.');
    proxy.isOpen = true;
    model.release();
    const next = await playPrompt(impatient, 'Say hello', { channel: OTHER });
    expect(next.text).toBe('Hello there.');
    await impatient.close?.();
  });

  it('goes on with a conversation that was kept, and begins anew if it is gone', async () => {
    const kept = new Map<string, string>();
    const sessions = {
      get: (key: string) => kept.get(key),
      set: (key: string, id: string) => void kept.set(key, id),
    };
    const first = await startAgent({ sessions });
    await playPrompt(first, 'Say hello');
    await first.close?.();
    const second = await startAgent({ sessions });
    expect((await playPrompt(second, 'What did I say')).text).toContain('Say hello |');
    await second.close?.();
    kept.set('web:default', 'ses_gone');
    const third = await startAgent({ sessions });
    expect((await playPrompt(third, 'What did I say')).text).toBe('You said: What did I say');
    expect(kept.get('web:default')).not.toBe('ses_gone');
    await third.close?.();
  });

  it('is closed for good', async () => {
    const closed = await startAgent();
    await closed.close?.();
    await closed.close?.();
    const played = await playPrompt(closed, 'Say hello');
    expect(played.error?.message).toBe('The agent was closed.');
  });
});

async function waitFor(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 20));
}
