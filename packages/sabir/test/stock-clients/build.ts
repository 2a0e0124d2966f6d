/** Bundles the page with one release of the AI SDK. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import type { ClientName } from '../real-clients.ts';

const HERE = dirname(fileURLToPath(import.meta.url));
const PACKAGES: Record<ClientName, string> = {
  'ai@5': 'ai-sdk-react-v5',
  'ai@6.0.9': 'ai-sdk-react-v6-0-9',
  'ai@6': 'ai-sdk-react-v6',
  'ai@7': 'ai-sdk-react-v7',
};

/** Up to 6 the packages have both kinds of module; `require` finds the other one. */
function esmOf(file: string): string {
  const esm = file.replace(/\.js$/, '.mjs');
  return existsSync(esm) ? esm : file;
}

/** The script of the page, as text. */
export async function buildStockPage(client: ClientName): Promise<string> {
  const here = createRequire(import.meta.url);
  const react = here.resolve(PACKAGES[client]);
  // The very `ai` that this `@ai-sdk/react` depends on, not the one that happens to be hoisted.
  const ai = createRequire(react).resolve('ai');
  const result = await build({
    configFile: false,
    logLevel: 'error',
    root: HERE,
    define: { 'process.env.NODE_ENV': '"production"' },
    resolve: {
      alias: [
        { find: /^@ai-sdk\/react$/, replacement: esmOf(react) },
        { find: /^ai$/, replacement: esmOf(ai) },
      ],
      dedupe: ['react', 'react-dom'],
    },
    build: {
      write: false,
      target: 'esnext',
      rollupOptions: { input: join(HERE, 'page.ts') },
    },
  });
  const outputs = Array.isArray(result) ? result : [result];
  for (const { output } of outputs as Array<{ output: Array<{ type: string; code?: string }> }>) {
    for (const { type, code } of output) if (type === 'chunk' && code) return code;
  }
  throw new Error(`the page of ${client} has no script`);
}
