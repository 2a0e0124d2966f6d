/** A gateway whose chats take WebSockets, the real `WebSocketChatTransport` of AI SDK 7, and frames as a test writes them. */
import { once } from 'node:events';
import { WebSocketChatTransport } from 'ai-v7';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import type { ChatGateway } from '../src/gateway/index.ts';
import {
  serve,
  toUpgradeListener,
  type UpgradeListenerOptions,
} from '../src/platforms/node/serve.ts';
import { eventually } from './gateway-client.ts';
import { createClient, type TransportLike } from './real-clients.ts';

const CHAT = '/api/sessions/s1/chat';

/** Listens on a port of its own until the test is over. */
export async function listenWithSockets(
  gateway: ChatGateway,
  options: UpgradeListenerOptions = {},
) {
  const upgrade = toUpgradeListener(gateway, options);
  const server = await serve({ fetch: gateway.fetch, upgrade, shutdownMs: 200 });
  onTestFinished(() => server.close());
  return server;
}

/** An unmodified client in chat `c1`; its transport is closed when the test is over. */
export async function createSocketClient(url: string, options: SocketClientOptions = {}) {
  const { user = 'carl', path = CHAT, id = 'c1', headers = {}, jar, ...init } = options;
  const { protocols = ['sabir', `bearer.${user}`] } = options;
  // As a browser does: the socket brings the cookies of the moment.
  class WithCookies extends WebSocket {
    constructor(address: string | URL, given?: string | string[]) {
      super(address, given, { headers: { ...jar } });
    }
  }
  const transport = new WebSocketChatTransport({
    url: `${url}${path}`,
    protocols,
    headers,
    ...(jar && { webSocket: WithCookies as never }),
  });
  onTestFinished(() => transport.close());
  const client = await createClient('ai@7', transport as TransportLike, { id, ...init });
  const text = () =>
    ((client.result().message?.parts ?? []) as { text?: string }[]).reduce(
      (all, part) => all + (part.text ?? ''),
      '',
    );
  return { ...client, transport, text };
}

type SocketClientOptions = {
  user?: string;
  path?: string;
  id?: string;
  headers?: Record<string, string>;
  /** In place of the user's token. */
  protocols?: string[];
  /** Cookies as headers, read whenever the client connects. */
  jar?: Record<string, string>;
  sendAutomaticallyWhen?: unknown;
};

type Frame = { type: string; requestId?: string; [field: string]: unknown };

/** A socket whose frames the test writes itself. */
export async function openRawSocket(
  url: string,
  { user = 'carl', path = CHAT, headers = {} }: RawOptions = {},
) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, {
    headers: { ...(user && { authorization: `Bearer ${user}` }), ...headers },
  });
  onTestFinished(() => socket.terminate());
  const frames: Frame[] = [];
  let closed: { code: number; reason: string } | undefined;
  socket.on('message', (data) => frames.push(JSON.parse(String(data))));
  socket.on('close', (code, reason) => {
    closed = { code, reason: String(reason) };
  });
  socket.on('error', () => undefined);
  await once(socket, 'open');
  return {
    socket,
    frames,
    of: (requestId: string) => frames.filter((frame) => frame.requestId === requestId),
    say: (frame: unknown) => socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    until: (type: string, requestId?: string) =>
      eventually(
        () =>
          frames.find(
            (frame) => frame.type === type && (!requestId || frame.requestId === requestId),
          ),
        type,
        () => JSON.stringify(frames).slice(0, 2_000),
      ),
    closed: () => eventually(() => closed, 'the close'),
  };
}

type RawOptions = { user?: string; path?: string; headers?: Record<string, string> };

/** What `sendMessage` makes. */
export function sendFrame(text: string, more: object = {}) {
  return {
    type: 'send',
    requestId: `r-${text}`,
    id: 'c1',
    trigger: 'submit-message',
    messages: [{ id: `u-${text}`, role: 'user', parts: [{ type: 'text', text }] }],
    headers: {},
    body: {},
    ...more,
  };
}

/** How an upgrade is answered; 101 if it is accepted. */
export async function knockAt(
  url: string,
  { path = CHAT, headers = {}, protocols = [] }: KnockOptions = {},
): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, protocols, { headers });
  socket.on('unexpected-response', (_, { statusCode = 0 }) => resolve(statusCode));
  socket.on('open', () => resolve(101));
  socket.on('error', () => undefined);
  const status = await promise;
  socket.terminate();
  return status;
}

type KnockOptions = { path?: string; headers?: Record<string, string>; protocols?: string[] };
