/**
 * Serves the built page. The list of files is made once, when the server starts, and a request
 * can only name what is on it: there is no path to traverse.
 */
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { gzipSync } from 'node:zlib';

export type StaticFiles = {
  respond(pathname: string, acceptEncoding?: string): Response | undefined;
};

type Bytes = Uint8Array<ArrayBuffer>;
type StaticFile = { plain: Bytes; gzipped: Bytes; headers: Record<string, string> };

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};

const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export async function loadStaticFiles(directory: string): Promise<StaticFiles> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = new Map<string, StaticFile>();
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const pathname = `/${relative(directory, file).split(sep).join('/')}`;
    const plain = new Uint8Array(await readFile(file));
    files.set(pathname, {
      plain,
      gzipped: new Uint8Array(gzipSync(plain)),
      headers: toHeaders(pathname),
    });
  }
  return {
    respond(pathname, acceptEncoding = '') {
      const file = files.get(pathname === '/' ? '/index.html' : pathname);
      if (!file) return;
      const { plain, gzipped, headers } = file;
      if (gzipped.length >= plain.length || !/\bgzip\b/.test(acceptEncoding)) {
        return new Response(plain, { headers });
      }
      return new Response(gzipped, { headers: { ...headers, 'content-encoding': 'gzip' } });
    },
  };
}

function toHeaders(pathname: string): Record<string, string> {
  const type = TYPES[extname(pathname)] ?? 'application/octet-stream';
  return {
    'content-type': type,
    vary: 'accept-encoding',
    // Names under /assets carry a hash of their content.
    'cache-control': pathname.startsWith('/assets/')
      ? 'public, max-age=31536000, immutable'
      : 'no-cache',
    ...(type.startsWith('text/html') ? { 'content-security-policy': PAGE_POLICY } : {}),
  };
}
