import { createRequire } from 'node:module';
import { describeChatServer } from './test/chat-server-suite.ts';
import { runToEnd, startServer } from './test/start-server.ts';

const NEXT = createRequire(import.meta.url).resolve('next/dist/bin/next');

describeChatServer('next', async () => {
  await runToEnd(NEXT, 'build', 'next');
  return startServer(NEXT, 'start', 'next');
});
