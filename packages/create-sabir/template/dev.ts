/** Starts the server, again whenever `agent.ts` or `server.ts` changes, and Vite in front of it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createSocketServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { createServer } from 'vite';

/** The server keeps its port when it restarts, and shares none with another project. */
async function findFreePort(): Promise<number> {
  const probe = createSocketServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}

const port = await findFreePort();
const url = `http://127.0.0.1:${port}`;
const server = spawn(process.execPath, ['--watch', '--watch-preserve-output', 'server.ts'], {
  env: { ...process.env, NODE_ENV: 'development', PORT: String(port) },
  stdio: ['ignore', 'inherit', 'inherit'],
});
server.once('exit', (code) => process.exit(code ?? 1));
process.once('exit', () => server.kill());
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit());

// The page requests its history at once, so the server has to be ready before Vite.
const isReady = () =>
  fetch(`${url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  );
while (!(await isReady())) await setTimeout(50);
const page = await createServer({ server: { proxy: { '/api': url } } });
await page.listen();
page.printUrls();
