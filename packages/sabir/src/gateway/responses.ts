import { type ByteSink, toByteResponse } from '../core/byte-source.ts';
import { INTERNAL_ERROR, SabirError } from '../core/errors.ts';

export function nothing(): Response {
  return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } });
}

export function json(status: number, body: unknown): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } });
}

/** So much of it at most is handed to a client at once. */
const PIECE_BYTES = 64 * 1024;

export function toJsonBytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Sends JSON as fast as its client takes it. `onOver` runs once, when all is sent or the client is gone. */
export function sendJson(bytes: Uint8Array, signal: AbortSignal, onOver: () => void): Response {
  let sink: ByteSink | undefined;
  let at = 0;
  const source = {
    open(given: ByteSink) {
      sink = given;
    },
    resume() {
      while (at < bytes.length) {
        const piece = bytes.subarray(at, at + PIECE_BYTES);
        at += piece.length;
        if (!sink?.write(piece)) return;
      }
      onOver();
      sink?.end();
    },
    cancel: onOver,
  };
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  return toByteResponse(source, { headers }, signal);
}

export function toErrorResponse(error: unknown): Response {
  const known = error instanceof SabirError ? error : new SabirError(INTERNAL_ERROR);
  const { code, status, message, remedy } = known;
  const response = json(status, { code, message, remedy });
  if (status === 401) response.headers.set('www-authenticate', 'Bearer');
  if (status === 503) response.headers.set('retry-after', '1');
  if (status === 429) response.headers.set('retry-after', '5');
  // The rest of the body would come on this connection.
  if (status === 408) response.headers.set('connection', 'close');
  return response;
}
