/** A Redis of a test's own: on a free port, in a folder of its own, stopped and removed at the end. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
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
  const growth = watchGrowth(join(folder, 'appendonlydir'));

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
    /**
     * A crash of Redis alone loses nothing that it had handed to the kernel. `lostMs` is as if the
     * machine had lost its power, and what was written in that last while had not reached the disk.
     */
    async kill(lostMs = 0): Promise<void> {
      await end('SIGKILL');
      if (lostMs > 0) growth.takeBack(lostMs);
    },
    /** After `kill`: on the same port, with what it had kept. */
    start,
    suspend: () => child?.kill('SIGSTOP'),
    resume: () => child?.kill('SIGCONT'),
    async stop(): Promise<void> {
      growth.stop();
      await end('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** How long the file that it appends to was, and when. */
function watchGrowth(folder: string) {
  let sizes: { at: number; file: string; size: number }[] = [];
  const look = () => {
    const now = Date.now();
    const files = existsSync(folder) ? readdirSync(folder) : [];
    const file = files.filter((name) => name.endsWith('.incr.aof')).at(-1);
    if (!file) return;
    sizes.push({ at: now, file: join(folder, file), size: statSync(join(folder, file)).size });
    sizes = sizes.filter(({ at }) => at > now - 5_000);
  };
  const timer = setInterval(look, 50);
  timer.unref();
  return {
    takeBack(ms: number): void {
      const now = Date.now();
      const before = sizes.findLast(({ at }) => at <= now - ms);
      if (before) truncateSync(before.file, before.size);
      sizes = [];
    },
    stop: () => clearInterval(timer),
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
