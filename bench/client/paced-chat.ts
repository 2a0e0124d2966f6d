/** One chat, alone in its process, on an answer at the pace of a reader: `NAME`, or `none`. */
import { sized } from '../report.ts';
import { CHATS, type ChatName, watch } from './chats.ts';
import { textTurn } from './turns.ts';
import { plainFrames, streamOf } from './wire.ts';

const DELTAS = sized(600, 20);
const EVERY_MS = 5;

const name = process.argv[2] ?? 'none';
const kind = name === 'none' ? undefined : CHATS[name as ChatName];

/** By the clock: timers that are late must not slow the pace. */
function paced(): (read: number) => Promise<unknown> {
  const begin = performance.now();
  return (read) =>
    new Promise((resolve) =>
      setTimeout(resolve, Math.max(0, begin + read * EVERY_MS - performance.now())),
    );
}

async function run(deltas: number, pause?: ReturnType<typeof paced>): Promise<void> {
  const chunks = textTurn(deltas);
  if (kind) {
    await watch(kind.asBytes(chunks), pause);
    return;
  }
  const reader = streamOf(plainFrames(chunks), pause).getReader();
  while (!(await reader.read()).done);
}

// Loads it, and lets it warm up as the answers before this one would have.
await run(DELTAS);
const before = process.cpuUsage();
await run(DELTAS, paced());
const { user, system } = process.cpuUsage(before);
process.send?.({ cpuMs: (user + system) / 1000 }, () => process.exit());
