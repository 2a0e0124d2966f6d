/** Session server, runners and gateway in one process, as `sabir serve` has them. */
import { type Agent, memorySessionStore } from 'sabir/session';
import { sqliteSessionStore, startSessionStack } from 'sabir/session/node';

/** `burst-N` as fast as it goes; `paced-N-R`, R a second, each the time it was said. */
const agent: Agent = {
  name: 'bench',
  async *prompt({ text, signal }) {
    const [kind, ...numbers] = text.split('-');
    const [count = 0, perSecond = 1] = numbers.map(Number);
    if (kind === 'burst') {
      for (let i = 0; i < count; i++) yield { type: 'text-delta', delta: 'word ' };
      return;
    }
    const begin = performance.now();
    for (let i = 0; i < count && !signal.aborted; i++) {
      const wait = begin + (i * 1000) / perSecond - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      yield { type: 'text-delta', delta: `${process.hrtime.bigint()} ` };
    }
  },
};

const [file] = process.argv.slice(2);
const { port } = await startSessionStack({
  store: file ? sqliteSessionStore({ file }) : memorySessionStore(),
  agent: () => agent,
  gateway: { limits: { viewerBacklogBytes: Infinity, queueBytes: Infinity } },
  sessions: {
    limits: { clientBufferBytes: Infinity, turnBytes: Infinity, sessionBytes: Infinity },
  },
});
process.on('message', () => {
  gc?.();
  process.send?.(process.memoryUsage());
});
process.on('disconnect', () => process.exit());
process.send?.({ port });
