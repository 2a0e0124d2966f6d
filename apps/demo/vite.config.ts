import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** In development the server runs in the same process, and Vite passes on what is for it. */
function serveDemo(): Plugin {
  let demo: { url: string; close(): Promise<void> };
  return {
    name: 'serve-demo',
    apply: (_, { command, isPreview }) => command === 'serve' && !isPreview,
    async config() {
      // Loaded here and not above, so that a build never touches server code.
      const { readSettings } = await import('./server/read-settings.ts');
      const { startDemo } = await import('./server/start-demo.ts');
      process.loadEnvFile(fileURLToPath(new URL('./start.env', import.meta.url)));
      demo = await startDemo(readSettings(process.env), { port: 0, host: '127.0.0.1' });
      const isOurs = '^/(api/|healthz$|metrics$)';
      return { server: { proxy: { [isOurs]: { target: demo.url, ws: true } } } };
    },
    configureServer: ({ httpServer }) => void httpServer?.once('close', () => void demo.close()),
  };
}

export default defineConfig({
  plugins: [react(), tailwindcss(), serveDemo()],
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
