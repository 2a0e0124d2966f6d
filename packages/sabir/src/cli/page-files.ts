/** What `sabir serve` gives a browser: its page, or a folder of the user's with the package's own client beside it. */
import { constants, readdirSync, readFileSync, statSync } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { dirname, extname, join, posix, relative, sep } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Suggestion } from './agents.ts';
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
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * A page given with `--page` may have scripts and styles inside its HTML and pictures from anywhere, and is not
 * shown inside other sites. What it says goes to this server alone: it may hold a token.
 */
const FOLDER_POLICY = [
  "default-src 'self'",
  "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob: https:",
  "font-src 'self' data:",
  "object-src 'none'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** Where the built package is, also when this runs from its source. */
const BUILT = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../dist/' : '../', import.meta.url),
);
const OWN_PAGE = join(BUILT, 'cli/page');
const CLIENT = 'clients/index.js';

/** Nothing, for what is not among its files. */
export type PageFiles = (request: Request) => Promise<Response | undefined>;

export function createPageFiles(
  page: ServeOptions['page'],
  suggestions: readonly Suggestion[] = [],
): PageFiles {
  if (page === 'none') return async () => undefined;
  const isOwn = page === 'chat';
  const files = whenBuilt(() => (isOwn ? loadOwnPage(suggestions) : loadClientFiles()));
  const folder = isOwn ? undefined : checkFolder(page.folder);
  const zip = createZip();
  const policy = isOwn ? OWN_POLICY : (page.policy ?? FOLDER_POLICY);

  return async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
    const { pathname } = new URL(request.url);
    const path = pathname.endsWith('/') ? `${pathname}index.html` : pathname;
    const known = files.get(path);
    const isHead = request.method === 'HEAD';
    const gzipped = known && acceptsGzip(request) ? zip(known) : undefined;
    const held = gzipped ?? known;
    const found = held
      ? { body: held, bytes: held.byteLength }
      : folder && (await openInside(folder, path, isHead));
    if (!found) return undefined;
    return new Response(isHead ? null : found.body, {
      headers: {
        'content-type': TYPES[extname(path).toLowerCase()] ?? 'application/octet-stream',
        'content-length': String(found.bytes),
        ...(known && { vary: 'accept-encoding' }),
        ...(gzipped && { 'content-encoding': 'gzip' }),
        // Names under /assets carry a hash of their content.
        'cache-control':
          isOwn && path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
        'x-content-type-options': 'nosniff',
        // A token may be in the address, behind the #, before the page has put it away.
        'referrer-policy': 'no-referrer',
        ...(policy !== 'none' && { 'content-security-policy': policy }),
      },
    });
  };
}

function acceptsGzip({ headers }: Request): boolean {
  return /\bgzip\b/.test(headers.get('accept-encoding') ?? '');
}

/** Compresses each file once, when it is first asked for. */
function createZip() {
  const zipped = new WeakMap<Body, Body>();
  return (plain: Body): Body => {
    const known = zipped.get(plain) ?? new Uint8Array(gzipSync(plain));
    zipped.set(plain, known);
    return known;
  };
}

function loadOwnPage(suggestions: readonly Suggestion[]): Map<string, Body> {
  const entries = readdirSync(OWN_PAGE, { recursive: true, withFileTypes: true });
  const files = new Map<string, Body>();
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    files.set(`/${relative(OWN_PAGE, file).split(sep).join('/')}`, read(file));
  }
  const html = readFileSync(join(OWN_PAGE, 'index.html'), 'utf8');
  files.set('/index.html', new TextEncoder().encode(withSuggestions(html, suggestions)));
  return files;
}

/** The page asks the server for nothing until the person has signed in, so they come with it. */
function withSuggestions(html: string, suggestions: readonly Suggestion[]): string {
  const content = JSON.stringify(suggestions).replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  return html.replace(
    '</head>',
    () => `  <meta name="suggestions" content="${content}" />\n  </head>`,
  );
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
  visit(CLIENT);
  return files;
}

function whenBuilt(load: () => Map<string, Body>): Map<string, Body> {
  try {
    return load();
  } catch (cause) {
    throw new CliError('The page needs the built package. Run: npm run build -w sabir', { cause });
  }
}

function checkFolder(folder: string): string {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return folder;
  throw new CliError(`There is no folder ${folder}. --page wants one with an index.html in it.`);
}

type OpenFile = { body: Body | ReadableStream<Uint8Array> | null; bytes: number };

/** Nothing outside of the folder, wherever links lead, and nothing that is hidden: `.env` is. */
async function openInside(
  folder: string,
  path: string,
  isHead: boolean,
): Promise<OpenFile | undefined> {
  try {
    const names = decodeURIComponent(path).slice(1).split('/');
    if (names.some((name) => name === '' || name.startsWith('.') || /[\\\0]/.test(name))) return;
    const file = await realpath(join(folder, ...names));
    const root = await realpath(folder);
    if (!file.startsWith(root.endsWith(sep) ? root : root + sep)) return;
    // Without O_NONBLOCK, opening a FIFO waits for a writer.
    const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = await handle.stat();
    const isRead = stat.isFile() && stat.size > 0 && !isHead;
    if (!isRead) await handle.close();
    if (!stat.isFile()) return;
    // No more than the `content-length` that was sent.
    const stream = isRead ? Readable.toWeb(handle.createReadStream({ end: stat.size - 1 })) : null;
    return { body: stream as ReadableStream<Uint8Array> | null, bytes: stat.size };
  } catch {
    // Not there, a folder, or an address that cannot be decoded: for whoever asks it is all one.
    return undefined;
  }
}

function read(file: string): Body {
  return new Uint8Array(readFileSync(file));
}
