/** WebSockets of Node as a session takes them. */
import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { startTimeout, startTimer } from '../../core/timers.ts';
import type { ChatSocket } from '../../gateway/index.ts';
import type { SocketEvents } from '../../sessions/index.ts';

/** `ws` checks a frame's length by its header, before anything is kept of the frame. */
export function createSocketServer(maxPayload: number): WebSocketServer {
  return new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload,
    // The token is no protocol; the name beside it is.
    handleProtocols: (protocols) => (protocols.has('sabir') ? 'sabir' : false),
  });
}

/** Everything that is sent in one go leaves in one write. */
export function toSessionSocket(socket: WebSocket, raw: Duplex): ChatSocket {
  let isCorked = false;
  let isClosed = false;
  return {
    get bufferedAmount() {
      return socket.bufferedAmount;
    },
    get isFull() {
      return raw.writableNeedDrain;
    },
    send(frame) {
      if (isClosed || socket.readyState !== socket.OPEN) return;
      if (!isCorked) {
        isCorked = true;
        raw.cork();
        process.nextTick(() => {
          isCorked = false;
          raw.uncork();
        });
      }
      socket.send(frame);
    },
    close(code, reason) {
      if (isClosed) return;
      isClosed = true;
      socket.close(code, reason);
      // One that has gone silent would never answer.
      const timer = startTimeout(CLOSE_MS, () => socket.terminate());
      socket.once('close', timer.clear);
    },
  };
}

const CLOSE_MS = 2_000;

type WatchOptions = {
  pingMs: number;
  /** How much may wait to leave when another message comes. @default any amount */
  unreadBytes?: number;
  /** Takes one message or ping: false if there were too many, and the socket is being closed. */
  allow?(): boolean;
  /** A message was longer than the socket may receive. */
  onTooLarge?(): void;
};

/** Hands on what the socket receives, and notices when the other side has gone without a word. */
export function watchSocket(
  socket: WebSocket,
  { message, close }: SocketEvents,
  { pingMs, unreadBytes = Infinity, allow = () => true, onTooLarge }: WatchOptions,
): void {
  let isAlive = true;
  let challenge = '';
  const pings = startTimer(pingMs, () => {
    if (!isAlive) socket.terminate();
    isAlive = false;
    challenge = randomUUID();
    socket.ping(challenge);
  });
  // Only a client that reads what it is sent can answer with the same.
  socket.on('pong', (data) => {
    if (String(data) === challenge) isAlive = true;
  });
  // `ws` answers each with a pong, which waits in memory if the other side does not read.
  socket.on('ping', allow);
  socket.on('message', (data) => {
    // A client that only writes does not keep in memory what waits for it.
    if (socket.bufferedAmount === 0) isAlive = true;
    if (socket.bufferedAmount > unreadBytes) socket.terminate();
    // Whom we have let go may still be talking.
    if (socket.readyState === socket.OPEN && allow()) message(String(data));
  });
  // What was wrong is told by the close that follows.
  socket.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') onTooLarge?.();
  });
  socket.on('close', () => {
    pings.clear();
    close();
  });
}
