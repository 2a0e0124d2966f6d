/** The bridge between node:http and web `Request`/`Response`. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';

export type Fetch = (request: Request) => Promise<Response>;

/**
 * The request's signal aborts when the client goes away before the answer is complete; a slow
 * client slows the body down instead of filling memory.
 */
export function toNodeListener(fetch: Fetch): RequestListener {
  return async (incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) gone.abort(new DOMException('Client left', 'AbortError'));
    });
    try {
      await send(await fetch(toRequest(incoming, gone.signal)), outgoing, gone.signal);
    } catch (error) {
      if (gone.signal.aborted) return;
      console.error('Request failed:', error);
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(500).end();
    }
  };
}

function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  // `//evil` would be read as another host: only the path and query are taken from the client.
  const url = new URL('http://localhost');
  const [path = '/', query = ''] = (incoming.url ?? '/').split('?', 2);
  url.pathname = path;
  url.search = query;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  const method = incoming.method ?? 'GET';
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const body = hasBody ? (Readable.toWeb(incoming) as ReadableStream<Uint8Array>) : null;
  return new Request(url, { method, headers, signal, body, duplex: 'half' } as RequestInit);
}

async function send(response: Response, outgoing: ServerResponse, signal: AbortSignal) {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (!response.body) {
    outgoing.end();
    return;
  }
  outgoing.flushHeaders();
  const reader = response.body.getReader();
  // A body that cannot be cancelled any more has ended by itself.
  signal.addEventListener('abort', () => void reader.cancel(signal.reason).catch(() => undefined));
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    if (signal.aborted) return;
    if (!outgoing.write(next.value)) await drained(outgoing);
  }
  outgoing.end();
}

function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      outgoing.off('drain', go).off('close', go);
      resolve();
    };
    outgoing.on('drain', go).on('close', go);
  });
}
