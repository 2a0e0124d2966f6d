/** A chat on a server that the test writes the answers of. */
import { vi } from 'vitest';
import { ChatStream, type ChatStreamOptions } from '../src/clients/chat-stream.ts';
import { event, startContractServer } from './contract-server.ts';

export const META = event('meta', { runId: 'r1', model: 'm' });
export const START = event('message.start', { messageId: 'a1', role: 'assistant' });
export const delta = (text: string) => event('message.delta', { messageId: 'a1', delta: text });
export const END = event('message.end', { messageId: 'a1' });
export const DONE = event('done', {
  finishReason: 'stop',
  usage: { inputTokens: 1, outputTokens: 2 },
});

type ServerOptions = Parameters<typeof startContractServer>[0];

export async function startChat(
  server: ServerOptions = {},
  options: Partial<ChatStreamOptions> = {},
) {
  const running = await startContractServer(server);
  const chat = new ChatStream({ api: running.api, maxWaitMs: 5, ...options });
  const shown: ReturnType<typeof chat.getSnapshot>[] = [];
  chat.subscribe(() => shown.push(chat.getSnapshot()));
  const state = () => chat.getSnapshot();
  const until = (test: () => unknown) => vi.waitUntil(test, { timeout: 10_000, interval: 2 });
  /** The stream that a request opened. */
  const stream = async (index = 0) => {
    await until(() => running.streams[index]);
    return running.streams[index] as (typeof running.streams)[number];
  };
  const text = () =>
    state()
      .messages.at(-1)
      ?.parts.map((part) => (part.type === 'text' ? part.text : ''))
      .join('');
  return { ...running, chat, shown, state, until, stream, text };
}
