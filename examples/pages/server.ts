/**
 * Two pages, one of plain HTML on `ChatStream` and one with Vue, and the server that answers them on
 * the contract's wire. Nothing is bundled: browsers read the package's modules as they are.
 *
 *     node pages/server.ts
 */
import { readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { asUpstream, createChatGateway } from 'sabir/gateway';
import { serve } from 'sabir/node';

const gateway = createChatGateway({
  upstream: asUpstream(async function* ({ text, signal }) {
    yield { type: 'text-start', id: '1' };
    for (const word of `You wrote “${text}”.`.split(/(?<= )/)) {
      yield { type: 'text-delta', id: '1', delta: word };
      await setTimeout(50, undefined, { signal });
    }
  }),
  authenticate: () => ({ id: 'anybody' }),
  access: () => 'owner',
});

const MIME: Record<string, string> = { html: 'text/html', js: 'text/javascript' };
const package_ = new URL('../', import.meta.resolve('sabir/client'));
const vue = new URL(
  './vue.esm-browser.prod.js',
  import.meta.resolve('vue/dist/vue.esm-browser.js'),
);

/** Which file a path means; nothing that is not meant to be seen. */
function fileOf(path: string): URL | undefined {
  if (path === '/vue.js') return vue;
  const [, page, file = 'index.html'] = /^\/(plain|vue)\/(index\.html|chat\.js)?$/.exec(path) ?? [];
  if (page) return new URL(`./${page}/${file}`, import.meta.url);
  const [, module] = /^\/sabir\/((?:[\w-]+\/)*[\w-]+\.js)$/.exec(path) ?? [];
  return module ? new URL(module, package_) : undefined;
}

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname.startsWith('/api/')) return gateway.fetch(request);
  if (pathname === '/') return Response.redirect(new URL('/plain/', request.url));
  const file = fileOf(pathname);
  const bytes = file && (await readFile(fileURLToPath(file)).catch(() => undefined));
  if (!bytes) return new Response('Not here.', { status: 404 });
  const type = MIME[file.pathname.split('.').at(-1) ?? ''] ?? 'text/plain';
  return new Response(bytes, { headers: { 'content-type': `${type}; charset=utf-8` } });
}

const server = await serve({ fetch: answer, port: Number(process.env.PORT ?? 3004) });
console.log(`Listening on http://localhost:${server.port}/plain/ and /vue/`);
