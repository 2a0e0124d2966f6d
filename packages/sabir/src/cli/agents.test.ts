import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { makeFolder } from '../../test/cli-process.ts';
import { runPrompt, until } from '../../test/run-prompt.ts';
import type { Agent } from '../sessions/index.ts';
import { type AgentOptions, loadAgent } from './agents.ts';
import { shareAgent } from './shared-agent.ts';

function load(options: Partial<AgentOptions> & { agent: string }) {
  const { cwd = makeFolder() } = options;
  return loadAgent({ model: undefined, directory: cwd, ...options, cwd });
}

/** The module of a user's own agent, in a folder of its own. */
function writeModule(text: string) {
  const cwd = makeFolder();
  writeFileSync(join(cwd, 'agent.mjs'), text);
  return { cwd, agent: './agent.mjs' };
}

async function start(agent: Agent): Promise<void> {
  const { signal } = new AbortController();
  await agent.start?.({ sessionId: 's', emit: () => undefined, signal });
}

describe('an agent that is a module', () => {
  it('may be made for each session, with the flags of the command', async () => {
    const module = writeModule(`
      export default async (sessionId, { model }) => ({
        name: 'own',
        async *prompt({ text }) {
          yield { type: 'text-delta', delta: [sessionId, model, text].join(' ') };
        },
      });
    `);
    const { agentFor } = await load({ ...module, model: 'm1' });
    const run = runPrompt(agentFor('s1'), 'ahoy');
    await run.done;
    expect(run.text).toBe('s1 m1 ahoy');
  });

  it('may be an async generator function, or make one', async () => {
    const answer = `async function* echo({ text }) { yield { type: 'text-delta', delta: text }; }`;
    const one = await load(writeModule(`export default ${answer}`));
    expect(one.about).toBe('echo, from agent.mjs: one for all sessions');
    const made = await load(writeModule(`export default () => ${answer}`));
    for (const { agentFor } of [one, made]) {
      const run = runPrompt(agentFor('s'), 'ahoy');
      await run.done;
      expect(run.text).toBe('ahoy');
    }
  });

  it('is tried again if it could not be made', async () => {
    const module = writeModule(`
      let tries = 0;
      export default () => {
        if (tries++ === 0) throw new Error('The tide is out.');
        return { name: 'own', needsHistory: false, async *prompt() {} };
      };
    `);
    const { agentFor } = await load(module);
    const made = agentFor('s1');
    // Before the agent is made, it may need the history.
    expect(made.needsHistory).toBe(true);
    await expect(start(made)).rejects.toThrow('The tide is out.');
    await start(made);
    expect(made.needsHistory).toBe(false);
  });

  it('that makes no agent fails the prompt with a sentence that says so', async () => {
    const { agentFor } = await load(writeModule('export default () => 1;'));
    await expect(start(agentFor('s'))).rejects.toThrow('made no agent');
  });

  it.each([
    ['export const agent = 1;', 'agent.mjs exports no agent. Its default export must be'],
    ['export default { prompt() {} };', 'agent.mjs exports no agent.'],
    ["import 'not-there';", 'agent.mjs could not be loaded.\nError: Cannot find package'],
    ["throw new Error('No chart.');", 'agent.mjs could not be loaded.\nError: No chart.'],
  ])('is refused with a sentence that says what is wrong: %j', async (text, sentence) => {
    await expect(load(writeModule(text))).rejects.toThrow(sentence);
  });

  it('has to be there', async () => {
    const cwd = makeFolder();
    const sentence = `There is no ${join(cwd, 'absent.js')}. --agent wants the path of a module.`;
    await expect(load({ cwd, agent: './absent.js' })).rejects.toThrow(sentence);
  });
});

describe('one agent for all sessions', () => {
  it('is asked one thing at a time, and closed once', async () => {
    const order: string[] = [];
    const gate = Promise.withResolvers<void>();
    const shared = shareAgent({
      name: 'one',
      async *prompt({ text }) {
        order.push(`${text} begins`);
        yield { type: 'text-delta', delta: '' };
        if (text === 'first') await gate.promise;
        order.push(`${text} ends`);
      },
      close: async () => void order.push('closed'),
    });
    const [one, two, three] = [shared.forSession(), shared.forSession(), shared.forSession()];
    const first = runPrompt(one, 'first');
    const stopped = runPrompt(two, 'stopped');
    const third = runPrompt(three, 'third');
    await until(() => order.length > 0);
    stopped.abort();
    await stopped.done;
    gate.resolve();
    await Promise.all([first.done, third.done]);
    await one.close?.();
    await shared.close();
    expect(order).toEqual(['first begins', 'first ends', 'third begins', 'third ends', 'closed']);
  });
});

