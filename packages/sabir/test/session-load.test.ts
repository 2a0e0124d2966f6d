/** Many sessions at once on one server, in a process of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { chatBody, openSse } from './gateway-client.ts';
import { startSessionChild } from './session-child.ts';

const SESSIONS = 200;
const DELTAS = 100;
const WHOLE = Array.from({ length: DELTAS }, (_, i) => `${i + 1} `).join('');

it('200 sessions with two viewers each, all streaming at once: every viewer’s answer is right [BAR-04]', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-load-'));
  const server = await startSessionChild(join(folder, 'sessions.db'));
  onTestFinished(async () => {
    await server.kill();
    rmSync(folder, { recursive: true });
  });
  const headers = { authorization: 'Bearer ann', 'x-sabir-detach': '1' };
  const at = (session: number, path: string) => `${server.url}/api/sessions/s${session}/${path}`;
  const ask = (session: number, text: string) =>
    fetch(at(session, 'chat'), { method: 'POST', headers, body: JSON.stringify(chatBody(text)) });
  const sessions = Array.from({ length: SESSIONS }, (_, i) => i);
  const before = await server.memory();

  const texts = await Promise.all(
    sessions.map(async (session) => {
      const first = openSse(await ask(session, `paced ${DELTAS}`));
      const second = openSse(await fetch(at(session, 'chat/c1/stream'), { headers }));
      await Promise.all([first.ended, second.ended]);
      return [first.text(), second.text()];
    }),
  );
  expect(texts).toHaveLength(SESSIONS);
  for (const [first, second] of texts) {
    expect(first).toBe(WHOLE);
    expect(second).toBe(WHOLE);
  }

  // The connections of the gateway linger for a while; what a session itself holds is what stays.
  await expect
    .poll(async () => (await (await fetch(`${server.url}/healthz`)).json()).status)
    .toBe('ok');
  const after = await server.memory();
  expect(after.sessions).toBe(SESSIONS);
  const perSession = (after.heapUsed - before.heapUsed) / SESSIONS;
  console.log(
    `${SESSIONS} idle sessions, each with its runner: ${(perSession / 1024).toFixed(1)} KB of heap each, ` +
      `${((after.rss - before.rss) / SESSIONS / 1024).toFixed(1)} KB of memory each`,
  );
  expect(perSession).toBeLessThan(200_000);
}, 120_000);
