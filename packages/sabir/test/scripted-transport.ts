/** `SabirChatTransport` on a server that does as it is told. */
import type { ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { SabirChatTransport, type SabirChatTransportOptions } from '../src/clients/index.ts';
import type { Chunk } from '../src/core/chunks.ts';
import type { UIMessage } from '../src/core/message.ts';
import { SSE_DONE } from '../src/core/sse.ts';
import { type SeenRequest, SSE, startScriptedServer, toFrames } from './scripted-turn-server.ts';

export type TransportOptions = Partial<SabirChatTransportOptions<UIMessage>>;

export const WAIT = { timeout: 10_000 };
/** Tests do not wait for a network to calm down. */
export const FAST = { initialMs: 1, maxMs: 5 };
export const CHUNKS: Chunk[] = [
  { type: 'start', messageId: 'm' },
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'Hello' },
  { type: 'text-end', id: 't' },
  { type: 'finish', finishReason: 'stop' },
];
/** `CHUNKS` as frames, numbered. */
export const TEXTS = toFrames(CHUNKS).map(({ text }) => text);
export const message: UIMessage = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }] };
export const SEND = {
  trigger: 'submit-message' as const,
  chatId: 'c1',
  messageId: undefined,
  messages: [message],
  abortSignal: undefined as AbortSignal | undefined,
};

type Answer = (request: SeenRequest, response: ServerResponse, index: number) => void;

export async function startTransport(answer: Answer, options: TransportOptions = {}) {
  const intercept = (...given: Parameters<Answer>) => {
    answer(...given);
    return true;
  };
  const server = await startScriptedServer({ frames: [], intercept });
  onTestFinished(() => server.close());
  const transport = new SabirChatTransport({ api: server.api, backoff: FAST, ...options });
  return { ...server, transport };
}

export async function collect(stream: ReadableStream<unknown> | null): Promise<unknown[]> {
  const chunks: unknown[] = [];
  for await (const chunk of stream ?? []) chunks.push(chunk);
  return chunks;
}

export function answerAll(_request: SeenRequest, response: ServerResponse): void {
  response.writeHead(200, SSE).end(TEXTS.join('') + SSE_DONE);
}

export const cursorOf = ({ headers }: SeenRequest) => headers['last-event-id'];
