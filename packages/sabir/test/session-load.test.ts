/** Many sessions at once on one server, in a process of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { chatBody, openSse } from './gateway-client.ts';
import { startSessionChild } from './session-child.ts';

const SESSIONS = 200;
// Long enough that the second viewer comes while the turn runs.
const DELTAS = 500;
const WHOLE = Array.from({ length: DELTAS }, (_, i) => `${i + 1} `).join('');

/** A server with a database, and who asks it. */
async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-load-'));
  // What is kept of ended turns for those who come back would pass for a leak.
  const server = await startSessionChild(join(folder, 'sessions.db'), { retentionMs: 0 });
  onTestFinished(async () => {
    await server.kill();
    rmSync(folder, { recursive: true });
  });
  const headers = { authorization: 'Bearer ann', 'x-sabir-detach': '1' };
  const at = (session: string, path: string) => `${server.url}/api/sessions/${session}/${path}`;
  return {
    server,
    ask: (session: string, text: string, chat = 'c1') =>
      fetch(at(session, 'chat'), {
        method: 'POST',
        headers,
        body: JSON.stringify(chatBody(text, { id: chat })),
      }),
    resume: (session: string) => fetch(at(session, 'chat/c1/stream'), { headers }),
  };
}

it('200 sessions with two viewers each, all streaming at once: every viewer’s answer is right [BAR-04]', async () => {
  const { server, ask, resume } = await start();
  const sessions = Array.from({ length: SESSIONS }, (_, i) => `s${i}`);
  const before = await server.memory();

  const texts = await Promise.all(
    sessions.map(async (session) => {
      const first = openSse(await ask(session, `paced ${DELTAS}`));
      const second = openSse(await resume(session));
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
    `${SESSIONS} idle sessions, each with its agent: ${(perSession / 1024).toFixed(1)} KB of heap each, ` +
      `${((after.rss - before.rss) / SESSIONS / 1024).toFixed(1)} KB of memory each`,
  );
  expect(perSession).toBeLessThan(200_000);
}, 120_000);

it('a thousand prompts one after another on the real chain: the heap does not grow, the first byte comes soon [RFC-INT-7.3] [RFC-INT-7.4]', async () => {
  const { server, ask } = await start();
  const firstBytes: number[] = [];
  async function askMany(count: number, label: string): Promise<void> {
    for (let i = 0; i < count; i++) {
      const begin = performance.now();
      const reader = (await ask('s', 'text', `${label}-${i}`)).body?.getReader();
      await reader?.read();
      firstBytes.push(performance.now() - begin);
      while (!(await reader?.read())?.done);
    }
  }
  await askMany(300, 'warm');
  const before = (await server.memory()).heapUsed;
  firstBytes.length = 0;
  await askMany(1_000, 'many');
  const perTurn = ((await server.memory()).heapUsed - before) / 1_000;
  const p99 = firstBytes.sort((a, b) => a - b)[989] as number;
  console.log(
    `a thousand turns: ${perTurn.toFixed(0)} bytes a turn; first byte p99 ${p99.toFixed(1)} ms`,
  );
  expect(perTurn).toBeLessThan(2_048);
  expect(p99).toBeLessThan(200);
}, 120_000);
