/** A session stack in a process of its own, started and killed by a test. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { SessionProcessOptions } from './session-process.ts';

const PROCESS = fileURLToPath(new URL('./session-process.ts', import.meta.url));

export type SessionChild = {
  url: string;
  child: ChildProcess;
  memory(): Promise<{ heapUsed: number; rss: number; sessions: number }>;
  /** With SIGKILL. */
  kill(): Promise<void>;
};

export async function startSessionChild(
  file: string,
  given: Partial<SessionProcessOptions> = {},
): Promise<SessionChild> {
  const options: SessionProcessOptions = {
    ...{ file, port: 0, retentionMs: 60_000, host: 'agent' },
    ...given,
  };
  const child = fork(PROCESS, [JSON.stringify(options)], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [{ url }] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => {
      throw new Error('The session stack ended before it was ready.');
    }),
  ])) as [{ url: string }];
  return {
    url,
    child,
    async memory() {
      const answer = once(child, 'message');
      child.send('memory');
      const [report] = await answer;
      return report;
    },
    async kill() {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/** The same numbers again for the same seed. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
