/** `resumable-stream` behind HTTP, in a process of its own: POST begins the answer, GET resumes it. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { createClient } from 'redis';
import { createResumableStreamContext } from 'resumable-stream';
import { encodeSse } from 'sabir';
import { answerDeltas } from './answer.ts';

const [url = '', part = 'text-1', cut = 'tokens'] = process.argv.slice(2);
const [publisher, subscriber] = await Promise.all(
  [1, 2].map(() => createClient({ url }).connect()),
);
const context = createResumableStreamContext({
  waitUntil: null,
  publisher: publisher as never,
  subscriber: subscriber as never,
});
const frames = [
  encodeSse({ type: 'start', messageId: 'm1' }),
  encodeSse({ type: 'text-start', id: part }),
  ...answerDeltas(cut).map((delta) => encodeSse({ type: 'text-delta', id: part, delta })),
];
const open = new Set<ReadableStreamDefaultController<string>>();
process.on('message', () => {
  for (const controller of open) controller.close();
  open.clear();
});
process.on('disconnect', () => process.exit());

/** Says all of it at once, and ends when it is told to. */
function makeStream(): ReadableStream<string> {
  return new ReadableStream({
    start(controller) {
      for (const frame of frames) controller.enqueue(frame);
      open.add(controller);
    },
  });
}

const server = createServer(async (request, response) => {
  request.resume();
  const id = request.url?.split('/').at(-1) ?? '';
  const stream =
    request.method === 'POST'
      ? await context.createNewResumableStream(id, makeStream)
      : await context.resumeExistingStream(id);
  if (!stream) return response.writeHead(204).end();
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  Readable.fromWeb(stream as never).pipe(response);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.({ port: (server.address() as AddressInfo).port });
