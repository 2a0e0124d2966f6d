/**
 * The least that can stand between a socket and an HTTP client on this platform, in a process of
 * its own: each message is written on as a frame, with no log, no resume, no translation.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket } from 'ws';

const server = createServer({ noDelay: true }, (request, response) => {
  request.resume();
  const session = request.url?.split('/').at(-1);
  const socket = new WebSocket(`ws://127.0.0.1:${process.argv[2]}/sessions/${session}`);
  response.setHeader('content-type', 'text/event-stream');
  socket.on('open', () => socket.send('{"type":"prompt","content":"go"}'));
  socket.on('message', (data) => {
    const { type, delta } = JSON.parse(String(data));
    if (type === 'message.part.text-delta') {
      response.write(`data: ${JSON.stringify({ type: 'text-delta', id: 't', delta })}\n\n`);
    } else if (type === 'message.finalize') {
      response.end('data: [DONE]\n\n');
      socket.close();
    }
  });
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.({ port: (server.address() as AddressInfo).port });
process.on('disconnect', () => process.exit());
