/**
 * The peer, in a process of its own: `pipeUIMessageStreamToResponse` of `ai` 7, fed from memory
 * (`/writer/COUNT`, `/generator/COUNT`) or from the same WebSocket (`/socket/SESSION`).
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { createUIMessageStream, pipeUIMessageStreamToResponse, type UIMessageChunk } from 'ai-v7';
import { WebSocket } from 'ws';

const WORDS = Array.from({ length: 64 }, (_, i) => `word${i} `);

function* chunksOf(count: number): Generator<UIMessageChunk> {
  yield { type: 'start', messageId: 'm' };
  yield { type: 'text-start', id: 't' };
  for (let i = 0; i < count; i++) {
    yield { type: 'text-delta', id: 't', delta: WORDS[i % WORDS.length] ?? '' };
  }
  yield { type: 'text-end', id: 't' };
  yield { type: 'finish' };
}

/** As its documentation feeds it. */
function fromWriter(response: ServerResponse, count: number): void {
  const stream = createUIMessageStream({
    execute({ writer }) {
      for (const chunk of chunksOf(count)) writer.write(chunk);
    },
  });
  pipeUIMessageStreamToResponse({ response, stream });
}

/** A stream whose reader asks for one chunk after the other. */
function fromGenerator(response: ServerResponse, count: number): void {
  const stream = NodeReadableStream.from(chunksOf(count)) as ReadableStream<UIMessageChunk>;
  pipeUIMessageStreamToResponse({ response, stream });
}

function fromSocket(response: ServerResponse, session: string): void {
  const socket = new WebSocket(`ws://127.0.0.1:${process.argv[2]}/sessions/${session}`);
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      controller.enqueue({ type: 'start', messageId: 'm' });
      controller.enqueue({ type: 'text-start', id: 't' });
      socket.on('open', () => socket.send('{"type":"prompt","content":"go"}'));
      socket.on('message', (data) => {
        const event = JSON.parse(String(data));
        if (event.type === 'message.part.text-delta') {
          controller.enqueue({ type: 'text-delta', id: 't', delta: event.delta });
        } else if (event.type === 'message.finalize') {
          controller.enqueue({ type: 'text-end', id: 't' });
          controller.enqueue({ type: 'finish' });
          controller.close();
          socket.close();
        }
      });
    },
  });
  pipeUIMessageStreamToResponse({ response, stream });
}

const server = createServer((request, response) => {
  request.resume();
  const [, kind, what = ''] = (request.url ?? '').split('/');
  if (kind === 'writer') fromWriter(response, Number(what));
  else if (kind === 'generator') fromGenerator(response, Number(what));
  else fromSocket(response, what);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.({ port: (server.address() as AddressInfo).port });
process.on('disconnect', () => process.exit());
