import { fileURLToPath } from 'node:url';
import { serve } from 'sabir/node';
import { createApp } from './create-app.ts';
import { readSettings } from './read-settings.ts';
import { loadStaticFiles } from './static-files.ts';

const { env } = process;
const port = Number(env.PORT ?? 3000);
const host = env.HOST ?? '127.0.0.1';

const files = await loadStaticFiles(fileURLToPath(new URL('../dist', import.meta.url))).catch(() =>
  fail('The page is not built yet. Run `npm run build -w demo` first.'),
);
const settings = readSettings(env);
const app = createApp({ ...settings, files });
const server = await serve({
  fetch: app.fetch,
  port,
  host,
  // Answers that are still streaming get a moment, not for ever.
  shutdownMs: 2_000,
}).catch((error: NodeJS.ErrnoException) => {
  if (error.code === 'EADDRINUSE') {
    fail(`Port ${port} is already taken. Choose another one, for example PORT=${port + 1}.`);
  }
  if (error.code === 'EACCES') fail(error.message);
  throw error;
});

let isLeaving = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // Not `once`: the Agents SDK ends the process as soon as nobody else listens.
  process.on(signal, async () => {
    // Whoever asks twice is in a hurry.
    if (isLeaving) process.exit(1);
    isLeaving = true;
    await app.close();
    await server.close();
    process.exit(0);
  });
}

const shownHost = host === '127.0.0.1' || host === '0.0.0.0' || host === '::' ? 'localhost' : host;
console.log(`Sabir demo on http://${shownHost}:${server.port}`);
console.log(`Model: ${settings.model.name}`);

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
