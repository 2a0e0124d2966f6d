/**
 * A whole session stack in a process of its own, to be killed: `node session-process.ts FILE [PORT]`.
 * Says where it is, and on request how much memory it holds.
 */
import { sqliteSessionStore, startSessionStack } from '../src/runtimes/session-node.ts';
import { scriptedDriver } from './scripted-driver.ts';

const [file = ':memory:', port = '0'] = process.argv.slice(2);

const stack = await startSessionStack({
  port: Number(port),
  store: sqliteSessionStore({ file }),
  driver: () => scriptedDriver(),
  authenticate: ({ headers }) => {
    const id = headers.get('authorization')?.replace('Bearer ', '');
    return id ? { id } : null;
  },
  sessions: { timing: { lingerMs: 600_000 } },
  shutdownMs: 1_000,
});

process.on('message', () => {
  gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  process.send?.({ heapUsed, rss, sessions: stack.sessions.sessionCount });
});
process.on('disconnect', () => process.exit());
process.send?.({ url: stack.url });
