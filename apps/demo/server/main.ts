import { fileURLToPath } from 'node:url';
import { readSettings, type Settings } from './read-settings.ts';
import { startDemo } from './start-demo.ts';
import { loadStaticFiles } from './static-files.ts';

const { env } = process;
const port = Number(env.PORT ?? 3000);
const host = env.HOST ?? '127.0.0.1';

const files = await loadStaticFiles(fileURLToPath(new URL('../dist', import.meta.url))).catch(() =>
  fail('The page is not built yet. Run `npm run build -w demo` first.'),
);
const settings = readSettings(env);
const demo = await startDemo({ ...settings, files }, { port, host }).catch(
  (error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE') {
      fail(`Port ${port} is already taken. Choose another one, for example PORT=${port + 1}.`);
    }
    if (error.code === 'EACCES') fail(error.message);
    throw error;
  },
);

let isLeaving = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // Not `once`: the Agents SDK ends the process as soon as nobody else listens.
  process.on(signal, async () => {
    // Whoever asks twice is in a hurry.
    if (isLeaving) process.exit(1);
    isLeaving = true;
    await demo.close();
    process.exit(0);
  });
}

const shownHost = host === '127.0.0.1' || host === '0.0.0.0' || host === '::' ? 'localhost' : host;
console.log(`Sabir demo on http://${shownHost}:${demo.port}`);
console.log(`Model: ${settings.model.name}`);
if (settings.hasGateway) console.log(`Sessions: ${toSessionReport(settings)}`);

function toSessionReport({ agent, database }: Settings): string {
  const keeping = database
    ? `kept in ${database}`
    : 'kept in memory (SABIR_DATABASE names a file to keep them in)';
  return [agent.name, keeping].join('; ');
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
