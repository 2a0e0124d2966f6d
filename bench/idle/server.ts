/** A gateway in a process of its own. Each turn says one word and then nothing, until it gets the message `end`. */
import { setTimeout } from 'node:timers/promises';
import { asUpstream, createChatGateway, memoryTurnLog } from 'sabir/gateway';
import { serve } from 'sabir/node';
import { sized } from '../report.ts';

let ending = Promise.withResolvers<void>();

const gateway = createChatGateway({
  upstream: asUpstream(async function* () {
    yield { type: 'text-start', id: '1' };
    yield { type: 'text-delta', id: '1', delta: 'word' };
    await ending.promise;
  }),
  authenticate: ({ headers }) => ({ id: headers.get('authorization') ?? 'nobody' }),
  access: () => 'owner',
  // What is kept on purpose after a turn is over would hide what is kept by mistake.
  timing: { lingerMs: 0 },
  log: memoryTurnLog({ retentionMs: 0 }),
});
const { port } = await serve({ fetch: gateway.fetch });

/** What is held, its garbage collected, once it falls no more: many that leave at once take a while. */
async function settle(): Promise<NodeJS.MemoryUsage> {
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    await setTimeout(sized(200, 20));
    // Also gives the pages that are free now back to the system.
    gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    const memory = process.memoryUsage();
    if (memory.heapUsed > before * 0.99) return memory;
    before = memory.heapUsed;
  }
}

process.on('message', async (message) => {
  if (message === 'end') {
    ending.resolve();
    ending = Promise.withResolvers<void>();
  }
  process.send?.(await settle());
});
process.on('disconnect', () => process.exit());
process.send?.({ port });
