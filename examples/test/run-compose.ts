/**
 * What a compose file says, run as processes on loopback: each service's command with its
 * environment, under a port of its own, and nginx with the very configuration that it is given. Only
 * names and ports are put in place of the containers'.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { freePort } from '../../packages/sabir/test/redis-server.ts';

type Service = {
  command?: string;
  environment?: Record<string, string | number>;
  volumes?: string[];
};

export type RunningService = {
  port: number;
  child: ChildProcess;
  end(signal: NodeJS.Signals): Promise<void>;
};

const NGINX = ['/usr/sbin/nginx', 'nginx'].find((path) => spawnSync(path, ['-v']).status === 0);
export const hasServers = NGINX !== undefined && spawnSync('redis-server', ['-v']).status === 0;

export async function runCompose(folder: string, variables: Record<string, string>) {
  const { services } = parse(readFileSync(join(folder, 'compose.yaml'), 'utf8'), {
    merge: true,
  }) as { services: Record<string, Service> };
  const state = mkdtempSync(join(tmpdir(), 'sabir-compose-'));
  const ports = new Map<string, number>();
  for (const name of Object.keys(services)) ports.set(name, await freePort());
  const running = new Map<string, RunningService>();

  /** `redis:6379` is where that service is, whichever port it has in its container. */
  function here(text: string): string {
    let placed = text.replace(/\$\{(\w+)[^}]*\}/g, (_, name: string) => variables[name] ?? '');
    for (const [name, port] of ports) {
      placed = placed.replace(new RegExp(`\\b${name}:\\d+`, 'g'), `127.0.0.1:${port}`);
    }
    return placed.replace('/data/', `${state}/`);
  }

  function commandOf(name: string, { command = '', volumes = [] }: Service): string[] {
    const port = ports.get(name) ?? 0;
    if (name === 'redis') return [...command.split(' '), '--port', `${port}`, '--dir', state];
    if (name !== 'nginx') return [process.execPath, ...command.split(' ').slice(1)];
    const [template = ''] = (volumes[0] ?? '').split(':');
    const config = here(readFileSync(join(folder, template), 'utf8')).replace(
      /listen 80;/,
      `listen 127.0.0.1:${port};`,
    );
    mkdirSync(join(state, 'logs'), { recursive: true });
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (kind) => `${kind}_temp_path ${state}/${kind};`,
    );
    const main = `pid ${state}/nginx.pid; error_log stderr warn; events {}\n`;
    const file = join(state, 'nginx.conf');
    writeFileSync(file, `${main}http { access_log off; ${paths.join(' ')}\n${config}}\n`);
    return [NGINX as string, '-p', state, '-c', file, '-g', 'daemon off;'];
  }

  async function start(name: string): Promise<RunningService> {
    const service = services[name] as Service;
    const [program = '', ...args] = commandOf(name, service);
    const environment = Object.entries(service.environment ?? {}).map(([key, value]) => [
      key,
      key === 'PORT' ? `${ports.get(name)}` : here(`${value}`),
    ]);
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...process.env, ...Object.fromEntries(environment), ...variables },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const abandon = () => child.kill(name === 'nginx' ? 'SIGTERM' : 'SIGKILL');
    process.once('exit', abandon);
    child.once('close', () => process.off('exit', abandon));
    const port = ports.get(name) ?? 0;
    const started = {
      port,
      child,
      async end(signal: NodeJS.Signals) {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const closed = once(child, 'close');
        child.kill(signal);
        await closed;
      },
    };
    running.set(name, started);
    await untilOpen(port, child);
    return started;
  }

  // In the order in which each finds what it needs.
  for (const name of Object.keys(services).reverse()) await start(name);
  return {
    names: Object.keys(services),
    start,
    service: (name: string) => running.get(name) as RunningService,
    async stop(): Promise<void> {
      // nginx takes its workers along only if it is asked to end.
      await running.get('nginx')?.end('SIGTERM');
      await Promise.all([...running.values()].map(({ end }) => end('SIGKILL')));
      rmSync(state, { recursive: true, force: true });
    },
  };
}

async function untilOpen(port: number, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}`);
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`nothing listens on ${port}`);
}
