import { type ByteSink, type ByteSource, takeSource } from '../core/byte-source.ts';
import { INTERNAL_ERROR, SabirError, TOO_MANY_REQUESTS, VIEWER_TOO_SLOW } from '../core/errors.ts';
import type { SessionSocket, SocketEvents } from '../sessions/index.ts';
import { createChunkFrames } from '../wires/ai-sdk-websocket/encode.ts';
import {
  type ClientFrame,
  parseClientFrame,
  type ServerFrame,
} from '../wires/ai-sdk-websocket/frames.ts';
import type { GatewayLimits } from './options.ts';

/** A frame without a request that could be answered. */
const BAD_FRAME = 4400;
const SIGNED_OUT = 4401;

/** A WebSocket as the platform hands it in. */
export type ChatSocket = SessionSocket & {
  /** How many bytes wait to leave. */
  readonly bufferedAmount: number;
  /** So much waits to leave that streams are paused until `drain` is called. */
  readonly isFull: boolean;
};

export type ChatSocketEvents = SocketEvents & {
  /** What waited has left: the socket takes more. */
  drain(): void;
};

type ServedSocket = ChatSocketEvents & {
  /** Closes the socket when its open requests have ended. */
  retire(code: number, reason: string): void;
};

type ChatSocketOptions = {
  /** Answers a frame as it answers the same request over HTTP. */
  ask(frame: Asking, signal: AbortSignal): Promise<Response>;
  /**
   * The page brought a token, and its frames may bring a newer one. Otherwise every frame is judged by the cookie of the upgrade:
   * after a 401 the socket closes, and the client sends its present cookie when it connects again.
   */
  isTokenOfPage: boolean;
  limits: Pick<GatewayLimits, SocketLimit>;
  onLimit(name: SocketLimit): void;
};

type SocketLimit = 'chatSocketRequests' | 'chatSocketUnreadBytes';

/** What asks for a stream. */
export type Asking = Exclude<ClientFrame, { type: 'abort' }>;

/**
 * One WebSocket of `WebSocketChatTransport`: many requests, each answered by one stream. It owns which requests are open and
 * which streams wait for the socket. What a request may do, and what comes of it, is decided by `ask`.
 */
export function serveChatSocket(socket: ChatSocket, options: ChatSocketOptions): ServedSocket {
  const { ask, isTokenOfPage, limits, onLimit } = options;
  /** What ends each request that is open. */
  const open = new Map<string, AbortController>();
  /** Streams that go on when the socket takes more. */
  const paused = new Set<ByteSource>();
  let onIdle: (() => void) | undefined;

  function say(frame: ServerFrame): void {
    socket.send(JSON.stringify(frame));
  }

  function refuse(requestId: string, { message, code }: { message: string; code: string }): void {
    say({ type: 'error', requestId, errorText: message, code });
  }

  /** Which limit keeps another request from being asked. */
  function limitReached(): SocketLimit | undefined {
    if (open.size >= limits.chatSocketRequests) return 'chatSocketRequests';
    return socket.bufferedAmount > limits.chatSocketUnreadBytes
      ? 'chatSocketUnreadBytes'
      : undefined;
  }

  function refuseFor(requestId: string, name: SocketLimit): void {
    onLimit(name);
    const { userMessage, code } =
      name === 'chatSocketRequests' ? TOO_MANY_REQUESTS : VIEWER_TOO_SLOW;
    const message = `${userMessage} The limit ${name} is ${limits[name]}.`;
    refuse(requestId, { message, code });
  }

  async function answer(frame: Asking, leaving: AbortController): Promise<void> {
    const { requestId } = frame;
    const { signal } = leaving;
    try {
      const response = await ask(frame, signal);
      if (signal.aborted) await response.body?.cancel();
      else if (response.status === 204) say({ type: 'no-active', requestId });
      else if (response.ok) await stream(response, requestId, signal);
      else {
        refuse(requestId, await response.json());
        if (response.status === 401 && !isTokenOfPage) retire(SIGNED_OUT, 'not signed in');
      }
    } catch (error) {
      const known = error instanceof SabirError ? error : new SabirError(INTERNAL_ERROR);
      if (!signal.aborted) refuse(requestId, known);
    } finally {
      if (open.get(requestId) === leaving) open.delete(requestId);
      if (open.size === 0) onIdle?.();
    }
  }

  function retire(code: number, reason: string): void {
    onIdle = () => socket.close(code, reason);
    if (open.size === 0) onIdle();
  }

  /** Resolves when the stream has ended, or its viewer has left. */
  async function stream(response: Response, requestId: string, signal: AbortSignal): Promise<void> {
    const frames = createChunkFrames(requestId, (frame) => socket.send(frame));
    const source = takeSource(response);
    say({ type: 'start', requestId });
    if (source) await pipe(source, frames, signal);
    else frames.push(new Uint8Array(await response.arrayBuffer()));
    if (!signal.aborted) say({ type: 'end', requestId });
  }

  function pipe(
    source: ByteSource,
    frames: { push(bytes: Uint8Array): void },
    signal: AbortSignal,
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const sink: ByteSink = {
      write(bytes) {
        frames.push(bytes);
        if (!socket.isFull) return true;
        paused.add(source);
        return false;
      },
      end(last) {
        if (last) frames.push(last);
        resolve();
      },
    };
    const leave = () => {
      source.cancel();
      resolve();
    };
    signal.addEventListener('abort', leave, { once: true });
    source.open(sink);
    if (socket.isFull) paused.add(source);
    else source.resume();
    return promise.finally(() => {
      paused.delete(source);
      signal.removeEventListener('abort', leave);
    });
  }

  return {
    message(text) {
      const read = parseClientFrame(text);
      const requestId = 'frame' in read ? read.frame.requestId : read.about;
      const isTaken = 'frame' in read && read.frame.type !== 'abort' && open.has(requestId ?? '');
      if (requestId === undefined || isTaken) {
        socket.close(BAD_FRAME, isTaken ? 'requestId is in use' : 'not a frame of this protocol');
      } else if ('problem' in read) {
        refuse(requestId, read.problem);
      } else if (read.frame.type === 'abort') {
        open.get(requestId)?.abort();
        open.delete(requestId);
      } else {
        const limit = limitReached();
        if (limit) {
          refuseFor(requestId, limit);
          return;
        }
        const leaving = new AbortController();
        open.set(requestId, leaving);
        void answer(read.frame, leaving);
      }
    },
    drain() {
      for (const source of paused) {
        if (socket.isFull) return;
        paused.delete(source);
        source.resume();
      }
    },
    retire,
    close() {
      for (const leaving of open.values()) leaving.abort();
      open.clear();
    },
  };
}
