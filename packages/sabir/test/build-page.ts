/** Bundles a page of the tests with Vite. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { build } from 'vite';
import type { ClientName } from './real-clients.ts';

type Alias = { find: string | RegExp; replacement: string };

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

/** Makes `@ai-sdk/react` and `ai` in a page mean this release. */
export function aliasesOf(client: ClientName): Alias[] {
  const react = createRequire(import.meta.url).resolve(PACKAGES[client]);
  // The very `ai` that this `@ai-sdk/react` depends on, not the one that happens to be hoisted.
  const ai = createRequire(react).resolve('ai');
  return [
    { find: /^@ai-sdk\/react$/, replacement: esmOf(react) },
    { find: /^ai$/, replacement: esmOf(ai) },
  ];
}

/** The page's script, as text. */
export async function buildPage(
  input: string,
  {
    alias = [],
    mode = 'production',
  }: { alias?: Alias[]; mode?: 'production' | 'development' } = {},
): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'error',
    mode,
    root: dirname(input),
    define: { 'process.env.NODE_ENV': JSON.stringify(mode) },
    // Vite would go by NODE_ENV, which is `test` here.
    oxc: { jsx: { runtime: 'automatic', development: mode === 'development' } },
    resolve: { alias, dedupe: ['react', 'react-dom'] },
    build: {
      write: false,
      minify: mode === 'production',
      target: 'esnext',
      rollupOptions: { input },
    },
  });
  const outputs = Array.isArray(result) ? result : [result];
  for (const { output } of outputs as Array<{ output: Array<{ type: string; code?: string }> }>) {
    for (const { type, code } of output) if (type === 'chunk' && code) return code;
  }
  throw new Error(`${input} has no script`);
}
