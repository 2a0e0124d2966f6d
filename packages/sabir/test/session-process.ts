/**
 * A whole session stack in a process of its own, to be killed: `node session-process.ts '{"file":…}'`. Sends its parent
 * its address, and on request how much memory it holds.
 */
import { createChatGateway } from '../src/gateway/index.ts';
import { serve } from '../src/platforms/node/serve.ts';
import {
  createSessionServer,
  sqliteSessionStore,
  startSessionStack,
} from '../src/platforms/node/sessions.ts';
import type { Agent } from '../src/sessions/index.ts';
import { scriptedAgent } from './scripted-agent.ts';

export type SessionProcessOptions = {
  file: string;
  /** 0 for any that is free. */
  port: number;
  retentionMs: number;
  /** Where the agent is: in this process, or in runners that connect. */
  host: 'agent' | 'runner';
};

const options: SessionProcessOptions = JSON.parse(process.argv[2] ?? '{}');
const { file, port, retentionMs, host } = options;
const store = sqliteSessionStore({ file, turns: { retentionMs } });
const timing = { lingerMs: 600_000 };
// One user stands for all.
const limits = { liveTurnsPerUser: Infinity, viewersPerUser: Infinity, bodiesPerUser: Infinity };

function authenticate({ headers }: Request) {
  const id = headers.get('authorization')?.replace('Bearer ', '');
  return id ? { id } : null;
}

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

async function startStack() {
  const { url, sessions } = await startSessionStack({
    port,
    store,
    agent: createAgent,
    authenticate,
    sessions: { timing },
    gateway: { limits },
    shutdownMs: 1_000,
  });
  return { url, sessions };
}

/** The same without an agent. */
async function startForRunners() {
  const admitRunner = ({ headers }: Request) => headers.get('authorization') === 'Bearer runner';
  const access = () => 'owner' as const;
  const sessions = createSessionServer({ store, authenticate, access, admitRunner, timing });
  const gateway = createChatGateway({ sessions: sessions.sessions, authenticate, access, limits });
  const { url } = await serve({ fetch: gateway.fetch, upgrade: sessions.upgrade, port });
  sessions.recover();
  return { url, sessions };
}

const { url, sessions } = await (host === 'agent' ? startStack() : startForRunners());

process.on('message', async () => {
  // One collection makes work for the next.
  for (let pass = 0; pass < 8; pass++) {
    gc?.();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const { heapUsed, rss } = process.memoryUsage();
  process.send?.({ heapUsed, rss, sessions: sessions.sessions.size });
});
process.on('disconnect', () => process.exit());
process.send?.({ url });
