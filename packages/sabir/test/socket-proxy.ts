/** A proxy on loopback that cuts connections after so many bytes, in either direction. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type SocketProxy = Awaited<ReturnType<typeof startSocketProxy>>;

/** `nextCut` says after how many bytes the next connection is to be cut; nothing for never. */
export async function startSocketProxy(port: number, nextCut: () => number | undefined) {
  const sockets = new Set<Socket>();
  let cuts = 0;

  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port, host: '127.0.0.1', noDelay: true });
    let left = nextCut() ?? Infinity;
    const end = () => {
      near.destroy();
      far.destroy();
    };
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => {
        if (left <= 0) return;
        to.write(bytes.subarray(0, left));
        left -= bytes.length;
        if (left > 0) return;
        cuts++;
        // By turns as if a cable was pulled, and as if somebody hung up.
        if (cuts % 2 === 0) near.resetAndDestroy();
        // What was passed on before the cut should arrive.
        setImmediate(end);
      });
      from.on('error', end);
      from.on('close', () => {
        sockets.delete(from);
        end();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return cuts;
    },
    /** Cuts everything that is open. */
    cutAll(): void {
      for (const socket of sockets) socket.destroy();
    },
    async close(): Promise<void> {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