it('one agent for all sessions is asked by all at once if it is concurrent', async () => {
  const both = Promise.withResolvers<void>();
  let running = 0;
  const shared = shareAgent({
    name: 'one',
    concurrent: true,
    async *prompt() {
      if (++running === 2) both.resolve();
      await both.promise;
      yield { type: 'text-delta', delta: 'met' };
    },
  });
  const runs = ['first', 'second'].map((text) => runPrompt(shared.forSession(), text));
  await Promise.all(runs.map(({ done }) => done));
  expect(runs.map(({ text }) => text)).toEqual(['met', 'met']);
});

describe('--agent ai-sdk', () => {
  const PROVIDER = fileURLToPath(new URL('../../test/fixtures/cli/provider.mjs', import.meta.url));

  /** A folder in which a provider is installed, and the AI SDK where that is wanted. */
  function install(sdk?: 'ai-v6' | 'ai-v7'): string {
    const cwd = makeFolder();
    const modules = join(cwd, 'node_modules');
    const own = join(modules, '@ai-sdk/harbour-master');
    mkdirSync(own, { recursive: true });
    cpSync(PROVIDER, join(own, 'index.mjs'));
    writeFileSync(join(own, 'package.json'), '{ "exports": { "default": "./index.mjs" } }');
    if (!sdk) return cwd;
    const installed = dirname(fileURLToPath(import.meta.resolve(`${sdk}/package.json`)));
    symlinkSync(installed, join(modules, 'ai'));
    return cwd;
  }

  // 6 comes as CommonJS too, 7 as modules only.
  it.each(['ai-v6', 'ai-v7'] as const)('asks an installed model through %s', async (sdk) => {
    vi.stubEnv('HARBOUR_API_KEY', 'key');
    const model = 'harbour-master/pilot-1';
    const { agentFor, about } = await load({ agent: 'ai-sdk', model, cwd: install(sdk) });
    expect(about).toBe(`AI SDK: ${model}`);
    const run = runPrompt(agentFor('s'), 'ahoy');
    await run.done;
    expect(run.text).toBe('pilot-1 heard 1 messages, the last: ahoy');
    vi.unstubAllEnvs();
  });

  it.each([
    [{}, '--agent ai-sdk needs --model provider/model, such as openai/gpt-5.'],
    [{ model: 'gpt-5' }, 'such as openai/gpt-5, not “gpt-5”.'],
    [{ model: 'openai/gpt-5' }, 'npm install ai @ai-sdk/openai'],
    [{ model: 'harbour-master/x', cwd: 'without the SDK' }, 'npm install ai'],
    [{ model: 'harbour-master/x', cwd: 'with it' }, 'the HARBOUR_API_KEY environment variable.'],
  ])('says what is missing with %o', async ({ cwd, ...options }: Missing, sentence) => {
    const folder =
      cwd === undefined ? makeFolder() : install(cwd === 'with it' ? 'ai-v7' : undefined);
    await expect(load({ agent: 'ai-sdk', ...options, cwd: folder })).rejects.toThrow(sentence);
  });
  type Missing = { model?: string; cwd?: string };
});

describe('--agent opencode', () => {
  it('says what is missing', async () => {
    const cwd = makeFolder();
    const agent = 'opencode';
    const directory = join(cwd, 'absent');
    await expect(load({ agent, directory })).rejects.toThrow(`There is no folder ${directory}.`);
    await expect(load({ agent, model: 'gpt-5' })).rejects.toThrow('must be provider/model');
    vi.stubEnv('OPENCODE_BIN', join(cwd, 'absent'));
    await expect(load({ agent, cwd })).rejects.toThrow('npm install opencode-ai');
    vi.unstubAllEnvs();
  });
});
