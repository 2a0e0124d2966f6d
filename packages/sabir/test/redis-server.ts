/** A Redis of a test's own: on a free port, in a folder of its own, stopped and removed at the end. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type RedisServerOptions = {
  /** When what was written is on the disk: `always` before it is acknowledged. Default: never. */
  appendfsync?: 'always' | 'everysec' | 'no';
  isCluster?: boolean;
  /** More of its configuration, as on its command line. */
  settings?: string[];
};

export type RedisServer = Awaited<ReturnType<typeof startRedis>>;

export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function startRedis(options: RedisServerOptions = {}) {
  const { appendfsync, isCluster = false, settings = [] } = options;
  const folder = mkdtempSync(join(tmpdir(), 'sabir-redis-'));
  const port = await freePort();
  const args = [
    ...['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', ''],
    ...(appendfsync ? ['--appendonly', 'yes', '--appendfsync', appendfsync] : []),
    ...(isCluster ? ['--cluster-enabled', 'yes'] : []),
    ...settings,
  ];
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    mkdirSync(folder, { recursive: true });
    const started = spawn('redis-server', args, { stdio: 'ignore' });
    child = started;
    for (let attempt = 0; attempt < 500; attempt++) {
      if (started.exitCode !== null) throw new Error('redis-server ended at once');
      if (await isReady(port)) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error('redis-server did not start');
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = child;
    child = undefined;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    const ended = new Promise((resolve) => ending.once('exit', resolve));
    ending.kill(signal);
    // One that was suspended is not.
    ending.kill('SIGCONT');
    await ended;
  }

  await start();
  return {
    port,
    folder,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return child?.pid;
    },
    /** As if its machine had failed, but for what the kernel has not written yet. */
    kill: () => end('SIGKILL'),
    /** After `kill`: on the same port, with what it had kept. */
    start,
    suspend: () => child?.kill('SIGSTOP'),
    resume: () => child?.kill('SIGCONT'),
    async stop(): Promise<void> {
      await end('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** It answers, and has read what it had kept. */
function isReady(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const settle = (isUp: boolean) => {
      socket.destroy();
      resolve(isUp);
    };
    socket.setTimeout(1_000, () => settle(false));
    socket.once('error', () => settle(false));
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (data) => settle(data.toString().startsWith('+PONG')));
  });
}
