import { describeChatServer } from './test/chat-server-suite.ts';
import { startServer } from './test/start-server.ts';

describeChatServer('hono', () => startServer('hono/server.ts'));
