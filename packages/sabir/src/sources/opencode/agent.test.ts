/** The real OpenCode, started once, with a model that says what it was told to. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DRIVER_SCRIPTS, PNG } from '../../../test/opencode/driver-scripts.ts';
import { type FaultyProxy, startFaultyProxy } from '../../../test/opencode/faulty-proxy.ts';
import {
  createOpenCodeHome,
  launchHome,
  type OpenCodeHome,
} from '../../../test/opencode/opencode-options.ts';
import { playPrompt, textOf } from '../../../test/opencode/play-prompt.ts';
import { type ScriptedModel, startScriptedModel } from '../../../test/opencode/scripted-model.ts';
import { type OpenCodeAgentOptions, openCodeDriver } from '../../platforms/node/opencode.ts';
import type { OpenCodeProcess } from '../../platforms/node/opencode-server.ts';
import type { AgentDriver, DriverEvent } from '../../turns/driver.ts';
import { createOpenCodeApi, type OpenCodeApi } from './api.ts';

/** The first time it has to be installed. */
const START_LIMIT_MS = 180_000;
const OTHER = { channelType: 'web', channelId: 'other' };

let model: ScriptedModel;
let home: OpenCodeHome;
let server: OpenCodeProcess;
let proxy: FaultyProxy;
let api: OpenCodeApi;
let driver: AgentDriver;
const emitted: { type: string; [field: string]: unknown }[] = [];

beforeAll(async () => {
  model = await startScriptedModel(DRIVER_SCRIPTS);
  home = createOpenCodeHome(model);
  server = await launchHome(home);
  proxy = await startFaultyProxy(server.url);
  api = createOpenCodeApi(server);
  driver = await startDriver();
}, START_LIMIT_MS);

async function startDriver(options: OpenCodeAgentOptions = {}): Promise<AgentDriver> {
  const { url } = proxy;
  const started = openCodeDriver({ server: { url, headers: server.headers }, ...options });
  await started.start?.({
    sessionId: 'session',
    signal: new AbortController().signal,
    emit: (event) => emitted.push(event),
  });
  return started;
}

afterAll(async () => {
  await driver?.close?.();
  await proxy?.close();
  await server?.stop();
  await model?.close();
  home?.remove();
});

const toolsOf = (events: DriverEvent[]) => events.filter((event) => event.type === 'tool');
const statusesOf = (events: DriverEvent[]) => toolsOf(events).map(({ status }) => status);

