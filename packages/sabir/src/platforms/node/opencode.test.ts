/** The process: how it is found, started, and ended. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOpenCodeHome } from '../../../test/opencode/opencode-options.ts';
import { playPrompt } from '../../../test/opencode/play-prompt.ts';
import { startScriptedModel } from '../../../test/opencode/scripted-model.ts';
import { openCodeAgent } from './opencode.ts';
import { findOpenCode } from './opencode-binary.ts';
import { launchOpenCode } from './opencode-server.ts';

const { signal } = new AbortController();
const where = { sessionId: 's', signal, emit: () => undefined };
let folder: string;

/** A program of ours that is started as OpenCode is. */
function program(name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!${process.execPath}\n${script}`);
  chmodSync(path, 0o755);
  return path;
}

const HEALTHY = `
require('node:http').createServer((_, response) => response.end('{}')).listen(process.argv[6]);
`;

const launch = (path: string, limits: { startMs?: number; stopMs?: number } = {}) =>
  launchOpenCode({
    program: path,
    directory: folder,
    env: process.env,
    startMs: 20_000,
    stopMs: 20_000,
    signal,
    ...limits,
  });

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function untilDead(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sabir-opencode-process-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('findOpenCode', () => {
  it('says how to install what is not there', async () => {
    const find = () => findOpenCode({ directory: folder, env: { PATH: folder } });
    expect(find).toThrow('npm install opencode-ai');
    const agent = openCodeAgent({ command: 'no-such-opencode', directory: folder });
    await expect(agent.start?.(where)).rejects.toThrow('npm install opencode-ai');
    await agent.close?.();
  });

  it('takes what was given, then OPENCODE_BIN, then the PATH, then the npm package', () => {
    const project = join(folder, 'project');
    const modules = join(project, 'node_modules');
    const native = `opencode-${process.platform}-${process.arch}`;
    const musl = `${native}-musl`;
    for (const name of ['opencode-ai', native, musl]) {
      mkdirSync(join(modules, name, 'bin'), { recursive: true });
      writeFileSync(join(modules, name, 'package.json'), '{}');
    }
    const packaged = [native, musl].map((name) =>
      program(join('project/node_modules', name, 'bin/opencode'), ''),
    );
    const find = (command?: string, env = {}) => findOpenCode({ command, directory: project, env });
    expect(packaged).toContain(find());

    // The command of a package whose script npm did not run does nothing.
    const stub = program('project/node_modules/opencode-ai/bin/opencode.exe', '');
    mkdirSync(join(modules, '.bin'));
    symlinkSync(stub, join(modules, '.bin/opencode'));
    expect(packaged).toContain(find(undefined, { PATH: join(modules, '.bin') }));

    mkdirSync(join(folder, 'bin'));
    const onPath = program('bin/opencode', '');
    const env = { PATH: join(folder, 'bin') };
    expect(find(undefined, env)).toBe(onPath);
    const named = program('elsewhere', '');
    expect(find(undefined, { ...env, OPENCODE_BIN: named })).toBe(named);
    const given = program('given', '');
    expect(find('../given', { ...env, OPENCODE_BIN: named })).toBe(given);
  });
});

describe('launchOpenCode', () => {
  it('says what a program said that ended at once', async () => {
    const path = program('broken', 'console.error("The config is broken."); process.exit(3);');
    await expect(launch(path)).rejects.toThrow('(code 3). It said: The config is broken.');
  });

  it('gives up on one that does not answer, and ends it', async () => {
    const path = program('mute', 'setInterval(() => {}, 1000);');
    await expect(launch(path, { startMs: 300 })).rejects.toThrow('did not answer within 300 ms');
  });

  it('ends by force what does not end by itself', async () => {
    const path = program('stubborn', `process.on('SIGTERM', () => {});${HEALTHY}`);
    const server = await launch(path, { stopMs: 100 });
    await server.stop();
    expect(isAlive(server.pid)).toBe(false);
    expect(server.gone.aborted).toBe(false);
  });

  it('leaves nothing behind when we are killed [RUN-06]', async () => {
    const path = program('orphan', HEALTHY);
    const module = fileURLToPath(new URL('./opencode-server.ts', import.meta.url));
    const script = `
      const { launchOpenCode } = await import(${JSON.stringify(module)});
      const server = await launchOpenCode({
        program: ${JSON.stringify(path)}, directory: '.', env: process.env,
        startMs: 20000, stopMs: 20000, signal: new AbortController().signal,
      });
      console.log(server.pid);
    `;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script]);
    const [printed] = await once(parent.stdout, 'data');
    const pid = Number(`${printed}`);
    expect(isAlive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await untilDead(pid);
  });
});

describe('openCodeAgent', () => {
  it('says that its server died in mid-turn, starts it again, and ends it [RUN-06]', async () => {
    const model = await startScriptedModel({
      'Say hello': [{ text: ['Hello there.'] }],
      'End it all': [
        {
          text: ['Ending.'],
          calls: [
            { id: 'end-1', name: 'bash', input: { command: 'kill -9 $PPID', description: 'Ends' } },
          ],
        },
      ],
      'What did I say': [({ messages }) => ({ text: [JSON.stringify(messages)] })],
    });
    const home = createOpenCodeHome(model);
    const agent = openCodeAgent({ ...home.options, permission: 'allow' });
    try {
      await agent.start?.(where);
      await playPrompt(agent, 'Say hello');
      const ended = await playPrompt(agent, 'End it all');
      expect(ended.error?.message).toContain('OpenCode has ended (SIGKILL)');
      expect(ended.questions).toEqual([]);
      const next = await playPrompt(agent, 'What did I say');
      expect(next.text).toContain('Say hello');
    } finally {
      await agent.close?.();
      await model.close();
      home.remove();
    }
    const closed = await playPrompt(agent, 'Say hello');
    expect(closed.error?.message).toBe('The agent was closed.');
  }, 180_000);
});
