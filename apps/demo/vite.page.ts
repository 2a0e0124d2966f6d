/** What both pages of this folder are built with: the demo's, and that of `sabir serve`. */
import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import type { UserConfig } from 'vite';

const toPath = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export const pageConfig: UserConfig = {
  plugins: [react(), tailwindcss()],
  resolve: {
    alias: {
      'rehype-raw': toPath('./src/substitutes/rehype-raw.ts'),
      'tailwind-merge': toPath('./src/substitutes/tailwind-merge.ts'),
    },
  },
  // No variable of the environment is ever put into the page, whatever it is called.
  envPrefix: 'SABIR_PAGE_NEVER_',
  build: {
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 850,
  },
};
