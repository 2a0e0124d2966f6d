import { fileURLToPath } from 'node:url';
import { mergeConfig, type Plugin } from 'vite';
import { pageConfig } from './vite.page.ts';

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

export default mergeConfig(pageConfig, { plugins: [serveDemo()] });
