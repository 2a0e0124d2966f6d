import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** In development the routes of the server are answered by Vite itself: one process, one port. */
function serveFlow(): Plugin {
  return {
    name: 'serve-flow',
    async configureServer(vite) {
      // Loaded here and not above, so that a build never touches server code.
      const { createApp } = await import('./server/create-app.ts');
      const { readSettings } = await import('./server/read-settings.ts');
      const { toNodeListener } = await import('sabir/node');
      process.loadEnvFile(fileURLToPath(new URL('./start.env', import.meta.url)));
      const app = createApp(readSettings(process.env));
      const listener = toNodeListener(app.fetch);
      vite.middlewares.use((request, response, next) => {
        const isOurs = /^\/(api\/|healthz$|metrics$)/.test(request.url ?? '');
        if (isOurs) listener(request, response);
        else next();
      });
    },
  };
}

export default defineConfig({
  plugins: [react(), tailwindcss(), serveFlow()],
  resolve: {
    alias: {
      'rehype-raw': fileURLToPath(new URL('./src/substitutes/rehype-raw.ts', import.meta.url)),
      'tailwind-merge': fileURLToPath(
        new URL('./src/substitutes/tailwind-merge.ts', import.meta.url),
      ),
    },
  },
  // No variable of the environment is ever put into the page, whatever it is called.
  envPrefix: 'SABIR_PAGE_NEVER_',
  build: {
    modulePreload: { polyfill: false },
    // One page, one chunk: React, the AI SDK and Markdown are all needed for the first answer.
    chunkSizeWarningLimit: 850,
  },
});
