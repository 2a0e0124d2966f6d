import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { chooseModel } from './choose-model.ts';
import { createApp } from './create-app.ts';
import { toNodeListener } from './node-listener.ts';
import { loadStaticFiles } from './static-files.ts';

const { env } = process;
const port = Number(env.PORT ?? 3000);
const host = env.HOST ?? '127.0.0.1';
/** How many times faster than life the scripted model plays; the tests are in a hurry. */
const speed = Number(env.SABIR_DEMO_SPEED) || 1;

const files = await loadStaticFiles(fileURLToPath(new URL('../dist', import.meta.url))).catch(() =>
  fail('The page is not built yet. Run `npm run build -w demo` first.'),
);
const model = chooseModel(env, speed);
const server = createServer(toNodeListener(createApp({ model, speed, files })));

server.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EADDRINUSE') {
    fail(`Port ${port} is already taken. Choose another one, for example PORT=${port + 1}.`);
  }
  if (error.code === 'EACCES') fail(`Port ${port} may not be used here. Choose one above 1023.`);
  throw error;
});

server.listen(port, host, () => {
  const address = server.address();
  const actualPort = typeof address === 'object' && address ? address.port : port;
  const shownHost =
    host === '127.0.0.1' || host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  console.log(`Sabir demo on http://${shownHost}:${actualPort}`);
  console.log(`Model: ${model.name}`);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    server.close(() => process.exit(0));
    server.closeIdleConnections();
    // Answers that are still streaming get a moment, not for ever.
    setTimeout(() => server.closeAllConnections(), 2_000).unref();
  });
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
