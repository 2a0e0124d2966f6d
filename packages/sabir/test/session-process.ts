/**
 * A whole session stack in a process of its own, to be killed: `node session-process.ts FILE [PORT]`.
 * Says where it is, and on request how much memory it holds.
 */
import { memoryTurnLog } from '../src/gateway/index.ts';
import { sqliteSessionStore, startSessionStack } from '../src/platforms/node/sessions.ts';
import type { Agent } from '../src/sessions/index.ts';
import { scriptedAgent } from './scripted-agent.ts';

const [file = ':memory:', port = '0'] = process.argv.slice(2);

/** One that does not remember what it was asked: that would pass for a leak. */
function createAgent(): Agent {
  const agent = scriptedAgent();
  return {
    ...agent,
    prompt(prompt) {
      agent.prompts.length = 0;
      return agent.prompt(prompt);
    },
  };
}

const stack = await startSessionStack({
  port: Number(port),
  store: sqliteSessionStore({ file }),
  agent: createAgent,
  authenticate: ({ headers }) => {
    const id = headers.get('authorization')?.replace('Bearer ', '');
    return id ? { id } : null;
  },
  sessions: { timing: { lingerMs: 600_000 } },
  gateway: {
    // What is kept of ended turns for those who come back would pass for a leak.
    log: memoryTurnLog({ retentionMs: 0 }),
    // One user stands for all.
    limits: { liveTurnsPerUser: Infinity, viewersPerUser: Infinity, bodiesPerUser: Infinity },
  },
  shutdownMs: 1_000,
});

process.on('message', async () => {
  // One collection makes work for the next.
  for (let pass = 0; pass < 8; pass++) {
    gc?.();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const { heapUsed, rss } = process.memoryUsage();
  process.send?.({ heapUsed, rss, sessions: stack.sessions.sessionCount });
});
process.on('disconnect', () => process.exit());
process.send?.({ url: stack.url });
