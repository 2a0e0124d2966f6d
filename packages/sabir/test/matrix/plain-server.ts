/**
 * The smallest server that a stock client can chat with, made of `node:http` and nothing of Sabir. It says one answer in two
 * halves, and what a resume gets is up to the test.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FIRST_HALF, WHOLE } from './agent.ts';
import { pageFile } from './page-file.ts';

type SeenRequest = { method: string; url: string; headers: IncomingHttpHeaders };

/** The whole stream again, only what follows the first half, or nothing until the test says so. */
type Resuming = 'replay' | 'tail' | 'hold';

export async function startPlainServer(script: string) {
  const requests: SeenRequest[] = [];
  let resuming: Resuming | undefined;
  /** Prompts that were sent. */
  let sent: string[] = [];
  let live: ServerResponse | undefined;

  const write = (...chunks: object[]) => {
    for (const chunk of chunks) live?.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  const delta = (text: string) => write({ type: 'text-delta', id: 't', delta: text });

  function begin(): void {
    write({ type: 'start', messageId: 'm1' }, { type: 'text-start', id: 't' });
    delta(FIRST_HALF);
  }

  function finish(): void {
    delta(WHOLE.slice(FIRST_HALF.length));
    write({ type: 'text-end', id: 't' }, { type: 'finish' });
    live?.end('data: [DONE]\n\n');
  }

  function open(response: ServerResponse): void {
    live = response;
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'x-vercel-ai-ui-message-stream': 'v1',
    });
  }

  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request;
    const { pathname } = new URL(url, 'http://plain.test');
    const file = pageFile(pathname, script);
    if (file) {
      response.writeHead(200, Object.fromEntries(file.headers));
      response.end(await file.text());
      return;
    }
    requests.push({ method, url, headers });
    if (pathname.endsWith('/messages')) {
      const toMessage = (text: string) => ({
        id: text,
        role: 'user',
        parts: [{ type: 'text', text }],
      });
      response.end(JSON.stringify(sent.map(toMessage)));
    } else if (method === 'POST' && pathname.endsWith('/chat')) {
      sent.push(sent.length === 0 ? 'slow' : 'two');
      // The second waits for the first answer.
      if (sent.length > 1) return;
      open(response);
      begin();
    } else if (resuming === 'replay') {
      open(response);
      begin();
    } else if (resuming === 'hold') {
      live = response;
    } else if (resuming === 'tail') {
      open(response);
      finish();
    } else response.writeHead(204).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    resumeWith(how: Resuming): void {
      resuming = how;
    },
    /** The other half of the answer. */
    finish,
    /** Answers the request that is held with the whole of it. */
    answerHeld(): void {
      if (!live) throw new Error('No request is held.');
      open(live);
      begin();
      finish();
    },
    cut: () => server.closeAllConnections(),
    forget(): void {
      sent = [];
      resuming = undefined;
    },
    async close(): Promise<void> {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
