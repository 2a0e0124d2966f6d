/** A gateway in a process of its own, before an upstream or sessions. Each turn says when it said its first word. */
import { setTimeout } from 'node:timers/promises';
import { asUpstream, createChatGateway, memoryTurnLog } from 'sabir/gateway';
import { serve } from 'sabir/node';
import { createSessions, memorySessionStore } from 'sabir/session';
import { sized } from '../report.ts';

type Prompt = { text: string };

async function* answer({ text }: Prompt) {
  // By the clock that all processes of this machine share.
  const delta = `${text} at ${performance.timeOrigin + performance.now()} `;
  yield { type: 'text-delta' as const, delta };
}

const isHosted = process.argv[2] === 'sessions';
const gateway = createChatGateway({
  ...(isHosted
    ? { sessions: createSessions({ store: memorySessionStore(), agent: () => answer }) }
    : { upstream: asUpstream(answer), log: memoryTurnLog({ retentionMs: 500 }) }),
  authenticate: ({ headers }) => ({ id: headers.get('authorization') ?? 'nobody' }),
  access: () => 'owner',
  timing: { lingerMs: 0 },
});
const { port } = await serve({ fetch: gateway.fetch });

/** What is held, its garbage collected, once it falls no more. */
async function settle(): Promise<NodeJS.MemoryUsage> {
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    await setTimeout(sized(200, 20));
    gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    const memory = process.memoryUsage();
    if (memory.heapUsed > before * 0.99) return memory;
    before = memory.heapUsed;
  }
}

process.on('message', async () => void process.send?.(await settle()));
process.on('disconnect', () => process.exit());
process.send?.({ port });
