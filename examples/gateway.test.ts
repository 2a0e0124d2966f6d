import { DefaultChatTransport } from 'ai';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createClient } from '../packages/sabir/test/real-clients.ts';
import { type ExampleServer, startServer } from './test/start-server.ts';

let server: ExampleServer;
beforeAll(async () => {
  server = await startServer('gateway/server.ts');
});
afterAll(() => server?.stop());

const LONG = 'and so on '.repeat(100).trim();

function createChat(chatId: string) {
  const transport = new DefaultChatTransport({ api: `${server.url}/api/sessions/any/chat` });
  return createClient('ai@7', transport, { id: chatId });
}

const textOf = (parts: { type: string; text?: string }[] = []) =>
  parts.map(({ type, text = '' }) => (type === 'text' ? text : '')).join('');

it('answers, and says on the server how the turn ended', async () => {
  const { chat, result } = await createChat('one');
  await chat.sendMessage({ text: 'good morning' });
  expect(result()).toMatchObject({ status: 'ready', error: undefined });
  expect(textOf(result().message?.parts)).toBe('You wrote “good morning”.');
  await server.waitFor(/finished: message \w+/);
});

it('lets a second client join in the middle, and stops for both', async () => {
  const first = await createChat('two');
  const sent = first.chat.sendMessage({ text: LONG });
  await vi.waitUntil(() => textOf(first.result().message?.parts).includes('so on'));
  const second = await createChat('two');
  const watched = second.chat.resumeStream();
  await vi.waitUntil(() => textOf(second.result().message?.parts).includes('so on'));
  const stop = `${server.url}/api/sessions/any/chat/two/stop`;
  expect((await fetch(stop, { method: 'POST' })).status).toBe(202);
  await Promise.all([sent, watched]);
  await server.waitFor(/stopped: message \w+/);
  expect(first.result().message).toEqual(second.result().message);
  expect(first.result().message?.metadata).toMatchObject({ outcome: 'stopped' });
});
