/** What `sabir serve` gives a browser: a page, and the package's own client for it. */
import { readFileSync, statSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { dirname, extname, join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CliError } from './cli-error.ts';
import type { ServeOptions } from './serve-flags.ts';

type Body = Uint8Array<ArrayBuffer>;

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm',
};

/** Our own page runs only what comes from here, and speaks to nobody else. */
const OWN_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  'img-src data:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const OWN_PAGE = fileURLToPath(new URL('./page/', import.meta.url));
const OWN_FILES = ['index.html', 'chat.js', 'parts.js', 'chat.css'];
/** Where the built package is, also when this runs from its source. */
const BUILT = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../dist/' : '../', import.meta.url),
);
const CLIENT = 'client/index.js';

/** Nothing, for what is not among its files. */
export type PageFiles = (request: Request) => Promise<Response | undefined>;

export function createPageFiles(page: ServeOptions['page']): PageFiles {
  if (page === 'none') return async () => undefined;
  const client = loadClientFiles();
  const files = page === 'chat' ? loadOwnPage() : new Map<string, Body>();
  const folder = typeof page === 'object' ? checkFolder(page.folder) : undefined;

  return async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
    const { pathname } = new URL(request.url);
    const path = pathname.endsWith('/') ? `${pathname}index.html` : pathname;
    const known = files.get(path) ?? client.get(path);
    const found = known ?? (folder && (await readInside(folder, path)));
    if (!found) return undefined;
    const isOwn = page === 'chat' && path.endsWith('.html');
    return new Response(request.method === 'HEAD' ? null : found, {
      headers: {
        'content-type': TYPES[extname(path).toLowerCase()] ?? 'application/octet-stream',
        'content-length': String(found.byteLength),
        'cache-control': 'no-cache',
        'x-content-type-options': 'nosniff',
        // A token may be in the address, behind the #, before the page has put it away.
        'referrer-policy': 'no-referrer',
        ...(isOwn && { 'content-security-policy': OWN_POLICY }),
      },
    });
  };
}

function loadOwnPage(): Map<string, Body> {
  return new Map(OWN_FILES.map((name) => [`/${name}`, read(join(OWN_PAGE, name))]));
}

/** `sabir/client` and what it imports, and not one file more. */
function loadClientFiles(): Map<string, Body> {
  const files = new Map<string, Body>();
  const visit = (path: string) => {
    if (files.has(`/sabir/${path}`)) return;
    const bytes = read(join(BUILT, path));
    files.set(`/sabir/${path}`, bytes);
    const text = new TextDecoder().decode(bytes);
    for (const [, specifier = ''] of text.matchAll(/^(?:import|export)\b[^;]*?"(\.[^"]+)";?$/gm)) {
      visit(posix.join(dirname(path), specifier));
    }
  };
  try {
    visit(CLIENT);
  } catch (cause) {
    throw new CliError('The page needs the built package. Run: npm run build -w sabir', { cause });
  }
  return files;
}

function checkFolder(folder: string): string {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return folder;
  throw new CliError(`There is no folder ${folder}. --page wants one with an index.html in it.`);
}

/** Nothing outside of the folder, wherever links lead, and nothing that is hidden: `.env` is. */
async function readInside(folder: string, path: string): Promise<Body | undefined> {
  try {
    const names = decodeURIComponent(path).slice(1).split('/');
    if (names.some((name) => name === '' || name.startsWith('.') || /[\\\0]/.test(name))) return;
    const file = await realpath(join(folder, ...names));
    const root = await realpath(folder);
    if (!file.startsWith(root.endsWith(sep) ? root : root + sep)) return;
    return new Uint8Array(await readFile(file));
  } catch {
    // Not there, a folder, or an address that cannot be decoded: for whoever asks it is all one.
    return undefined;
  }
}

function read(file: string): Body {
  return new Uint8Array(readFileSync(file));
}