describe('the OpenCode driver', () => {
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
    const played = await playPrompt(driver, 'Say hello');
    expect(played.error).toBeUndefined();
    expect(textOf(played)).toBe('Hello there.');
    expect(played.events.filter(({ type }) => type !== 'text')).toEqual([
      {
        type: 'usage',
        model: 'scripted/one',
        usage: {
          inputTokens: 100,
          outputTokens: 20,
          totalTokens: 120,
          reasoningTokens: 5,
          cachedInputTokens: 40,
        },
      },
    ]);
  });

  it('goes on with the conversation of a channel, and begins one for another', async () => {
    const again = await playPrompt(driver, 'What did I say');
    expect(textOf(again)).toBe('You said: Say hello | What did I say');
    const other = await playPrompt(driver, 'What did I say here', { channel: OTHER });
    expect(textOf(other)).toBe('You said: What did I say here');
    const created = emitted.filter(({ type }) => type === 'channel-session-created');
    expect(created.map(({ channelKey }) => channelKey)).toEqual(['web:default', 'web:other']);
    expect(new Set(created.map(({ opencodeSessionId }) => opencodeSessionId)).size).toBe(2);
  });

  it('tells reasoning, a tool in all its states, and the next step [RUN-04]', async () => {
    const played = await playPrompt(driver, 'Think and read');
    const { events } = played;
    const reasoning = events.filter((event) => event.type === 'reasoning');
    expect(reasoning.map(({ delta }) => delta).join('')).toBe('I should look.');
    expect(textOf(played)).toBe('Looking.It says hello.');
    const tools = toolsOf(events);
    expect(tools.map(({ status }) => status)).toEqual(['pending', 'running', 'completed']);
    expect(new Set(tools.map(({ callId }) => callId))).toEqual(new Set(['read-1']));
    expect(tools[1]?.args).toEqual({ filePath: 'hello.txt' });
    expect(tools[2]?.result).toContain('hello file');
    const order = events.map(({ type }) => type);
    expect(order.indexOf('step')).toBeGreaterThan(order.lastIndexOf('tool'));
    expect(order.lastIndexOf('text')).toBeGreaterThan(order.indexOf('step'));
  });

  it('tells what a tool failed with, and goes on', async () => {
    const played = await playPrompt(driver, 'Read what is not there');
    expect(toolsOf(played.events).at(-1)).toMatchObject({ status: 'error', callId: 'read-2' });
    expect(toolsOf(played.events).at(-1)?.error).toContain('missing.txt');
    expect(textOf(played)).toBe('It is not there.');
  });

  it('asks before it runs a command, and runs it when it may [RUN-05]', async () => {
    const played = await playPrompt(driver, 'Run it', {
      answer: () => ({ status: 'answered', answer: 'Allow once' }),
    });
    expect(played.questions).toMatchObject([
      { options: ['Allow once', 'Always allow', 'Deny'], callId: 'run-1' },
    ]);
    expect(played.questions[0]?.text).toContain('echo ran');
    expect(toolsOf(played.events).at(-1)).toMatchObject({ status: 'completed', result: 'ran\n' });
    expect(textOf(played)).toBe('It ran.');
  });

  it('does not run what was denied', async () => {
    const played = await playPrompt(driver, 'Run nothing', {
      answer: () => ({ status: 'answered', answer: 'Deny' }),
    });
    expect(played.error).toBeUndefined();
    expect(statusesOf(played.events).at(-1)).toBe('error');
    expect(textOf(played)).toBe('');
  });

  it('does not run what nobody decided on, and lets the agent say so', async () => {
    const played = await playPrompt(driver, 'Run nothing', {
      answer: () => ({ status: 'expired' }),
    });
    expect(toolsOf(played.events).at(-1)?.error).toContain('Nobody answered in time.');
    expect(textOf(played)).toBe('I could not.');
  });

  it('tells the agent what was said instead of a yes or no', async () => {
    const played = await playPrompt(driver, 'Run nothing', {
      answer: () => ({ status: 'answered', answer: 'Use printf.' }),
    });
    expect(toolsOf(played.events).at(-1)?.error).toContain('Use printf.');
  });

  it('asks for the agent itself, one thing after the other', async () => {
    const played = await playPrompt(driver, 'Ask me', {
      answer: ({ options }) => ({ status: 'answered', answer: options?.[0] ?? '' }),
    });
    expect(played.questions.map(({ text, callId }) => [text, callId])).toEqual([
      ['Red or not?', 'ask-1'],
      ['Square or not?', 'ask-1'],
    ]);
    expect(toolsOf(played.events).at(-1)?.result).toContain('"Square or not?"="Square"');
    expect(textOf(played)).toBe('I see.');
  });

  it('asks for a subagent, whose words are not part of the answer', async () => {
    const played = await playPrompt(driver, 'Send somebody', {
      answer: () => ({ status: 'answered', answer: true }),
    });
    expect(played.questions).toMatchObject([{ callId: 'task-1' }]);
    expect(toolsOf(played.events).at(-1)?.result).toContain('Errand done.');
    expect(new Set(toolsOf(played.events).map(({ toolName }) => toolName))).toEqual(
      new Set(['task']),
    );
    expect(textOf(played)).toBe('Somebody went.');
  });

  it('stops in mid-answer, and answers the next prompt', async () => {
    const stopping = new AbortController();
    const played = await playPrompt(driver, 'Talk for ever', {
      signal: stopping.signal,
      on: () => stopping.abort(),
    });
    expect(played.error).toBeUndefined();
    expect('On and '.startsWith(textOf(played))).toBe(true);
    const next = await playPrompt(driver, 'Say hello');
    expect(textOf(next)).toBe('Hello there.');
  });

  it('stops while somebody is asked, and does not run it later', async () => {
    const stopping = new AbortController();
    const { promise: never } = Promise.withResolvers<never>();
    const stopped = new Promise<never>((_, reject) => {
      stopping.signal.addEventListener('abort', () => reject(stopping.signal.reason));
    });
    const played = await playPrompt(driver, 'Run it again', {
      signal: stopping.signal,
      answer: () => {
        stopping.abort();
        return Promise.race([never, stopped]);
      },
    });
    expect(played.error).toBeUndefined();
    expect(statusesOf(played.events)).not.toContain('completed');
    expect(textOf(await playPrompt(driver, 'Say hello'))).toBe('Hello there.');
  });

  it('fails with the words of the provider [RUN-04]', async () => {
    const played = await playPrompt(driver, 'Who are you');
    expect(played.error?.message).toBe('Incorrect API key provided.');
    expect(textOf(await playPrompt(driver, 'Say hello'))).toBe('Hello there.');
  });

  it('takes the model that a prompt names, and says which there is not [RUN-04]', async () => {
    const named = await playPrompt(driver, 'Which model', { model: 'scripted/two' });
    expect(textOf(named)).toBe('I am two.');
    const unknown = await playPrompt(driver, 'Which model', { model: 'scripted/three' });
    expect(unknown.error?.message).toContain('scripted/three');
    const odd = await playPrompt(driver, 'Which model', { model: 'two' });
    expect(odd.error?.message).toContain('provider/model');
    expect(textOf(await playPrompt(driver, 'Which model'))).toBe('I am one.');
  });

  it('hands on what is attached', async () => {
    const played = await playPrompt(driver, 'See this', {
      attachments: [{ url: PNG, mediaType: 'image/png', filename: 'dot.png' }],
    });
    expect(textOf(played)).toBe('I see it.');
  });
});

