/**
 * The CPU that a chat takes while somebody reads along: 200 deltas a second. Each in a process of
 * its own, so that the garbage of one is not on the bill of another.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { interleaveAsync, median } from '../report.ts';
import type { ChatName } from './chats.ts';

const ROUNDS = 3;
const LABELS: Record<ChatName | 'none', string> = {
  none: 'the reads alone',
  sabir: 'ChatStream',
  ai7: 'Chat 7',
  ai7Throttled: 'Chat 7, 16 ms throttle',
  ai6: 'Chat 6',
};

async function cpuOf(name: string): Promise<number> {
  const file = fileURLToPath(new URL('./paced-chat.ts', import.meta.url));
  const child = fork(file, [name], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const died = once(child, 'exit').then(() => {
    throw new Error(`${name} did not come to its end`);
  });
  died.catch(() => undefined);
  const [{ cpuMs }] = (await Promise.race([once(child, 'message'), died])) as [{ cpuMs: number }];
  return cpuMs;
}

export async function measurePaced() {
  const names = Object.keys(LABELS) as Array<keyof typeof LABELS>;
  const candidates = Object.fromEntries(names.map((name) => [name, () => cpuOf(name)] as const));
  const found = await interleaveAsync(ROUNDS, candidates, 0);
  const figures = Object.fromEntries(
    names.map((name) => [
      `200 deltas/s, 3 s: ${LABELS[name]}`,
      `${median(found[name] ?? []).toFixed(0)} ms of CPU`,
    ]),
  );
  return { figures, bars: [] };
}
