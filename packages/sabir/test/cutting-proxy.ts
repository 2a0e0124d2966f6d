/**
 * A proxy on loopback that cuts responses: after any byte, in three ways, as often as it is told.
 * It reads as much HTTP as it takes to know where in a response it is; one request at a time on
 * each connection, as `fetch` sends them. Whose request it is says the header `x-viewer`.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type Cut = {
  /** By RST, by FIN, or by ending the body as if it were whole. */
  how: 'reset' | 'close' | 'end';
  /** In the response's head, or in its body. */
  inHead: boolean;
  /**
   * After so many bytes of it. The bytes of the chunked coding count too, so that a cut falls into
   * them as well, except for an `end`.
   */
  at: number;
  /** Made after so long a silence all the same. */
  quietMs?: number;
};

export type Passage = {
  viewer: string;
  method: string;
  /** `last-event-id`. */
  cursor: string | undefined;
  /** What was forwarded of the body, without its coding. */
  body: Buffer;
};

export type CuttingProxyOptions = {
  /** Where the server is. */
  port: number;
  /** A request comes through: where its response is to be cut, if at all. */
  onRequest(passage: Passage): Cut | undefined;
  /** The head of its response has been forwarded. */
  onResponse?(passage: Passage, head: string): void;
  onCut?(passage: Passage, cut: Cut): void;
};

export type CuttingProxy = { url: string; close(): Promise<void> };

const HEAD_END = Buffer.from('\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

export async function startCuttingProxy(options: CuttingProxyOptions): Promise<CuttingProxy> {
  const clients = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    clients.add(client);
    let exchange: ReturnType<typeof startExchange> | undefined;
    client.on('data', (bytes) => {
      exchange ??= startExchange(client, options, () => {
        exchange = undefined;
      });
      exchange.send(bytes);
    });
    client.on('error', () => undefined);
    client.on('close', () => {
      clients.delete(client);
      exchange?.leave();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const client of clients) client.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** As the chunked coding has it. */
function toChunk(payload: Buffer): Buffer {
  const size = Buffer.from(`${payload.length.toString(16)}\r\n`);
  return Buffer.concat([size, payload, Buffer.from('\r\n')]);
}

/** One request and its response. */
function startExchange(client: Socket, options: CuttingProxyOptions, onOver: () => void) {
  let request = Buffer.alloc(0);
  let server: Socket | undefined;
  let passage: Passage | undefined;
  let cut: Cut | undefined;
  let isOver = false;
  /** What was received of the response and not forwarded. */
  let rest = Buffer.alloc(0);
  let hasHead = false;
  /** What counts against the place of the cut. */
  let counted = 0;
  let quiet: ReturnType<typeof setTimeout> | undefined;

  function leave(): void {
    isOver = true;
    clearTimeout(quiet);
    server?.destroy();
  }

  /** The connection can be used again. */
  function finish(): void {
    leave();
    onOver();
  }

  function cutNow(last: Buffer): void {
    if (!cut || !passage || isOver) return;
    leave();
    options.onCut?.(passage, cut);
    if (cut.how === 'end' && hasHead) {
      client.write(Buffer.concat([last, LAST_CHUNK]));
      onOver();
    } else if (cut.how === 'reset') {
      client.write(last, () => client.resetAndDestroy());
    } else client.end(last);
  }

  /** Forwards some of the body, up to the cut. */
  function forward(payload: Buffer): void {
    if (!passage) return;
    const isWhole = cut?.how === 'end';
    const coded = toChunk(payload);
    const before = coded.length - payload.length - 2;
    const room = cut ? cut.at - counted : Infinity;
    counted += isWhole ? payload.length : coded.length;
    if (room >= (isWhole ? payload.length : coded.length)) {
      passage.body = Buffer.concat([passage.body, payload]);
      client.write(coded);
      if (cut && counted === cut.at) cutNow(Buffer.alloc(0));
      return;
    }
    const taken = payload.subarray(0, Math.max(0, isWhole ? room : room - before));
    passage.body = Buffer.concat([passage.body, taken]);
    if (isWhole) cutNow(taken.length > 0 ? toChunk(taken) : taken);
    else cutNow(coded.subarray(0, room));
  }

  function readHead(): boolean {
    const end = rest.indexOf(HEAD_END);
    const length = end < 0 ? rest.length : end + HEAD_END.length;
    if (cut?.inHead && (end >= 0 || length > cut.at)) {
      cutNow(rest.subarray(0, Math.min(cut.at, length - 1)));
      return false;
    }
    if (end < 0 || !passage) return false;
    hasHead = true;
    const head = rest.subarray(0, length).toString('latin1');
    client.write(rest.subarray(0, length));
    rest = rest.subarray(length);
    options.onResponse?.(passage, head);
    if (!/^transfer-encoding: *chunked/im.test(head)) {
      if (!/^HTTP\/1.1 204/.test(head)) throw new Error(`A head that was not expected: ${head}`);
      finish();
      return false;
    }
    if (cut?.at === 0) cutNow(Buffer.alloc(0));
    else if (cut?.quietMs) quiet = setTimeout(() => cutNow(Buffer.alloc(0)), cut.quietMs);
    return !isOver;
  }

  function receive(bytes: Buffer): void {
    if (isOver) return;
    quiet?.refresh();
    rest = Buffer.concat([rest, bytes]);
    if (!hasHead && !readHead()) return;
    while (!isOver) {
      const line = rest.indexOf('\r\n');
      const size = Number.parseInt(rest.subarray(0, Math.max(line, 0)).toString(), 16);
      const end = line + 2 + size;
      if (line < 0 || rest.length < end + 2) return;
      const payload = rest.subarray(line + 2, end);
      rest = rest.subarray(end + 2);
      if (size > 0) forward(payload);
      else {
        client.write(LAST_CHUNK);
        finish();
      }
    }
  }

  function dial(head: string): Socket {
    passage = {
      viewer: /^x-viewer: *(\S+)/im.exec(head)?.[1] ?? '',
      method: head.slice(0, head.indexOf(' ')),
      cursor: /^last-event-id: *(\S+)/im.exec(head)?.[1],
      body: Buffer.alloc(0),
    };
    cut = options.onRequest(passage);
    const socket = connect({ port: options.port, host: '127.0.0.1', noDelay: true });
    socket.on('data', receive);
    socket.on('error', () => undefined);
    // Nobody but us ends anything here.
    socket.on('close', () => !isOver && client.destroy());
    return socket;
  }

  return {
    leave,
    send(bytes: Buffer): void {
      if (isOver) return;
      if (server) {
        server.write(bytes);
        return;
      }
      request = Buffer.concat([request, bytes]);
      const end = request.indexOf(HEAD_END);
      if (end < 0) return;
      server = dial(request.subarray(0, end).toString('latin1'));
      server.write(request);
    },
  };
}
