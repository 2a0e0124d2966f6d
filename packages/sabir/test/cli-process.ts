/** The command `sabir` as a process of its own, as a user would start it. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished, vi } from 'vitest';

const CLI = fileURLToPath(new URL('../src/cli/index.ts', import.meta.url));
const WAIT = { timeout: 20_000, interval: 10 };

type CliOptions = { env?: Record<string, string>; cwd?: string };

/** A folder that is gone after the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-cli-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Only what the test sets: variables of the test's own process must not reach the command. */
function toEnvironment(env: Record<string, string>): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return { PATH, HOME, ...env };
}

function startCli(args: string[], { env = {}, cwd = makeFolder() }: CliOptions = {}) {
  const child = spawn(process.execPath, [CLI, ...args], { cwd, env: toEnvironment(env) });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const { promise: code, resolve } = Promise.withResolvers<number | null>();
  child.once('close', resolve);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await code;
  });
  return {
    output,
    /** When it ended, with what. */
    code,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    says: (words: string | RegExp) =>
      vi.waitUntil(() => {
        const all = output.stdout + output.stderr;
        if (typeof words === 'string' ? all.includes(words) : words.test(all)) return true;
        if (child.exitCode === null) return false;
        // Not to be waited for any longer.
        throw new Error(`It did not say ${words}, but:\n${all}`);
      }, WAIT),
  };
}

/** For a command that ends by itself. */
export async function runCli(args: string[], options?: CliOptions) {
  const { output, code } = startCli(args, options);
  return { code: await code, ...output };
}

/** `sabir serve` on any free port, when it is up. */
export async function startServe(args: string[] = [], options?: CliOptions) {
  const cli = startCli(['serve', '--port', '0', ...args], options);
  await cli.says('Try it');
  await cli.says(/curl .*\n/);
  const [url = ''] = /http:\/\/[\w.[\]:]+/.exec(cli.output.stdout) ?? [];
  return { ...cli, url };
}

type Ask = { text?: string; session?: string; token?: string; headers?: Record<string, string> };

/** Sends a prompt to a session of `sabir serve`. */
export function ask(url: string, { text = 'hello', session = 's', token, headers }: Ask = {}) {
  return fetch(`${url}/api/sessions/${session}/chat`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: JSON.stringify({
      id: 'c',
      messages: [{ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }],
    }),
  });
}

/** The messages of a session, as JSON. */
export async function historyOf(url: string, session = 's'): Promise<string> {
  return (await fetch(`${url}/api/sessions/${session}/messages`)).text();
}
