import { SabirError, UPSTREAM_UNREACHABLE } from '../../core/errors.ts';
import { createEventParser } from './parse-event.ts';

/** As much of a WebSocket as the platforms' own and the `ws` package's have in common. */
interface WebSocketLike {
  readonly readyState: number;
  binaryType: string;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  /** `ws` has these three. Without the first a close waits for the other side. */
  terminate?(): void;
  on?(event: 'message', listener: (data: Uint8Array, isBinary: boolean) => void): unknown;
  removeAllListeners?(event: 'message'): unknown;
}

export interface WebSocketConstructor {
  // biome-ignore lint/suspicious/noExplicitAny: each platform has an argument list of its own
  new (url: string, ...more: any[]): WebSocketLike;
}

export type Target = {
  url: string;
  token?: string | undefined;
  protocols?: string[] | undefined;
  WebSocket: WebSocketConstructor;
  /** A larger frame is not read. */
  maxEventBytes: number;
  /** How long the server may take to answer. */
  openMs: number;
  /** How long to wait for its `init` then: not every server sends one. */
  initMs: number;
};

export type SocketListener = {
  /** What a frame says; a string if it says nothing that can be read. */
  event(event: unknown): void;
  /** Once, when an open connection is gone and nobody here closed it. */
  drop(why: string): void;
};

export type Socket = {
  readonly isOpen: boolean;
  /** An object is made JSON of; a string is sent as it is. */
  send(message: object | string): void;
  close(): void;
};

const OPEN = 1;

/** Resolves when the server has introduced itself, or evidently never will. */
export function connect(
  target: Target,
  listener: SocketListener,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let isSettled = false;
    let isDone = false;
    let waiting: ReturnType<typeof setTimeout> | undefined;

    function finish(): void {
      isDone = true;
      clearTimeout(waiting);
      signal.removeEventListener('abort', onAbort);
    }

    /** The connection is of no more use, whoever ended it. */
    function end(why: string, cause?: unknown): void {
      if (isDone) return;
      finish();
      hangUp(socket);
      if (isSettled) listener.drop(why);
      else {
        isSettled = true;
        reject(new SabirError(UPSTREAM_UNREACHABLE, why, { cause }));
      }
    }

    function settle(): void {
      if (isSettled || isDone) return;
      isSettled = true;
      clearTimeout(waiting);
      signal.removeEventListener('abort', onAbort);
      resolve({
        get isOpen() {
          return !isDone && socket.readyState === OPEN;
        },
        send(message) {
          try {
            socket.send(typeof message === 'string' ? message : JSON.stringify(message));
          } catch (error) {
            // Whoever sends is not told in the middle of it.
            queueMicrotask(() => end(reasonOf(error), error));
          }
        },
        close() {
          if (isDone) return;
          finish();
          hangUp(socket);
        },
      });
    }

    const onAbort = () => end('Nobody waits for the connection any more.', signal.reason);
    if (signal.aborted) {
      return reject(
        new SabirError(UPSTREAM_UNREACHABLE, 'Nobody waits for it.', { cause: signal.reason }),
      );
    }
    let socket: WebSocketLike;
    try {
      socket = createSocket(target);
    } catch (error) {
      return reject(new SabirError(UPSTREAM_UNREACHABLE, reasonOf(error), { cause: error }));
    }
    signal.addEventListener('abort', onAbort);
    waiting = setTimeout(() => end('The server did not answer in time.'), target.openMs);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      clearTimeout(waiting);
      waiting = setTimeout(settle, target.initMs);
    };
    socket.onerror = (event: { message?: unknown; error?: unknown }) => {
      end(reasonOf(event.error ?? event), event.error);
    };
    socket.onclose = (event: { code?: number; reason?: string }) => {
      end(`The server closed the connection: ${event.code ?? ''} ${event.reason ?? ''}`.trim());
    };
    const parse = createEventParser(target.maxEventBytes);
    const receive = (data: string | Uint8Array) => {
      let event: unknown;
      try {
        event = parse(data);
      } catch (error) {
        return end('The server sent a frame that is not UTF-8.', error);
      }
      listener.event(event);
      if (!isSettled && (event as { type?: unknown } | null)?.type === 'init') settle();
    };
    // `ws` makes an event object of every message for those who listen in the standard way.
    if (socket.on) {
      socket.on('message', (data, isBinary) => receive(isBinary ? toText(data) : data));
    } else {
      socket.onmessage = ({ data }: { data: unknown }) => {
        receive(typeof data === 'string' ? data : toText(data));
      };
    }
  });
}

/** Only `ws` takes options beside protocols; a browser takes nothing but protocols. */
function createSocket(target: Target): WebSocketLike {
  const { url, token, protocols, WebSocket, maxEventBytes } = target;
  const headers = token === undefined ? undefined : { Authorization: `Bearer ${token}` };
  if ('terminate' in WebSocket.prototype) {
    return new WebSocket(url, protocols ?? [], {
      headers,
      maxPayload: maxEventBytes,
      perMessageDeflate: false,
      // The parser reads every byte anyway, and rejects what is not UTF-8.
      skipUTF8Validation: true,
    });
  }
  if (headers) return new WebSocket(url, { headers, ...(protocols && { protocols }) });
  return protocols ? new WebSocket(url, protocols) : new WebSocket(url);
}

/** A closing handshake with a server that has gone silent would hold the connection for long. */
function hangUp(socket: WebSocketLike): void {
  socket.onopen = null;
  socket.onmessage = null;
  socket.removeAllListeners?.('message');
  socket.onclose = null;
  // One that is closed while it connects still complains, and somebody has to listen.
  socket.onerror = () => undefined;
  try {
    socket.close(1000);
    socket.terminate?.();
  } catch {
    // It is gone already.
  }
}

/** A binary frame may hold anything; only a text frame promises UTF-8. */
function toText(data: unknown): string {
  const isBytes = data instanceof ArrayBuffer || ArrayBuffer.isView(data);
  return isBytes ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(data) : '';
}

/** An error's own words, or those of what caused it: some platforms only say that it failed. */
function reasonOf(error: unknown): string {
  const { message, cause } = (error ?? {}) as { message?: unknown; cause?: unknown };
  if (cause) return reasonOf(cause);
  return typeof message === 'string' && message !== '' ? message : 'The connection failed.';
}
