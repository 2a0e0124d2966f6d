/**
 * A proxy on loopback whose connections can be cut in the middle of anything, and held up. Every
 * connection carries one request, and its head says whose it is.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type Cut = {
  /** By RST, or by FIN. */
  how: 'reset' | 'close';
  /** After so many more bytes in that direction; if they do not come, soon all the same. */
  afterBytes: number;
  /** Of the answer, unless it is said that it is the request. */
  isRequest?: boolean;
};

export type FaultyProxyOptions = {
  /** Whose connection it is, from the head of its request. */
  keyOf(head: string): string;
  /** Where it may lead, the first choice first; the next one is tried where nobody listens. */
  targets(key: string): number[];
  onOpen?(key: string, port: number): void;
};

export type FaultyProxy = Awaited<ReturnType<typeof startFaultyProxy>>;

type Connection = ReturnType<typeof createConnection>;

/** A cut that waits for more than there is comes after this long. */
const PATIENCE_MS = 40;
const HEAD_END = '\r\n\r\n';

export async function startFaultyProxy(options: FaultyProxyOptions) {
  const connections = new Map<string, Set<Connection>>();
  /** For the next connection of somebody. */
  const armed = new Map<string, Cut>();

  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (near) => {
    sockets.add(near);
    near.once('close', () => sockets.delete(near));
    let head = Buffer.alloc(0);
    near.on('error', () => near.destroy());
    near.on('data', function read(bytes) {
      head = Buffer.concat([head, bytes]);
      if (!head.includes(HEAD_END)) return;
      near.off('data', read);
      near.pause();
      const key = options.keyOf(head.toString('latin1'));
      void dial(options.targets(key)).then((dialled) => {
        if (!dialled || near.destroyed) {
          near.resetAndDestroy();
          dialled?.far.destroy();
          return;
        }
        options.onOpen?.(key, dialled.port);
        add(key, createConnection(near, dialled.far, head));
      });
    });
  });

  function add(key: string, connection: Connection): void {
    const known = connections.get(key) ?? new Set();
    connections.set(key, known.add(connection));
    connection.onClose(() => {
      known.delete(connection);
      if (known.size === 0 && connections.get(key) === known) connections.delete(key);
    });
    const cut = armed.get(key);
    armed.delete(key);
    if (cut) connection.cut(cut);
    connection.start();
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    /** How many connections somebody has. */
    countOf: (key: string) => connections.get(key)?.size ?? 0,
    /** Gives how many are cut by it. */
    cut(key: string, cut: Cut): number {
      const found = [...(connections.get(key) ?? [])];
      for (const connection of found) connection.cut(cut);
      return found.length;
    },
    /** Cuts the next connection that somebody opens. */
    arm: (key: string, cut: Cut) => void armed.set(key, cut),
    /** Passes nothing on, either way, for so long; gives how many connections that was. */
    hold(key: string, ms: number): number {
      const found = [...(connections.get(key) ?? [])];
      for (const connection of found) connection.hold(ms);
      return found.length;
    },
    forget: (key: string) => {
      armed.delete(key);
      for (const connection of connections.get(key) ?? []) connection.end();
    },
    async close(): Promise<void> {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

async function dial(ports: number[]): Promise<{ far: Socket; port: number } | undefined> {
  for (const port of ports) {
    const far = connect({ port, host: '127.0.0.1', noDelay: true });
    const isOpen = await new Promise<boolean>((resolve) => {
      far.once('connect', () => resolve(true));
      far.once('error', () => resolve(false));
    });
    if (isOpen) return { far, port };
  }
  return undefined;
}

function createConnection(near: Socket, far: Socket, head: Buffer) {
  let cut: (Cut & { left: number }) | undefined;
  let patience: ReturnType<typeof setTimeout> | undefined;
  let holding: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const closed: (() => void)[] = [];

  function end(): void {
    if (isOver) return;
    isOver = true;
    clearTimeout(patience);
    clearTimeout(holding);
    near.destroy();
    far.destroy();
    for (const run of closed) run();
  }

  function cutNow(): void {
    if (isOver || !cut) return;
    if (cut.how === 'reset') near.resetAndDestroy();
    // What was passed on before the cut should arrive.
    else near.destroySoon();
    setImmediate(end);
  }

  function pass(bytes: Buffer, to: Socket, isRequest: boolean): void {
    if (isOver) return;
    if (!cut || (cut.isRequest ?? false) !== isRequest) {
      to.write(bytes);
      return;
    }
    if (cut.left <= 0) return;
    to.write(bytes.subarray(0, cut.left));
    cut.left -= bytes.length;
    if (cut.left <= 0) cutNow();
  }

  /** Whoever ends their half has said all they will; the other half may go on. */
  function follow(from: Socket, to: Socket, isRequest: boolean): void {
    from.on('data', (bytes) => pass(bytes, to, isRequest));
    from.on('end', () => to.end());
    from.on('error', end);
    from.on('close', () => {
      if (from === near) end();
      // What it said last is still on its way.
      else near.destroySoon();
    });
  }

  return {
    end,
    onClose: (run: () => void) => void closed.push(run),
    start(): void {
      follow(far, near, false);
      follow(near, far, true);
      pass(head, far, true);
      near.resume();
    },
    cut(given: Cut): void {
      if (cut) return;
      cut = { ...given, left: given.afterBytes };
      patience = setTimeout(cutNow, PATIENCE_MS);
    },
    hold(ms: number): void {
      if (holding || isOver) return;
      near.pause();
      far.pause();
      holding = setTimeout(() => {
        holding = undefined;
        near.resume();
        far.resume();
      }, ms);
    },
  };
}
