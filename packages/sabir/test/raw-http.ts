/** A server to be started in a test, a client that says any bytes, and bodies written by hand. */
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { onTestFinished, vi } from 'vitest';
import { type Fetch, type ServeOptions, serve } from '../src/platforms/node/serve.ts';

export const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

export async function startServer(fetch: Fetch, options: Partial<ServeOptions> = {}) {
  const server = await serve({
    fetch,
    shutdownMs: 0,
    logger: { warn: vi.fn(), error: vi.fn() },
    ...options,
  });
  onTestFinished(() => server.close());
  return server;
}

/** A client that says exactly what it is told to, and keeps what it hears. */
export function openSocket(port: number, text: string): Socket & { heard(): string } {
  const socket = connect(port, '127.0.0.1');
  let heard = '';
  socket.on('data', (bytes) => {
    heard += bytes;
  });
  socket.on('error', () => undefined);
  socket.write(text);
  onTestFinished(() => void socket.destroy());
  return Object.assign(socket, { heard: () => heard });
}

/** A body that the test writes by hand. */
export function createBody() {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  const seen = { isCancelled: false };
  const body = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given;
    },
    cancel: () => {
      seen.isCancelled = true;
    },
  });
  return { body, seen, write: (text: string) => controller.enqueue(Buffer.from(text)), controller };
}

/** Gives as much as is taken, and counts it. */
export function createEndlessBody(piece: Uint8Array) {
  const seen = { pieces: 0, isCancelled: false };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await setImmediate();
      seen.pieces += 1;
      controller.enqueue(piece);
    },
    cancel: () => {
      seen.isCancelled = true;
    },
  });
  return { body, seen };
}
