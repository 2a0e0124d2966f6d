/** An example as a person would start it: a process of its own, on a port that is free. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const EXAMPLES = fileURLToPath(new URL('..', import.meta.url));
const READY_MS = 60_000;
const GRACE_MS = 5_000;

export type ExampleServer = {
  url: string;
  /** The next match in what the server prints, from where the last one ended. */
  waitFor(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
  stop(): Promise<void>;
};

/** Arguments are Node's; the server is up when it has printed its address. */
export async function startServer(...args: string[]): Promise<ExampleServer> {
  const child = startNode(args);
  const { waitFor } = followOutput(child, args);
  const stop = () => endChild(child);
  try {
    const [url] = await waitFor(/http:\/\/localhost:\d+/, READY_MS);
    return { url, waitFor, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Runs to its end, which must be a good one. */
export async function runToEnd(...args: string[]): Promise<void> {
  const child = startNode(args);
  const output = followOutput(child, args);
  const [exitCode] = await once(child, 'close');
  if (exitCode !== 0) throw new Error(output.describe(`ended with ${exitCode}`));
}

function startNode(args: string[]): ChildProcess {
  const child = spawn(process.execPath, args, {
    cwd: EXAMPLES,
    env: { ...process.env, NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1', PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const abandon = () => child.kill('SIGKILL');
  process.once('exit', abandon);
  child.once('close', () => process.off('exit', abandon));
  return child;
}

function followOutput(child: ChildProcess, args: string[]) {
  let output = '';
  let offset = 0;
  let look: () => void = () => undefined;
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      look();
    });
  }
  child.once('close', () => look());

  const describe = (what: string) => `node ${args.join(' ')} ${what}. It printed:\n${output}`;

  async function waitFor(pattern: RegExp, timeoutMs = 5_000): Promise<RegExpExecArray> {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    const timer = setTimeout(
      () => reject(new Error(describe(`did not print ${pattern} within ${timeoutMs} ms`))),
      timeoutMs,
    );
    look = () => {
      const match = pattern.exec(output.slice(offset));
      if (match) {
        offset += match.index + match[0].length;
        resolve(match);
      } else if (child.exitCode !== null || child.signalCode !== null) {
        reject(new Error(describe(`ended with ${child.exitCode ?? child.signalCode}`)));
      }
    };
    look();
    return promise.finally(() => {
      clearTimeout(timer);
      look = () => undefined;
    });
  }

  return { waitFor, describe };
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
  await closed;
  clearTimeout(timer);
}
