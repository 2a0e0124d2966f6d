import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type FaultyProxy = {
  url: string;
  /** Breaks what is open. */
  cut(): void;
  /** The stream of events stays open, and brings nothing any more. */
  freeze(): void;
  /** Whether anybody new is let in. */
  isOpen: boolean;
  close(): Promise<void>;
};

/** In front of a server on this machine; without faults until it is told. */
export async function startFaultyProxy(serverUrl: string): Promise<FaultyProxy> {
  const port = Number(new URL(serverUrl).port);
  const pairs = new Set<{ client: Socket; server: Socket; hasEvents: boolean }>();
  const listener = createServer((client) => {
    if (!proxy.isOpen) {
      client.destroy();
      return;
    }
    const server = connect(port, '127.0.0.1');
    const pair = { client, server, hasEvents: false };
    pairs.add(pair);
    client.on('data', (bytes) => {
      pair.hasEvents ||= bytes.includes('GET /event');
    });
    client.pipe(server);
    server.pipe(client);
    const leave = () => {
      pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on('error', leave).on('close', leave);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const proxy: FaultyProxy = {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    isOpen: true,
    cut() {
      for (const { client } of pairs) client.destroy();
    },
    freeze() {
      for (const { client, server, hasEvents } of pairs) {
        if (hasEvents) server.unpipe(client).resume();
      }
    },
    async close() {
      proxy.cut();
      listener.close();
      await once(listener, 'close');
    },
  };
  return proxy;
}
