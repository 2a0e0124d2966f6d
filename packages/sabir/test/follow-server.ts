/** A follow stream over real sockets, whose frames the test writes. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished, vi } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import type { UIMessage } from '../src/core/message.ts';
import { encodeSse } from '../src/core/sse.ts';

type Seen = { method: string; path: string; headers: IncomingHttpHeaders; body: unknown };

export const userMessage = (id: string, text: string): UIMessage => ({
  id,
  role: 'user',
  parts: [{ type: 'text', text }],
});

/** A control frame of the follow stream. */
export const control = (name: string, data: object) =>
  `event: follow.${name}\ndata: ${JSON.stringify(data)}\n\n`;

export const stateFrame = (more: object = {}) =>
  control('state', {
    history: 'v1',
    running: null,
    me: { id: 'olga', role: 'owner' },
    queue: [],
    people: [],
    agent: { isConnected: true },
    ...more,
  });

/** The frames of a turn with one text, from a number on. */
export function turnFrames(turnId: string, messageId: string, text: string, from = 1): string[] {
  const chunks: Chunk[] = [
    { type: 'start', messageId },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: text },
    { type: 'text-end', id: 't' },
    { type: 'finish', messageMetadata: { outcome: 'finished' } },
  ];
  return chunks.map((chunk, i) => encodeSse(chunk, { id: `${turnId}:${i + 1}` })).slice(from - 1);
}

export async function startFollowServer(
  answer: (seen: Seen, response: ServerResponse) => boolean | undefined = () => undefined,
) {
  const requests: Seen[] = [];
  const streams: ServerResponse[] = [];
  let first = stateFrame();
  let history: UIMessage[] = [];
  const server = createServer(async (incoming, response) => {
    let text = '';
    for await (const part of incoming) text += part;
    const { method = '', url: path = '', headers } = incoming;
    const seen = { method, path, headers, body: text && JSON.parse(text) };
    requests.push(seen);
    if (answer(seen, response)) return;
    if (path.endsWith('/follow')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(first);
      streams.push(response);
      response.on('close', () => streams.splice(streams.indexOf(response), 1));
    } else if (path.endsWith('/messages')) response.end(JSON.stringify(history));
    else if (path.endsWith('/stream')) response.writeHead(204).end();
    else response.writeHead(202).end('{}');
  });
  const listen = async (port = 0) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const stop = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  const port = await listen();
  onTestFinished(async () => {
    if (server.listening) await stop();
  });
  return {
    api: `http://127.0.0.1:${port}/api/sessions/s1/chat`,
    requests,
    /** Follow streams that are open. */
    streams,
    follows: () => requests.filter(({ path }) => path.endsWith('/follow')),
    /** As soon as a client follows. */
    async send(...frames: string[]) {
      await vi.waitUntil(() => streams.length > 0, { timeout: 10_000 });
      for (const stream of streams) stream.write(frames.join(''));
    },
    /** What each connection begins with. */
    begin: (frame: string) => {
      first = frame;
    },
    keep: (messages: UIMessage[]) => {
      history = messages;
    },
    cut: () => streams.forEach((stream) => void stream.destroy()),
    stop,
    start: () => listen(port),
  };
}
