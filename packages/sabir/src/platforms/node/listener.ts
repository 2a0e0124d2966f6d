/** The bridge between node:http and web `Request`/`Response`. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ByteSource, takeSource } from '../../core/byte-source.ts';
import { BAD_REQUEST, INTERNAL_ERROR } from '../../core/errors.ts';
import { toSafeLogger } from '../../core/safe-logger.ts';
import type { Logger } from '../../core/translator.ts';
import { PIECE_BYTES, sendSource } from './sink.ts';

/** What is known of a request beside what it says. */
export type RequestInfo = {
  /** The socket's remote address. */
  address?: string;
};

export type Fetch = (request: Request, info: RequestInfo) => Response | Promise<Response>;

export type ListenerOptions = {
  /** A client that takes nothing for this long while bytes wait for it is cut off. Default 60,000. */
  stallMs?: number;
  /**
   * How many requests of one HTTP/1 connection may wait for their answers. A client that sends more is cut off: one
   * packet holds thousands, and each would hold its answer until those before it are read. Browsers and proxies send
   * the next request when they have the answer.
   *
   * @default 8
   */
  maxPipelined?: number;
  /** Default `console`. */
  logger?: Logger;
};

const BAD_METHOD = 'Use a method and headers that fetch() can send.';

/**
 * A function from request to response as a listener for a server of your own. The request's signal
 * aborts when the client leaves before the answer is complete; a slow client slows the body down
 * instead of filling memory.
 *
 * @example
 * createServer(toNodeListener(gateway.fetch)).listen(3000);
 */
export function toNodeListener(fetch: Fetch, options: ListenerOptions = {}): RequestListener {
  const { stallMs = 60_000, maxPipelined = 8 } = options;
  const logger = toSafeLogger(options.logger ?? console);
  // Node's `request.signal` never fires once the request itself has been collected, so a request
  // stays within reach for as long as its response runs.
  const running = new Set<Request>();
  /** How many requests of a connection are not answered yet. */
  const waiting = new WeakMap<Socket, number>();

  function isTooMany({ socket, httpVersionMajor }: IncomingMessage, outgoing: ServerResponse) {
    if (httpVersionMajor > 1) return false;
    const count = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, count);
    outgoing.once('close', () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1));
    return count > maxPipelined;
  }

  /** Gives a body that pushes its bytes, to be sent when nothing holds the request any more. */
  async function answer(
    request: Request,
    outgoing: ServerResponse,
    gone: AbortSignal,
  ): Promise<ByteSource | undefined> {
    const address = outgoing.req.socket.remoteAddress;
    const response = await fetch(request, address === undefined ? {} : { address });
    // What nobody reads would keep the request incomplete, and Node cuts those off in time.
    if (!request.bodyUsed && !request.body?.locked) void request.body?.cancel();
    if (gone.aborted) await response.body?.cancel(gone.reason);
    else {
      setHead(response, outgoing);
      const source = outgoing.req.method === 'HEAD' ? undefined : takeSource(response);
      if (source) return source;
      await send(response, outgoing, gone, stallMs);
    }
    return undefined;
  }

  return async (incoming, outgoing) => {
    if (isTooMany(incoming, outgoing)) {
      incoming.socket.destroy();
      return;
    }
    const leaving = new AbortController();
    const gone = leaving.signal;
    const leave = () => {
      if (!outgoing.writableFinished) leaving.abort(new DOMException('Client left', 'AbortError'));
    };
    outgoing.once('close', leave);
    // Its `close` is heard; an error without a listener would end the process.
    outgoing.on('error', () => undefined);
    let request: Request;
    try {
      request = toRequest(incoming, gone);
    } catch {
      incoming.resume();
      refuse(outgoing, { ...BAD_REQUEST, remedy: BAD_METHOD });
      return;
    }
    running.add(request);
    try {
      const source = await answer(request, outgoing, gone);
      if (!source) return;
      outgoing.off('close', leave);
      sendSource(source, outgoing, stallMs);
    } catch (error) {
      if (gone.aborted) return;
      logger.error('a request failed', { error });
      // Half an answer must not look like a whole one.
      if (outgoing.headersSent) outgoing.destroy();
      else refuse(outgoing, INTERNAL_ERROR);
    } finally {
      running.delete(request);
    }
  };
}

type Problem = { status: number; code: string; userMessage: string; remedy: string };

function refuse(outgoing: ServerResponse, problem: Problem): void {
  const { status, code, userMessage: message, remedy } = problem;
  for (const name of outgoing.getHeaderNames()) outgoing.removeHeader(name);
  outgoing.writeHead(status, { 'content-type': 'application/json' });
  outgoing.end(JSON.stringify({ code, message, remedy }));
}

