import { createTokenBucket } from '../core/token-bucket.ts';
import type { User } from '../turns/upstream.ts';
import type { Guard } from './access.ts';
import type { Admission, Caller, SocketSeat } from './admission.ts';
import type { ChatRoute } from './chat-route.ts';
import {
  type Asking,
  type ChatSocket,
  type ChatSocketEvents,
  serveChatSocket,
} from './chat-socket.ts';
import type { GatewayLimits } from './options.ts';
import { withProtocolToken } from './protocol-token.ts';
import type { Visit } from './visit.ts';

const GOING_AWAY = 1001;
const DISCONNECTED = 4403;
const TOO_SLOW = 4408;
const TOO_MUCH = 4429;
/** What a frame holds beside a body: its ids, its headers and metadata. */
const FRAME_HEAD_BYTES = 16_000;
/** What a page may say with a frame; see `toHeaders`. */
const FRAME_HEADERS = ['authorization', 'x-sabir-detach'];
/** Of the upgrade alone, or of one request over HTTP. */
const NOT_OF_REQUESTS =
  /^(connection|upgrade|content-.*|sec-websocket-.*|last-event-id|x-sabir-.*)$/;

/** A WebSocket that may be opened. The platform calls `open` or `cancel`, once. */
export type ChatUpgrade = {
  /** A longer message closes the socket with 1009. */
  maxFrameBytes: number;
  /** The handshake is done. */
  open(socket: ChatSocket): ChatSocketEvents & {
    /** Counts one message or ping. False: there were too many, and the socket is being closed. */
    allow(): boolean;
    /** Counts bytes before `ws` or its like keeps them. False: read no more, the socket is being closed. */
    arrive(bytes: number): boolean;
    /** So many of them were a ping or a pong. A message takes what is left. */
    settle(bytes: number): void;
    /** A message was longer than `maxFrameBytes`. */
    onTooLarge(): void;
  };
  /** The handshake failed. */
  cancel(): void;
};

type ChatSocketsOptions = {
  guard: Guard;
  admission: Admission;
  limits: GatewayLimits;
  fetch(request: Request, info: { address?: string }): Promise<Response>;
};

type Ask = (frame: Asking, signal: AbortSignal) => Promise<Response>;
type Knocked = {
  route: ChatRoute;
  user: User;
  caller: Caller;
  seat: SocketSeat;
  ask: Ask;
  isTokenOfPage: boolean;
};
type OpenSocket = Pick<Knocked, 'user' | 'caller'> & { close(): void; retire(): void };

