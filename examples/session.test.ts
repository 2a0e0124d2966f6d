import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DefaultChatTransport } from 'ai';
import { afterAll, expect, it, vi } from 'vitest';
import { createClient } from '../packages/sabir/test/real-clients.ts';
import { type ExampleServer, startServer } from './test/start-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'sabir-example-'));
let server: ExampleServer | undefined;
afterAll(async () => {
  vi.unstubAllEnvs();
  await server?.stop();
  rmSync(folder, { recursive: true });
});

const start = () => startServer('session/server.ts');

it('asks, goes on with the answer, and remembers it after a restart', async () => {
  vi.stubEnv('DATABASE', join(folder, 'sessions.db'));
  server = await start();
  const api = `${server.url}/api/sessions/quay/chat`;
  const { chat, result } = await createClient('ai@7', new DefaultChatTransport({ api }), {
    id: 'c',
  });
  const sent = chat.sendMessage({ text: 'Gozo' });
  const question = await vi.waitUntil(() =>
    result().message?.parts.find(({ type }) => type === 'data-question'),
  );
  const { questionId } = (question as unknown as { data: { questionId: string } }).data;
  const body = JSON.stringify({ questionId, answer: 'Yes' });
  expect((await fetch(`${api}/c/answer`, { method: 'POST', body })).status).toBe(202);
  await sent;
  const text = 'local wants to go to Gozo. Step aboard.';
  expect(textOf(result().message)).toBe(text);

  await server.stop();
  server = await start();
  const history = await (await fetch(`${server.url}/api/sessions/quay/messages`)).json();
  expect(history.map(textOf)).toEqual(['Gozo', text]);
});

function textOf(message?: { parts: { type: string; text?: string }[] }): string {
  return (message?.parts ?? []).map(({ type, text }) => (type === 'text' ? text : '')).join('');
}
