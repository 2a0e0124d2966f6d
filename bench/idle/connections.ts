/** Many connections from one process: plain sockets, because a client object for each would be dear. */
import { connect, type Socket } from 'node:net';

/** So many are opened at once. */
const AT_ONCE = 100;

export type Ask = { method: 'GET' | 'POST'; path: string; user: string; body?: unknown };

/** Resolves when the answer's first delta has come; the rest is not read, and nothing is sent any more. */
function open(port: number, { method, path, user, body }: Ask): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const content = body === undefined ? '' : JSON.stringify(body);
  const socket = connect({ port, host: '127.0.0.1' }, () => {
    socket.write(
      `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${user}\r\nX-Sabir-Detach: 1\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(content)}\r\n\r\n${content}`,
    );
  });
  let head = '';
  socket.on('data', (bytes) => {
    if (head.length < 10_000) head += bytes;
    if (head.includes('text-delta')) resolve(socket);
    else if (!/^HTTP\/1\.1 200/.test(head)) reject(new Error(head.slice(0, 500)));
  });
  socket.on('error', reject);
  socket.on('close', () => reject(new Error(`closed early: ${head.slice(0, 500)}`)));
  return promise;
}

export async function openMany(port: number, asks: Ask[]): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let at = 0; at < asks.length; at += AT_ONCE) {
    const some = asks.slice(at, at + AT_ONCE).map((ask) => open(port, ask));
    sockets.push(...(await Promise.all(some)));
  }
  return sockets;
}

export async function closeAll(sockets: Socket[]): Promise<void> {
  const closed = sockets.map(
    (socket) =>
      new Promise((resolve) => (socket.closed ? resolve(0) : socket.once('close', resolve))),
  );
  for (const socket of sockets) socket.destroy();
  await Promise.all(closed);
}