/** The WebSockets of AI SDK 7's `WebSocketChatTransport`: who may open one, and all that are open. */
export function createChatSockets({ guard, admission, limits, fetch }: ChatSocketsOptions) {
  const open = new Set<OpenSocket>();
  let isClosing = false;

  async function admit(
    route: ChatRoute,
    visit: Visit,
    info: { address?: string },
  ): Promise<ChatUpgrade> {
    const seat = admission.takeSocket();
    try {
      // Before the token becomes a header: a foreign page can name any protocol, so a token there does not make it trusted.
      guard.checkPage(visit.request);
      const request = withProtocolToken(visit.request);
      const { user, caller } = await route.knock({ ...visit, request });
      seat.own(caller);
      const isTokenOfPage = request !== visit.request;
      const ask = createAsker({ request, isTokenOfPage }, caller, info);
      return toUpgrade({ route, user, caller, seat, ask, isTokenOfPage });
    } catch (error) {
      seat.leave();
      throw error;
    }
  }

  function toUpgrade({ route, user, caller, seat, ask, isTokenOfPage }: Knocked): ChatUpgrade {
    const { bodyBytes, attachmentBytes } = route.limits;
    return {
      maxFrameBytes: bodyBytes + attachmentBytes + FRAME_HEAD_BYTES,
      cancel: seat.leave,
      open(socket) {
        const take = createTokenBucket(limits.chatSocketFramesPerSecond);
        const events = serveChatSocket(socket, {
          ask,
          isTokenOfPage,
          limits,
          onLimit: admission.countRefusal,
        });
        const arriving = admission.holdArriving(caller, FRAME_HEAD_BYTES, () =>
          socket.close(TOO_SLOW, 'a message took too long'),
        );
        const entry: OpenSocket = {
          user,
          caller,
          close: () => socket.close(DISCONNECTED, 'disconnected'),
          retire: () => events.retire(GOING_AWAY, 'shutting down'),
        };
        open.add(entry);
        if (isClosing) entry.retire();
        return {
          message(text) {
            arriving.release();
            events.message(text);
          },
          drain: events.drain,
          close() {
            open.delete(entry);
            seat.leave();
            arriving.release();
            events.close();
          },
          allow() {
            if (take()) return true;
            admission.countRefusal('chatSocketFramesPerSecond');
            socket.close(TOO_MUCH, 'too many frames');
            return false;
          },
          arrive(bytes) {
            try {
              arriving.add(bytes);
              return true;
            } catch {
              // The only reason is a limit, and its refusal is counted.
              socket.close(TOO_MUCH, 'too many bytes at once');
              return false;
            }
          },
          settle: arriving.release,
          onTooLarge: () =>
            admission.countRefusal(caller.kind === 'user' ? 'bodyBytes' : 'publicBodyBytes'),
        };
      },
    };
  }

  /** Makes of each frame the request that `DefaultChatTransport` would send, so that all rules for it hold. */
  function createAsker(
    { request: upgrade, isTokenOfPage }: { request: Request; isTokenOfPage: boolean },
    caller: Caller,
    info: { address?: string },
  ): Ask {
    const url = new URL(upgrade.url);
    url.searchParams.set('wire', 'ai-sdk');
    url.searchParams.set('aiSdk', '7');
    const { pathname } = url;

    return async (frame, signal) => {
      const headers = toHeaders(upgrade.headers, frame.headers, isTokenOfPage);
      if (frame.type === 'resume') {
        url.pathname = `${pathname}/${encodeURIComponent(frame.id)}/stream`;
        return fetch(new Request(url, { headers, signal }), info);
      }
      url.pathname = pathname;
      const bytes = new TextEncoder().encode(JSON.stringify({ ...frame.body, ...frame.message }));
      // Over HTTP an unread body waits with its sender. Here it counts from now on; what reads it counts it itself.
      const release = admission.holdBytes(caller, bytes.length);
      const body = new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            release();
            controller.enqueue(bytes);
            controller.close();
          },
        },
        { highWaterMark: 0 },
      );
      try {
        const init = { method: 'POST', headers, body, signal, duplex: 'half' } as RequestInit;
        return await fetch(new Request(url, init), info);
      } finally {
        release();
      }
    };
  }

  return {
    admit,
    disconnect(userId: string): void {
      for (const { user, caller, close } of [...open]) {
        if (caller.kind === 'user' && user.id === userId) close();
      }
    },
    /** Closes each socket when its streams have ended. */
    close(): void {
      isClosing = true;
      for (const { retire } of [...open]) retire();
    },
  };
}

/**
 * The upgrade's headers, and of the frame's those that a page may set. A proxy checks and adds headers at the upgrade
 * only, so a frame must not replace any of them: it may bring a newer token where the page itself brought the first.
 */
function toHeaders(
  ofUpgrade: Headers,
  ofFrame: Readonly<Record<string, string>>,
  isTokenOfPage: boolean,
): Headers {
  const headers = new Headers();
  for (const [name, value] of ofUpgrade) {
    if (!NOT_OF_REQUESTS.test(name)) headers.set(name, value);
  }
  for (const [name, value] of Object.entries(ofFrame)) {
    const lower = name.toLowerCase();
    if (!FRAME_HEADERS.includes(lower)) continue;
    if (lower !== 'authorization' || isTokenOfPage || !headers.has(lower))
      headers.set(lower, value);
  }
  return headers;
}
