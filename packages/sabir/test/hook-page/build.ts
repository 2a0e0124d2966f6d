/** Bundles the page with React as developers run it, which is the one that warns. */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const HERE = dirname(fileURLToPath(import.meta.url));

/** The script of the page, as text. */
export async function buildHookPage(): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'error',
    mode: 'development',
    root: HERE,
    define: { 'process.env.NODE_ENV': '"development"' },
    build: {
      write: false,
      minify: false,
      target: 'esnext',
      rollupOptions: { input: join(HERE, 'page.tsx') },
    },
  });
  const outputs = Array.isArray(result) ? result : [result];
  for (const { output } of outputs as Array<{ output: Array<{ type: string; code?: string }> }>) {
    for (const { type, code } of output) if (type === 'chunk' && code) return code;
  }
  throw new Error('the page has no script');
}