// A name or an address, and perhaps a port: anything else could say more than where we are.
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** Where the client says that it is; whatever it says, that is an address of ours. */
export function toUrl(incoming: IncomingMessage): URL {
  const { host = '' } = incoming.headers;
  const scheme = 'encrypted' in incoming.socket ? 'https' : 'http';
  const known = HOST.test(host) ? `${scheme}://${host}` : undefined;
  const url = new URL(known && URL.canParse(known) ? known : `${scheme}://localhost`);
  // `//evil` would be read as another host: only the path and query are taken from the client.
  const target = (incoming.url ?? '/').replace(/^https?:\/\/[^/?]*/i, '') || '/';
  const query = target.indexOf('?');
  url.pathname = query < 0 ? target : target.slice(0, query);
  url.search = query < 0 ? '' : target.slice(query);
  return url;
}

function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    // HTTP/2 has its own fields in between, which are no headers.
    if (value === undefined || name.startsWith(':')) continue;
    headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  const { method = 'GET' } = incoming;
  const hasBody =
    method !== 'GET' &&
    method !== 'HEAD' &&
    (incoming.httpVersionMajor > 1 ||
      'transfer-encoding' in incoming.headers ||
      Number(incoming.headers['content-length']) > 0);
  const body = hasBody ? (readBody(incoming) ?? toBody(incoming)) : null;
  return new Request(toUrl(incoming), {
    method,
    headers,
    signal,
    body,
    duplex: 'half',
  } as RequestInit);
}

/** What a body parser in front has taken already: its own result, or nothing. */
function readBody(incoming: IncomingMessage): string | undefined {
  if (!incoming.readableEnded) return undefined;
  const { body } = incoming as { body?: unknown };
  return typeof body === 'string' ? body : (JSON.stringify(body) ?? '');
}

/**
 * Reads as the handler reads. One that has seen enough lets the rest run dry: Node's own bridge
 * would destroy the socket, and the client could not read why it was refused.
 */
function toBody(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  let isOver = false;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        incoming.pause();
        incoming.on('data', (bytes: Uint8Array) => {
          if (isOver) return;
          controller.enqueue(bytes);
          if ((controller.desiredSize ?? 0) <= 0) incoming.pause();
        });
        const end = (error?: Error) => {
          if (isOver) return;
          isOver = true;
          if (incoming.complete) controller.close();
          else controller.error(error ?? new DOMException('Client left', 'AbortError'));
        };
        incoming.once('end', () => end()).once('error', end);
        incoming.once('close', () => end());
      },
      pull() {
        incoming.resume();
      },
      cancel() {
        isOver = true;
        incoming.resume();
      },
    },
    { highWaterMark: 0 },
  );
}

function setHead({ status, headers }: Response, outgoing: ServerResponse): void {
  for (const [name, value] of headers) {
    if (name !== 'set-cookie') outgoing.setHeader(name, value);
  }
  const cookies = headers.getSetCookie();
  if (cookies.length > 0) outgoing.setHeader('set-cookie', cookies);
  outgoing.statusCode = status;
}

async function send(
  response: Response,
  outgoing: ServerResponse,
  gone: AbortSignal,
  stallMs: number,
): Promise<void> {
  const { body } = response;
  if (body && outgoing.req.method !== 'HEAD') await write(body, outgoing, gone, stallMs);
  else await body?.cancel();
  if (gone.aborted || outgoing.destroyed) return;
  outgoing.end();
  if (!outgoing.writableFinished) await moved(outgoing, 'finish', stallMs);
}

async function write(
  body: ReadableStream<Uint8Array>,
  outgoing: ServerResponse,
  gone: AbortSignal,
  stallMs: number,
): Promise<void> {
  const reader = body.getReader();
  // A body that cannot be cancelled any more has ended by itself.
  const cancel = () => void reader.cancel(gone.reason).catch(() => undefined);
  if (gone.aborted) cancel();
  else gone.addEventListener('abort', cancel, { once: true });
  // Headers travel with the first bytes, or alone if there are none yet.
  const alone = setImmediate(() => outgoing.flushHeaders());
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      clearImmediate(alone);
      for (let at = 0; at < next.value.length; at += PIECE_BYTES) {
        const isWhole = next.value.length <= PIECE_BYTES;
        const piece = isWhole ? next.value : next.value.subarray(at, at + PIECE_BYTES);
        if (gone.aborted || outgoing.destroyed) return;
        if (!outgoing.write(piece)) await moved(outgoing, 'drain', stallMs);
      }
    }
  } finally {
    clearImmediate(alone);
  }
}

/** Waits for the client to take what is there, or to be gone; one that takes nothing is let go. */
function moved(outgoing: ServerResponse, event: 'drain' | 'finish', stallMs: number) {
  return new Promise<void>((resolve) => {
    if (outgoing.destroyed) return resolve();
    const timer = stallMs < Infinity && setTimeout(() => outgoing.destroy(), stallMs);
    const go = () => {
      if (timer) clearTimeout(timer);
      outgoing.off(event, go).off('close', go);
      resolve();
    };
    outgoing.on(event, go).on('close', go);
  });
}
