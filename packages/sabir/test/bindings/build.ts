/** Bundles one framework's page: Svelte's component is compiled, the others are written as functions. */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compile } from 'svelte/compiler';
import { build, type Plugin } from 'vite';

const HERE = dirname(fileURLToPath(import.meta.url));

export const FRAMEWORKS = ['vue', 'svelte', 'solid'] as const;
export type Framework = (typeof FRAMEWORKS)[number];

const svelte: Plugin = {
  name: 'svelte',
  transform: (code, id) =>
    id.endsWith('.svelte') ? compile(code, { filename: id }).js : undefined,
};

/** The script of the page, as text. */
export async function buildBinding(framework: Framework): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: 'error',
    root: HERE,
    plugins: [svelte],
    define: { 'process.env.NODE_ENV': '"production"' },
    resolve: { conditions: ['browser'] },
    build: {
      write: false,
      target: 'esnext',
      rollupOptions: { input: join(HERE, `${framework}.ts`) },
    },
  });
  const [{ output }] = [result].flat() as unknown as [
    { output: Array<{ type: string; code?: string }> },
  ];
  const script = output.find(({ type }) => type === 'chunk')?.code;
  if (!script) throw new Error(`the page of ${framework} has no script`);
  return script;
}
