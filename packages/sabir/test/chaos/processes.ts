/** The agent's process and the gateways': started, killed, suspended and started again. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Chunk } from '../../src/core/chunks.ts';
import type { GatewayReport, LogReport, LogRequest, SourceReport } from './child.ts';
import type { GatewayProcessOptions } from './gateway-process.ts';

const START_MS = 30_000;
const READ_MS = 5_000;

const SOURCE = fileURLToPath(new URL('./source-process.ts', import.meta.url));
const GATEWAY = fileURLToPath(new URL('./gateway-process.ts', import.meta.url));

async function start<Report extends { type: string }>(
  file: string,
  options: object,
  onReport: (report: Report) => void,
  children?: Set<ChildProcess>,
): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(file, [JSON.stringify(options)], {
    // It is killed without a word; what it says is told over the channel.
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    execArgv: [],
    serialization: 'advanced',
  });
  // Many turns may ask for its log at once.
  child.setMaxListeners(200);
  children?.add(child);
  child.once('exit', () => children?.delete(child));
  const ready = Promise.withResolvers<number>();
  const timer = setTimeout(() => ready.reject(new Error(`${file} did not start`)), START_MS);
  child.once('exit', () => ready.reject(new Error(`${file} ended before it was ready`)));
  child.on('message', (report: Report) => {
    if (report.type === 'ready') ready.resolve((report as unknown as { port: number }).port);
    else onReport(report);
  });
  try {
    return { child, port: await ready.promise };
  } finally {
    clearTimeout(timer);
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

/** What a child's log has of a turn. Rejects when the child does not answer, as one that is killed. */
async function readLogOf(child: ChildProcess, turnId: string): Promise<Chunk[] | undefined> {
  const answer = Promise.withResolvers<Chunk[] | undefined>();
  const fail = () => answer.reject(new Error('A process could not answer for its log.'));
  const onMessage = (report: LogReport) => {
    if (report.turnId !== turnId) return;
    if (report.type === 'chunks') answer.resolve(report.chunks);
    else if (report.type === 'no-chunks') fail();
  };
  const timer = setTimeout(fail, READ_MS);
  child.on('message', onMessage);
  try {
    child.send({ type: 'read-log', turnId } satisfies LogRequest, (error) => error && fail());
    return await answer.promise;
  } finally {
    clearTimeout(timer);
    child.off('message', onMessage);
  }
}

export async function startSource(onReport: (report: SourceReport) => void) {
  const { child, port } = await start(SOURCE, {}, onReport);
  return {
    port,
    stop: () => kill(child),
    readLog: (turnId: string) => readLogOf(child, turnId),
  };
}

export type Gateways = Awaited<ReturnType<typeof startGateways>>;

type Gateway = { port: number; child: ChildProcess; state: 'up' | 'suspended' | 'down' };

/**
 * @param optionsOf Of one gateway, by its number.
 * @param onReport What it tells, and which it was.
 */
export async function startGateways(
  count: number,
  optionsOf: (index: number) => Omit<GatewayProcessOptions, 'port'>,
  onReport: (report: GatewayReport, index: number) => void,
) {
  /** Also those that are not ready yet. */
  const children = new Set<ChildProcess>();
  const run = (index: number, port: number) => {
    const options = { ...optionsOf(index), port };
    const report = (said: GatewayReport) => onReport(said, index);
    return start<GatewayReport>(GATEWAY, options, report, children);
  };
  const gateways = await Promise.all(
    Array.from({ length: count }, async (_, index): Promise<Gateway> => {
      return { ...(await run(index, 0)), state: 'up' };
    }),
  );
  let isStopped = false;
  const at = (index: number) => gateways[index] as Gateway;

  return {
    count,
    portOf: (index: number) => at(index).port,
    stateOf: (index: number) => at(index).state,
    get healthy(): number[] {
      return gateways.flatMap(({ state }, index) => (state === 'up' ? [index] : []));
    },
    readLog: (index: number, turnId: string) => readLogOf(at(index).child, turnId),
    async kill(index: number): Promise<void> {
      const gateway = at(index);
      gateway.state = 'down';
      await kill(gateway.child);
    },
    /** After `kill`: on the same port. */
    async restart(index: number): Promise<void> {
      if (isStopped) return;
      const gateway = at(index);
      const { child } = await run(index, gateway.port);
      gateway.child = child;
      gateway.state = 'up';
    },
    suspend(index: number): void {
      at(index).state = 'suspended';
      at(index).child.kill('SIGSTOP');
    },
    resume(index: number): void {
      at(index).child.kill('SIGCONT');
      if (at(index).state === 'suspended') at(index).state = 'up';
    },
    async stop(): Promise<void> {
      isStopped = true;
      await Promise.all([...children].map(kill));
    },
  };
}