describe('the OpenCode driver on a bad connection', () => {
  const HALVES = 'One two three four';

  /** Once the first words have come. */
  const onFirst = (act: () => void) => {
    let isFirst = true;
    return ({ type }: DriverEvent) => {
      if (isFirst && type === 'text') act();
      isFirst = false;
    };
  };

  it('loses no word and tells none twice when the events break off', async () => {
    const cutAndGoOn = onFirst(() => {
      proxy.cut();
      model.release();
    });
    const played = await playPrompt(driver, 'Talk in two halves', { on: cutAndGoOn });
    expect(played.error).toBeUndefined();
    expect(textOf(played)).toBe(HALVES);
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
    const played = await playPrompt(driver, 'Talk in two halves', { on: beAway });
    expect(played.error).toBeUndefined();
    expect(textOf(played)).toBe(HALVES);
    expect(played.events.at(-1)?.type).toBe('usage');
  });

  it('asks what was asked while it was away', async () => {
    const beAway = onFirst(() => {
      proxy.isOpen = false;
      proxy.cut();
      waitFor(async () => (await api.permissions()).length > 0).then(() => {
        proxy.isOpen = true;
      });
    });
    const played = await playPrompt(driver, 'Talk, then run', {
      on: beAway,
      answer: () => ({ status: 'answered', answer: 'Allow once' }),
    });
    expect(played.questions).toMatchObject([{ callId: 'run-5' }]);
    expect(textOf(played)).toBe('Running.Done.');
  });

  it('notices a connection that is only half there', async () => {
    const impatient = await startDriver({ timing: { silenceMs: 500 } });
    const freeze = onFirst(() => {
      proxy.freeze();
      model.release();
    });
    const played = await playPrompt(impatient, 'Talk in two halves', { on: freeze });
    expect(textOf(played)).toBe(HALVES);
    await impatient.close?.();
  });

  it('says so when the connection does not come back, and works when it does', async () => {
    const impatient = await startDriver({ timing: { reconnectMs: 100 } });
    const leave = onFirst(() => {
      proxy.isOpen = false;
      proxy.cut();
    });
    const played = await playPrompt(impatient, 'Talk in two halves', { on: leave });
    expect(played.error?.message).toBe('The connection to OpenCode was lost.');
    proxy.isOpen = true;
    model.release();
    const next = await playPrompt(impatient, 'Say hello', { channel: OTHER });
    expect(textOf(next)).toBe('Hello there.');
    await impatient.close?.();
  });

  it('goes on with a conversation that was kept, and begins anew if it is gone', async () => {
    const kept = new Map<string, string>();
    const sessions = {
      get: (key: string) => kept.get(key),
      set: (key: string, id: string) => void kept.set(key, id),
    };
    const first = await startDriver({ sessions });
    await playPrompt(first, 'Say hello');
    await first.close?.();
    const second = await startDriver({ sessions });
    expect(textOf(await playPrompt(second, 'What did I say'))).toContain('Say hello |');
    await second.close?.();
    kept.set('web:default', 'ses_gone');
    const third = await startDriver({ sessions });
    expect(textOf(await playPrompt(third, 'What did I say'))).toBe('You said: What did I say');
    expect(kept.get('web:default')).not.toBe('ses_gone');
    await third.close?.();
  });

  it('is closed for good', async () => {
    const closed = await startDriver();
    await closed.close?.();
    await closed.close?.();
    const played = await playPrompt(closed, 'Say hello');
    expect(played.error?.message).toBe('The driver was closed.');
  });
});

async function waitFor(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 20));
}
