/**
 * An agent behind a WebSocket, in a process of its own. What a session does is in its id:
 * `burst-COUNT-CORK` sends as fast as it can, that many messages to a socket write;
 * `paced-COUNT-PER_SECOND-INDEX` sends at a pace and puts the time of sending into each message.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
await once(server, 'listening');
process.send?.({ port: (server.address() as AddressInfo).port });

// Every burst sends the same texts: making them is not what is measured.
const WORDS = Array.from({ length: 64 }, (_, i) => `word${i} `);

server.on('connection', (socket, request) => {
  const [kind, ...numbers] = /sessions\/([^/?]+)/.exec(request.url ?? '')?.[1]?.split('-') ?? [];
  const [count = 0, second = 1, index = 0] = numbers.map(Number);
  socket.send(
    JSON.stringify({ type: 'init', session: { id: 's', status: 'running', messages: [] } }),
  );
  socket.on('message', (data) => {
    if (JSON.parse(String(data)).type !== 'prompt') return;
    if (kind === 'burst') void burst(socket, count, second);
    else void pace(socket, count, second, index);
  });
});

let turns = 0;

function begin(socket: WebSocket): string {
  const turnId = `turn-${++turns}`;
  socket.send(
    JSON.stringify({ type: 'message.create', turnId, channelType: 'web', channelId: 'default' }),
  );
  return turnId;
}

function end(socket: WebSocket, turnId: string): void {
  socket.send(JSON.stringify({ type: 'message.finalize', turnId, reason: 'end_turn' }));
}

/** The raw stream under a socket, to send several messages with one write. */
function rawOf(socket: WebSocket): { cork(): void; uncork(): void; writableLength: number } {
  return (socket as unknown as { _socket: ReturnType<typeof rawOf> })._socket;
}

async function burst(socket: WebSocket, count: number, cork: number): Promise<void> {
  const raw = rawOf(socket);
  const turnId = begin(socket);
  const messages = WORDS.map((delta) =>
    Buffer.from(JSON.stringify({ type: 'message.part.text-delta', turnId, delta })),
  );
  for (let sent = 0; sent < count; ) {
    if (cork > 1) raw.cork();
    for (let i = 0; i < cork && sent < count; i++, sent++) {
      socket.send(messages[sent % messages.length] as Buffer, { binary: false });
    }
    if (cork > 1) raw.uncork();
    // Waits for the reader, as a real agent does by being slower.
    if (raw.writableLength > 1_000_000) await setImmediate();
  }
  end(socket, turnId);
}

async function pace(
  socket: WebSocket,
  count: number,
  perSecond: number,
  index: number,
): Promise<void> {
  const turnId = begin(socket);
  const every = 1000 / perSecond;
  const start = performance.now() + (index % 100) * (every / 100);
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.min(count, Math.floor((performance.now() - start) / every));
    for (; sent < due; sent++) {
      const delta = `${process.hrtime.bigint()} `;
      socket.send(JSON.stringify({ type: 'message.part.text-delta', turnId, delta }));
    }
    if (sent < count) return;
    clearInterval(timer);
    end(socket, turnId);
  }, 1);
}
process.on('disconnect', () => process.exit());
