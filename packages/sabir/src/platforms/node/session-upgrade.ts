/** What a WebSocket upgrade for a session says, and how it is refused. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorKind } from '../../core/errors.ts';
import { startTimeout } from '../../core/timers.ts';
import type { ClientInfo } from '../../gateway/v2/sockets.ts';
import { toUrl } from './listener.ts';

const ADDRESS = /^\/api\/sessions\/([^/]+)\/ws$/;
const REASONS: Record<number, string> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};
const RETRY_AFTER_S = 5;
/** How long a client may take to read its refusal and close. */
const REFUSED_MS = 500;

export function toRequest(incoming: IncomingMessage): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return new Request(toUrl(incoming), { headers });
}

export function sessionIdOf({ url }: Request): string | undefined {
  const part = ADDRESS.exec(new URL(url).pathname)?.[1];
  try {
    return part && decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

/** What a client asks for in its URL. */
export function wishesOf(params: URLSearchParams): Partial<ClientInfo> {
  const channelType = params.get('channelType');
  const channelId = params.get('channelId');
  const messages = params.get('messages');
  return {
    ...(channelType && channelId && { channel: { channelType, channelId } }),
    ...(params.get('dialect') === 'v2' && { hasSnapshots: false }),
    ...(messages !== null && /^\d{1,6}$/.test(messages) && { messages: Number(messages) }),
  };
}

export function refuse(socket: Duplex, { status, code, userMessage, remedy }: ErrorKind): void {
  refuseWith(socket, status, JSON.stringify({ code, message: userMessage, remedy }));
}

/** Answers, then closes the connection, whatever the client does with its side of it. */
export function refuseWith(socket: Duplex, status: number, body: string): void {
  const retry = status === 429 || status === 503 ? `Retry-After: ${RETRY_AFTER_S}\r\n` : '';
  const timer = startTimeout(REFUSED_MS, () => socket.destroy());
  socket.once('close', timer.clear);
  // A connection with unread bytes is reset when it is destroyed, and the answer may be lost.
  socket.resume();
  socket.end(
    `HTTP/1.1 ${status} ${REASONS[status] ?? 'Refused'}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n${retry}Connection: close\r\n\r\n${body}`,
  );
}
