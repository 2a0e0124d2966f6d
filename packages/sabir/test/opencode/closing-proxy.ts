import { createServer, request } from 'node:http';
import { listen } from './listen.ts';

/**
 * In front of a server, and lets nobody keep a connection for later: `fetch` would, with timers of
 * its own, and a test that counts what an agent holds would count those.
 */
export function startClosingProxy(
  serverUrl: string,
): Promise<{ url: string; close(): Promise<void> }> {
  const { hostname, port } = new URL(serverUrl);
  const server = createServer((incoming, response) => {
    const { method, url: path, headers } = incoming;
    const forwarded = request({ hostname, port, method, path, headers, agent: false }, (answer) => {
      const { 'keep-alive': _, ...kept } = answer.headers;
      response.writeHead(answer.statusCode ?? 502, { ...kept, connection: 'close' });
      answer.pipe(response);
    });
    forwarded.on('error', () => response.destroy());
    response.on('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  return listen(server);
}
