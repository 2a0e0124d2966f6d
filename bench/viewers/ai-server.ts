/** The peer, in a process of its own: one source, and the pipe of `ai` 7 for each viewer. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createUIMessageStream, pipeUIMessageStreamToResponse, type UIMessageChunk } from 'ai-v7';
import { answerMarks, deltas, whenTold } from './source.ts';

const viewers = new Set<(chunk: UIMessageChunk) => void>();
const ended = whenTold('end');

const server = createServer({ noDelay: true }, (request, response) => {
  request.resume();
  const stream = createUIMessageStream({
    async execute({ writer }) {
      writer.write({ type: 'text-start', id: 't' });
      viewers.add(writer.write);
      await ended;
      writer.write({ type: 'text-end', id: 't' });
    },
  });
  pipeUIMessageStreamToResponse({ response, stream });
});
server.listen(0, '127.0.0.1', 4_096);
await once(server, 'listening');
answerMarks({ port: (server.address() as AddressInfo).port });

await whenTold('go');
for await (const batch of deltas()) {
  for (const delta of batch)
    for (const write of viewers) write({ type: 'text-delta', id: 't', delta });
}
