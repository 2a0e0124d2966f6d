/** `sabir serve` with each kind of agent: the process that serves the chat runs the agent too. */
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ask, makeFolder, startServe } from '../../test/cli-process.ts';
import { openSse } from '../../test/gateway-client.ts';
import { createOpenCodeHome } from '../../test/opencode/opencode-options.ts';
import { startScriptedModel } from '../../test/opencode/scripted-model.ts';

const MEMORY = ['--database', ':memory:', '--no-page'];

async function answerTo(url: string, text: string): Promise<string> {
  const sse = openSse(await ask(url, { text }));
  await sse.ended;
  return sse.text();
}

describe('sabir serve', () => {
  it('answers with a model of the AI SDK, which gets what was said before', async () => {
    const cwd = makeFolder();
    const modules = join(cwd, 'node_modules');
    const provider = join(modules, '@ai-sdk/harbour-master');
    mkdirSync(provider, { recursive: true });
    cpSync(
      fileURLToPath(new URL('../../test/fixtures/cli/provider.mjs', import.meta.url)),
      join(provider, 'index.mjs'),
    );
    writeFileSync(join(provider, 'package.json'), '{ "exports": { "default": "./index.mjs" } }');
    const sdk = dirname(fileURLToPath(import.meta.resolve('ai-v7/package.json')));
    symlinkSync(sdk, join(modules, 'ai'));
    const args = ['--agent', 'ai-sdk', '--model', 'harbour-master/pilot-1', ...MEMORY];
    const server = await startServe(args, { cwd, env: { HARBOUR_API_KEY: 'key' } });
    expect(server.output.stdout).toContain('AI SDK: harbour-master/pilot-1');
    expect(await answerTo(server.url, 'ahoy')).toBe('pilot-1 heard 1 messages, the last: ahoy');
    expect(await answerTo(server.url, 'again')).toBe('pilot-1 heard 3 messages, the last: again');
    server.kill('SIGTERM');
    expect(await server.code).toBe(0);
  });

  it('answers with OpenCode, which remembers by itself, and ends it when it ends', async () => {
    const model = await startScriptedModel({
      'first words': [{ text: ['Heard ', 'you.'] }],
      'second words': [({ messages }) => ({ text: [JSON.stringify(messages)] })],
    });
    const home = createOpenCodeHome(model);
    onTestFinished(async () => {
      home.remove();
      await model.close();
    });
    const { command, config, env } = home.options;
    const args = ['--agent', 'opencode', '--directory', home.directory, '--model', 'scripted/one'];
    const server = await startServe([...args, ...MEMORY], {
      env: {
        ...env,
        OPENCODE_BIN: command,
        OPENCODE_CONFIG_CONTENT: JSON.stringify(config),
      },
    });
    expect(server.output.stdout).toContain(`OpenCode in ${home.directory}, scripted/one`);
    expect(await answerTo(server.url, 'first words')).toBe('Heard you.');
    expect(await answerTo(server.url, 'second words')).toContain('Heard you.');
    server.kill('SIGTERM');
    expect(await server.code).toBe(0);
  });
});
