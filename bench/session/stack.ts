/** Sessions and gateway in one process, as `sabir serve` has them; and beside them a server that only pipes. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Agent, type AgentPrompt, memorySessionStore } from 'sabir/session';
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
  gateway: {
    // One user stands for all.
    limits: {
      viewerBacklogBytes: Infinity,
      queueBytes: Infinity,
      liveTurnsPerUser: Infinity,
      viewersPerUser: Infinity,
      bodiesPerUser: Infinity,
    },
  },
  sessions: {
    timing: { lingerMs: 600_000 },
    limits: { clientBufferBytes: Infinity, turnBytes: Infinity, sessionBytes: Infinity },
  },
});

/** The same agent with nothing in between: each delta is written to the socket as it comes. */
const pipe = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  const [{ parts }] = JSON.parse(body).messages;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const { signal } = new AbortController();
  const chunks = await agent.prompt({ text: parts[0].text, signal } as AgentPrompt);
  for await (const chunk of chunks) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  response.end('data: [DONE]\n\n');
});
await new Promise<void>((resolve) => pipe.listen(0, '127.0.0.1', resolve));

process.on('message', async () => {
  // One collection makes work for the next.
  for (let pass = 0; pass < 4; pass++) {
    gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  process.send?.(process.memoryUsage());
});
process.on('disconnect', () => process.exit());
process.send?.({ port, pipePort: (pipe.address() as AddressInfo).port });
