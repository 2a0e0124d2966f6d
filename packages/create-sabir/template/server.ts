import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { sqliteSessionStore, startSessionStack } from 'sabir/session/node';
import { agent } from './agent.ts';

const MIME: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** A file of the page that `npm run build` has made; undefined for the paths of the server itself. */
async function showPage({ url }: Request): Promise<Response | undefined> {
  const path = normalize(new URL(url).pathname);
  const bytes = await readFile(join('dist', path === '/' ? 'index.html' : path)).catch(
    () => undefined,
  );
  const type = MIME[extname(path)] ?? MIME['.html'];
  return bytes && new Response(bytes, { headers: { 'content-type': type } });
}

/** The error of an agent is for the developer: the page shows only this text. */
function reportError(error: unknown): string {
  console.error('The agent failed:', error);
  return 'The agent failed. The terminal of the server shows the error.';
}

const server = await startSessionStack({
  port: Number(process.env.PORT ?? 3000),
  store: sqliteSessionStore({ file: 'chats.db' }),
  agent: () => agent,
  fetch: showPage,
  logger: { warn: console.warn, error: console.error },
  gateway: { errorText: reportError },
});
// In development the page is on Vite's address.
if (process.env.NODE_ENV !== 'development') {
  console.log(`Listening on http://localhost:${server.port}`);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => server.close().then(() => process.exit(0)));
}
