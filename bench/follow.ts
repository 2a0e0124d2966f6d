/**
 * Clients that follow chats in which nothing happens: what each of them costs the gateway, and how soon all followers of
 * a chat have the first chunk of a turn that begins. The gateway is a process of its own, this is its clients.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type FollowSocket, openFollowers, post } from './follow/followers.ts';
import { closeAll } from './idle/connections.ts';
import { atMost, type Report, sized } from './report.ts';

const FOLLOWERS = sized(1_000, 50);
const CHATS = sized(100, 5);
/** Each chat has so many turns. */
const ROUNDS = sized(5, 1);
/** Turns begin so long after one another. */
const PAUSE_MS = sized(10, 1);

type Memory = { heapUsed: number; rss: number };

async function start(
  kind: 'upstream' | 'sessions',
): Promise<{ child: ChildProcess; port: number }> {
  const script = fileURLToPath(new URL('./follow/server.ts', import.meta.url));
  const child = fork(script, [kind], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { child, port };
}

async function memoryOf(child: ChildProcess): Promise<Memory> {
  const answer = once(child, 'message');
  child.send('memory');
  return (await answer)[0];
}

/** The milliseconds from the prompt of each turn to its first delta, at each follower of its chat. */
async function measureTurns(
  port: number,
  followers: FollowSocket[],
  name: string,
): Promise<number[]> {
  const latencies: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (let chat = 0; chat < CHATS; chat++) {
      const watching = followers.filter((follower) => follower.chat === chat);
      // The agent answers with the time at which it says its first word, by the clock of this machine.
      const prompt = `${name} ${round} ${chat}`;
      const seen = watching.map((follower) => follower.untilWord(prompt));
      await post(port, chat, prompt);
      for (const { saidAt, seenAt } of await Promise.all(seen)) latencies.push(seenAt - saidAt);
      await setTimeout(PAUSE_MS);
    }
  }
  return latencies.sort((a, b) => a - b);
}

async function measure(kind: 'upstream' | 'sessions') {
  const { child, port } = await start(kind);
  try {
    // The first ones have code compiled and caches filled.
    const warm = await openFollowers(port, { count: FOLLOWERS / 5, chats: CHATS });
    await measureTurns(port, warm.slice(0, CHATS), 'warm');
    await closeAll(warm.map(({ socket }) => socket));
    const before = await memoryOf(child);
    const followers = await openFollowers(port, { count: FOLLOWERS, chats: CHATS });
    const idle = await memoryOf(child);
    const latencies = await measureTurns(port, followers, 'full');
    await closeAll(followers.map(({ socket }) => socket));
    const after = await memoryOf(child);
    const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
    const kilobytes = (more: Memory, less: Memory, key: keyof Memory) =>
      (more[key] - less[key]) / FOLLOWERS / 1024;
    return {
      heap: kilobytes(idle, before, 'heapUsed'),
      rss: kilobytes(idle, before, 'rss'),
      left: kilobytes(after, before, 'heapUsed'),
      p50: at(0.5),
      p99: at(0.99),
      most: at(1 - 1 / latencies.length),
      count: latencies.length,
    };
  } finally {
    child.kill();
  }
}

export async function bench(): Promise<Report> {
  const kinds = ['upstream', 'sessions'] as const;
  const measured = [];
  for (const kind of kinds) measured.push({ kind, ...(await measure(kind)) });
  return {
    name: 'follow',
    bars: measured.flatMap(({ kind, heap, p99 }) => [
      atMost(`${kind}: heap of an idle follower, KB`, heap, 30),
      atMost(`${kind}: first chunk at all followers, p99 ms`, p99, 50),
    ]),
    figures: {
      machine: `${cpus().length} cores, ${cpus()[0]?.model}; garbage collected before each figure`,
      followers: `${FOLLOWERS} on ${CHATS} chats, each of its own user`,
      ...Object.fromEntries(
        measured.flatMap(({ kind, heap, rss, left, p50, p99, most, count }) => [
          [
            `${kind}: each idle follower`,
            `heap ${heap.toFixed(1)} KB, resident ${rss.toFixed(1)} KB; ${left.toFixed(1)} KB when it has gone`,
          ],
          [
            `${kind}: first chunk`,
            `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, at most ${most.toFixed(1)} ms (${count})`,
          ],
        ]),
      ),
    },
  };
}
