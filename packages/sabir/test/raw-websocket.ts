/** WebSockets byte by byte: upgrades that a test writes, and frames as a client sends them. */
import { WebSocket } from 'ws';

/** Asks for the socket of the session `s`; what follows is up to the test. */
export const UPGRADE = [
  'GET /api/sessions/s/ws?role=client HTTP/1.1',
  ...['Host: localhost', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
  ...['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', '', ''],
].join('\r\n');

/** The same, as this user of a session chain, with more header lines if there are any. */
export function upgradeAs(user: string, more = ''): string {
  return UPGRADE.replace('\r\n\r\n', `\r\nAuthorization: Bearer ${user}\r\n${more}\r\n`);
}

type FrameOptions = {
  /** More frames of this message follow. */
  hasMore?: boolean;
  isCompressed?: boolean;
  /** What the header says, whatever is sent. Default: the body's length. */
  length?: number;
};

/** A frame under a mask that changes nothing. */
export function toFrame(opcode: number, body: Buffer, options: FrameOptions = {}): Buffer {
  const { hasMore = false, isCompressed = false, length = body.length } = options;
  const first = (hasMore ? 0 : 0x80) | (isCompressed ? 0x40 : 0) | opcode;
  const head = length < 126 ? Buffer.from([first, 0x80 | length]) : Buffer.alloc(10);
  if (length >= 126) {
    head[0] = first;
    head[1] = 0x80 | 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, Buffer.alloc(4), body]);
}

/** How an upgrade was answered; 101 if it was accepted. */
export function knock(
  { url }: { url: string },
  headers: Record<string, string>,
  protocols: string[] = [],
): Promise<{ status: number; retryAfter: string | undefined }> {
  const { promise, resolve } = Promise.withResolvers<{
    status: number;
    retryAfter: string | undefined;
  }>();
  const address = `${url.replace('http', 'ws')}/api/sessions/s/ws?role=client`;
  const socket = new WebSocket(address, protocols, { headers });
  socket.on('unexpected-response', (_, { statusCode: status = 0, headers: given }) => {
    resolve({ status, retryAfter: given['retry-after'] });
    socket.terminate();
  });
  socket.on('open', () => {
    resolve({ status: 101, retryAfter: undefined });
    socket.terminate();
  });
  socket.on('error', () => undefined);
  return promise;
}
