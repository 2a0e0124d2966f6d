/** The page of `sabir serve`: the session tab by itself, built into the package. */
import { fileURLToPath } from 'node:url';
import { mergeConfig } from 'vite';
import { pageConfig } from './vite.page.ts';

const toPath = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default mergeConfig(pageConfig, {
  root: toPath('./serve-page'),
  publicDir: toPath('./public'),
  build: { outDir: toPath('../../packages/sabir/dist/cli/page'), emptyOutDir: true },
});
