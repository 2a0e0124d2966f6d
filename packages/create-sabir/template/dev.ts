/** Starts the server, anew whenever `agent.ts` or `server.ts` changes, and Vite in front of it. */
import { spawn } from 'node:child_process';
import { createServer } from 'vite';

const SERVER_PORT = 3001;

const server = spawn(process.execPath, ['--watch', 'server.ts'], {
  env: { ...process.env, PORT: String(SERVER_PORT) },
  stdio: ['ignore', 'ignore', 'inherit'],
});
server.once('exit', (code) => process.exit(code ?? 1));
process.once('exit', () => server.kill());
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit());

const page = await createServer({
  server: { proxy: { '/api': `http://127.0.0.1:${SERVER_PORT}` } },
});
await page.listen();
page.printUrls();
