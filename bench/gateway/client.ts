/** Reads streams as a client does: every frame found, every chunk parsed. */
import { request } from 'node:http';
import { createSseDecoder } from 'sabir';
import { WebSocket } from 'ws';

type OnChunk = (chunk: { type: string; delta?: string }) => void;

let chats = 0;

/** Posts a message and resolves when the answer has been read to its end. */
export function readSse(port: number, path: string, onChunk: OnChunk, text = 'go'): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const body = JSON.stringify({
    id: `chat-${++chats}`,
    messages: [{ id: `m${chats}`, role: 'user', parts: [{ type: 'text', text }] }],
    trigger: 'submit-message',
  });
  const decoder = createSseDecoder({
    frame({ data }) {
      if (data !== '[DONE]') onChunk(JSON.parse(data));
    },
  });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const sent = request({ host: '127.0.0.1', port, path, method: 'POST', headers }, (response) => {
    if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode}`));
    response.on('data', (bytes) => decoder.push(bytes));
    response.on('end', resolve);
    response.on('error', reject);
  });
  sent.on('error', reject);
  sent.end(body);
  return promise;
}

/** The same, directly on the agent's socket. */
export function readSocket(port: number, session: string, onChunk: OnChunk): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = new WebSocket(`ws://127.0.0.1:${port}/sessions/${session}`);
  socket.on('open', () => socket.send('{"type":"prompt","content":"go"}'));
  socket.on('error', reject);
  socket.on('message', (data) => {
    const event = JSON.parse(String(data));
    if (event.type === 'message.part.text-delta') {
      onChunk({ type: 'text-delta', delta: event.delta });
    } else if (event.type === 'message.finalize') {
      socket.close();
      resolve();
    }
  });
  return promise;
}
