/** Listening on Node: `serve` a gateway, or any other function from request to response. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { toSafeLogger } from '../../core/safe-logger.ts';
import { type Fetch, type ListenerOptions, toNodeListener } from './listener.ts';

export { toUpgradeListener, type UpgradeListenerOptions } from './chat-upgrade.ts';
export {
  type Fetch,
  type ListenerOptions,
  type RequestInfo,
  toNodeListener,
} from './listener.ts';
export { watchProcess } from './process-metrics.ts';

export type ServeOptions = ListenerOptions & {
  fetch: Fetch;
  /** Default 0: any that is free. */
  port?: number;
  /** Default 127.0.0.1: this machine only. `0.0.0.0` or `::` for everybody. */
  host?: string;
  /**
   * Takes connections that want to become WebSockets. Requests for another protocol (`curl --http2` asks
   * for h2c) are answered by `fetch`, without the change; before Node 22.21 and 24.9 they come here too.
   */
  upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Closes the server when it aborts. */
  signal?: AbortSignal;
  /** How long `close` lets running answers go on. Default 5,000. */
  shutdownMs?: number;
  /** Default 16 KB. */
  maxHeaderBytes?: number;
};

export type RunningServer = {
  url: string;
  port: number;
  /** Stops listening, lets running answers end, and resolves when every connection is closed. */
  close(): Promise<void>;
};

/** How long after its request a client may end its side and still be answered. */
const HALF_CLOSE_MS = 100;
/** Such a client is cut off when nothing is sent to it for so long. Streams of a gateway send more often. */
const HALF_CLOSED_QUIET_MS = 60_000;

/**
 * Listens. Rejects with a message that says what to do when it cannot.
 *
 * Node's own limits stay on for requests: a minute for headers, five for a whole body. An answer
 * may take as long as it takes.
 *
 * @example
 * const { url, close } = await serve({ fetch: gateway.fetch, port: 3000 });
 */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  const { fetch, port = 0, host = '127.0.0.1', signal, shutdownMs = 5_000 } = options;
  const logger = toSafeLogger(options.logger ?? console);
  signal?.throwIfAborted();
  const server = createServer(
    {
      // A delta must not wait for the one before it to be acknowledged.
      noDelay: true,
      // A client that vanished without a word is noticed even while nothing is sent.
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      ...(options.upgrade && { shouldUpgradeCallback: isForWebSocket }),
      ...(options.maxHeaderBytes !== undefined && { maxHeaderSize: options.maxHeaderBytes }),
    },
    toNodeListener(fetch, options),
  );
  answerHalfClosed(server);
  if (options.upgrade) server.on('upgrade', options.upgrade);
  const connections = trackConnections(server);
  const actualPort = await listen(server, port, host);
  // Without a listener, a connection that could not be accepted would end the process.
  server.on('error', (error) => logger.error('the server failed', { error }));

  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= new Promise((resolve) => {
      signal?.removeEventListener('abort', close);
      const timer = setTimeout(connections.destroy, shutdownMs);
      server.close(() => {
        clearTimeout(timer);
        // Node lets its handles go at the end of a round: after the second, they are gone.
        setImmediate(() => setImmediate(resolve));
      });
      connections.retire();
    });
    return closing;
  };
  signal?.addEventListener('abort', close, { once: true });
  if (signal?.aborted) {
    await close();
    signal.throwIfAborted();
  }
  return { url: `http://${toUrlHost(host)}:${actualPort}`, port: actualPort, close };
}

/**
 * Node calls a connection idle only after its first request; one that a browser opened ahead would
 * hold a closing server up. So we count what runs on each.
 */
function trackConnections(server: Server) {
  const answers = new Map<Socket, number>();
  let isClosing = false;
  server.on('connection', (socket) => {
    answers.set(socket, 0);
    socket.once('close', () => answers.delete(socket));
  });
  server.on('request', ({ socket }, outgoing) => {
    if (socket.destroyed) return;
    answers.set(socket, (answers.get(socket) ?? 0) + 1);
    outgoing.once('close', () => {
      const left = (answers.get(socket) ?? 1) - 1;
      if (answers.has(socket)) answers.set(socket, left);
      if (isClosing && left === 0) socket.destroySoon();
    });
  });
  return {
    /** Lets connections go as they fall idle. */
    retire() {
      isClosing = true;
      for (const [socket, count] of answers) if (count === 0) socket.destroySoon();
    },
    destroy() {
      for (const socket of answers.keys()) socket.destroy();
    },
  };
}

function isForWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/**
 * Node would destroy the connection of every client that ends its side. One that does so with its request,
 * as `nc -N` does, still reads the answer. One that does so later, or when its stream has begun, has left:
 * its turn should know at once, not when the next write fails.
 */
function answerHalfClosed(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('request', (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { socket } = incoming;
    // The listener before this one has cut the client off.
    if (socket.destroyed) return;
    let readAt = performance.now();
    incoming.once('end', () => {
      readAt = performance.now();
    });
    let watch: NodeJS.Timeout | undefined;
    const onEnd = () => {
      const isLate = incoming.complete && performance.now() - readAt > HALF_CLOSE_MS;
      if (isLate || isStreaming(outgoing)) socket.destroy();
      // Only a write finds out that a client is gone which has ended its side before.
      else watch = destroyWhenQuiet(socket);
    };
    socket.once('end', onEnd);
    outgoing.once('close', () => {
      clearInterval(watch);
      socket.off('end', onEnd);
    });
  });
}

function isStreaming(outgoing: ServerResponse): boolean {
  return outgoing.headersSent && `${outgoing.getHeader('content-type')}`.includes('event-stream');
}

function destroyWhenQuiet(socket: Socket): NodeJS.Timeout {
  let written = socket.bytesWritten;
  const timer = setInterval(() => {
    if (socket.bytesWritten === written) socket.destroy();
    written = socket.bytesWritten;
  }, HALF_CLOSED_QUIET_MS);
  return timer.unref();
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(explain(error, port, host));
    server.once('error', fail);
    server.listen(port, host, () => {
      server.off('error', fail);
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : port);
    });
  });
}

function explain(error: NodeJS.ErrnoException, port: number, host: string): Error {
  const texts: Record<string, string> = {
    EADDRINUSE: `Port ${port} is already taken. Choose another one, or 0 for any.`,
    EACCES: `Port ${port} may not be used here. Choose one above 1023.`,
    EADDRNOTAVAIL: `This machine has no address ${host}.`,
    ENOTFOUND: `This machine has no address ${host}.`,
  };
  const { code = '' } = error;
  const text = texts[code];
  return text ? Object.assign(new Error(text, { cause: error }), { code }) : error;
}

function toUrlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
