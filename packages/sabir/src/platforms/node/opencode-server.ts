import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export type OpenCodeProcess = {
  url: string;
  /** Nobody but us may use it. */
  headers: Record<string, string>;
  pid: number;
  /** Aborts when it has ended without being told to. */
  gone: AbortSignal;
  /** Ends it, by force if it takes too long. */
  stop(): Promise<void>;
};

type LaunchOptions = {
  program: string;
  directory: string;
  env: NodeJS.ProcessEnv;
  /** How long it may take until it answers. */
  startMs: number;
  /** How long it may take to end when it is told to. */
  stopMs: number;
  signal: AbortSignal;
};

/** A server takes connections a moment before it answers them. */
const HEALTH_LIMIT_MS = 1_000;
const HEALTH_EVERY_MS = 50;
/** Of what it wrote, the end: where it says why it went. */
const KEPT_CHARACTERS = 2_000;

/** Starts `opencode serve` on a free port of this machine, and waits until it answers. */
export async function launchOpenCode(options: LaunchOptions): Promise<OpenCodeProcess> {
  const { program, directory, startMs, stopMs, signal } = options;
  const password = randomBytes(24).toString('base64url');
  const port = await findFreePort();
  const child = spawn(program, ['serve', '--hostname', '127.0.0.1', '--port', `${port}`], {
    cwd: directory,
    env: { ...options.env, OPENCODE_SERVER_PASSWORD: password },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const written = keepEnd(child);
  const ended = whenEnded(child);
  const gone = new AbortController();
  let isStopping = false;
  ended.then((how) => {
    if (!isStopping) gone.abort(new Error(`OpenCode has ended (${how}).${lastLine(written())}`));
  });
  const unwatch = endWithUs(child);
  ended.then(unwatch);

  async function stop(): Promise<void> {
    isStopping = true;
    child.kill('SIGTERM');
    const force = setTimeout(() => child.kill('SIGKILL'), stopMs);
    await ended;
    clearTimeout(force);
  }

  const url = `http://127.0.0.1:${port}`;
  const headers = { authorization: `Basic ${btoa(`opencode:${password}`)}` };
  try {
    const limit = AbortSignal.timeout(startMs);
    await waitUntilHealthy(url, headers, AbortSignal.any([signal, gone.signal, limit]));
  } catch {
    await stop();
    gone.signal.throwIfAborted();
    signal.throwIfAborted();
    throw new Error(`OpenCode did not answer within ${startMs} ms.${lastLine(written())}`);
  }
  return { url, headers, pid: child.pid as number, gone: gone.signal, stop };
}

function whenEnded(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`));
    // It could not even be started.
    child.once('error', (error) => resolve(error.message));
  });
}

async function waitUntilHealthy(
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(HEALTH_LIMIT_MS)]);
      const response = await fetch(`${url}/global/health`, { headers, signal: limit });
      await response.body?.cancel();
      if (response.ok) return;
    } catch {
      // Not yet.
    }
    await delay(HEALTH_EVERY_MS, undefined, { signal });
  }
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}

function keepEnd(child: ChildProcess): () => string {
  let end = '';
  for (const output of [child.stdout, child.stderr]) {
    output?.setEncoding('utf8').on('data', (text: string) => {
      end = `${end}${text}`.slice(-KEPT_CHARACTERS);
    });
  }
  return () => end;
}

function lastLine(written: string): string {
  const line = written.trimEnd().split('\n').at(-1)?.trim();
  return line ? ` It said: ${line}` : '';
}

/**
 * It must not outlive us, however we end. A shell waits for a pipe of ours to close, which happens
 * even when we are killed; where there is no shell, only an orderly end is noticed.
 */
function endWithUs(child: ChildProcess): () => void {
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const watcher = process.platform === 'win32' || !child.pid ? undefined : watch(child.pid);
  return () => {
    process.off('exit', kill);
    watcher?.kill('SIGKILL');
  };
}

function watch(pid: number): ChildProcess {
  const watcher = spawn('/bin/sh', ['-c', 'read -r _; kill -9 "$1"', 'sh', `${pid}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // A signal from the terminal is for all of its group; this one has to come after us.
    detached: true,
  });
  watcher.on('error', () => {
    // Without a shell there is still the orderly end.
  });
  watcher.unref();
  (watcher.stdin as { unref?(): void } | null)?.unref?.();
  return watcher;
}
