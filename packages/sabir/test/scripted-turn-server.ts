/**
 * A gateway's wire without a gateway: a turn is a list of frames in memory, and any connection can
 * be cut after any byte of its body. Speaks the resume protocol over real sockets.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Chunk } from '../src/core/chunks.ts';
import { encodeSse, SSE_DONE } from '../src/core/sse.ts';

export type ScriptedFrame = { text: string; seq: number; hasId: boolean };

/** What came in, in order. */
export type SeenRequest = {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
};

export type ScriptedServer = {
  /** Of `POST …/chat`. */
  api: string;
  requests: SeenRequest[];
  /** Connections that are open now. */
  connections(): Promise<number>;
  close(): Promise<void>;
};

/** Answers a request by hand; true if it did. */
export type Intercept = (
  request: SeenRequest,
  response: ServerResponse,
  index: number,
) => boolean | undefined;

/** Numbers chunks from 1; `isLast` says which frames complete what their number stands for. */
export function toFrames(
  chunks: Chunk[],
  turnId = 'turn:1',
  isLast: (index: number) => boolean = () => true,
): ScriptedFrame[] {
  let seq = 1;
  return chunks.map((chunk, index) => {
    const hasId = index === chunks.length - 1 || isLast(index);
    const id = hasId ? { id: `${turnId}:${seq}` } : {};
    const frame = { text: encodeSse(chunk, { ...id, eventName: true }), seq, hasId };
    if (hasId) seq += 1;
    return frame;
  });
}

/** What follows a cursor; all of it without one, or with one that is not known. */
export function framesAfter(frames: ScriptedFrame[], turnId: string, cursor: string | undefined) {
  const seq = cursor?.startsWith(`${turnId}:`) ? Number(cursor.slice(turnId.length + 1)) : 0;
  return frames.filter((frame) => frame.seq > seq);
}

export const SSE = { 'content-type': 'text/event-stream; charset=utf-8' };

/** Writes so much of a body, and then no more: the connection is gone, not ended. */
export function cutAfter(response: ServerResponse, bytes: Uint8Array): void {
  if (bytes.length === 0) response.flushHeaders();
  response.write(bytes, () => response.socket?.destroy());
}

export async function startScriptedServer(options: {
  frames: ScriptedFrame[];
  turnId?: string;
  /** After how many bytes of its body each connection is cut; those without a number are not. */
  cuts?: Array<number | undefined>;
  /** Told where each cut fell. */
  onCut?(body: Uint8Array, at: number): void;
  intercept?: Intercept;
}): Promise<ScriptedServer> {
  const { frames, turnId = 'turn:1', intercept } = options;
  const cuts = [...(options.cuts ?? [])];
  const requests: SeenRequest[] = [];

  const server = createServer(async (incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8');
    for await (const text of incoming) body += text;
    const { method = '', url = '', headers } = incoming;
    const request = { method, url, headers, body };
    requests.push(request);
    if (intercept?.(request, response, requests.length - 1)) return;
    const cursor = headers['last-event-id'] as string | undefined;
    const texts = framesAfter(frames, turnId, method === 'GET' ? cursor : undefined);
    const bytes = Buffer.from(texts.map(({ text }) => text).join('') + SSE_DONE);
    response.writeHead(200, SSE);
    const cut = cuts.shift();
    if (cut === undefined) {
      response.end(bytes);
      return;
    }
    const at = cut % bytes.length;
    options.onCut?.(bytes, at);
    cutAfter(response, bytes.subarray(0, at));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    api: `http://127.0.0.1:${port}/api/sessions/s1/chat`,
    requests,
    connections: () =>
      new Promise((resolve) => server.getConnections((_error, count) => resolve(count))),
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
