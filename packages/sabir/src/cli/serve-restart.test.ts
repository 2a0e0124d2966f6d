/** How `sabir serve` ends, and what it finds when it starts again. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, vi } from 'vitest';
import { ask, historyOf, makeFolder, runCli, startServe } from '../../test/cli-process.ts';
import { sqliteSessionStore } from '../platforms/node/sessions.ts';

const WAIT = { timeout: 10_000, interval: 20 };
const MEMORY = ['--database', ':memory:', '--no-page'];

/** Says that it was asked, and goes on when there is a file `go-on`. */
const SLOW_AGENT = `
  import { existsSync, watch } from 'node:fs';
  export default async (sessionId) => ({
    name: 'slow',
    async *prompt({ signal }) {
      yield { type: 'text-delta', delta: 'the beginning, ' };
      const { promise, resolve, reject } = Promise.withResolvers();
      const watcher = watch('.', () => existsSync('go-on') && resolve());
      signal.addEventListener('abort', () => reject(signal.reason));
      console.error('asked', sessionId);
      try { await promise; } finally { watcher.close(); }
      yield { type: 'text-delta', delta: 'the end' };
    },
  });
`;

describe('sabir serve', () => {
  it('lets a running answer end, and has the history when it comes back [CLI-04]', async () => {
    const cwd = makeFolder();
    writeFileSync(join(cwd, 'slow.mjs'), SLOW_AGENT);
    const first = await startServe(['--agent', './slow.mjs', '--no-page'], { cwd });
    const answer = await ask(first.url);
    const text = answer.text();
    await first.says('asked');
    first.kill('SIGTERM');
    await first.says('answers that run have 10 seconds to finish');
    writeFileSync(join(cwd, 'go-on'), '');
    expect(await text).toContain('the end');
    expect(await first.code).toBe(0);

    const second = await startServe(['--no-page'], { cwd });
    const history = await historyOf(second.url);
    expect(history).toContain('hello');
    expect(history).toContain('the end');
  });

  it('ends an answer with an error that takes too long to end, and answers what waits when it comes back', async () => {
    const cwd = makeFolder();
    writeFileSync(join(cwd, 'slow.mjs'), SLOW_AGENT);
    const args = ['--agent', './slow.mjs', '--shutdown', '0.3', '--no-page'];
    const first = await startServe(args, { cwd });
    const running = (await ask(first.url)).text();
    await first.says('asked');
    const waiting = (await ask(first.url, { text: 'a free berth' })).text();
    first.kill('SIGTERM');
    expect(await running).toContain('"code":"shutting-down"');
    expect(await waiting).toContain('"type":"error"');
    expect(await first.code).toBe(0);

    const second = await startServe(['--no-page'], { cwd });
    await vi.waitFor(async () => expect(await historyOf(second.url)).toContain('Kalkara 2'), WAIT);
    const messages = JSON.parse(await historyOf(second.url)) as {
      role: string;
      metadata: object;
    }[];
    expect(messages).toMatchObject([
      { role: 'user' },
      {
        role: 'assistant',
        parts: [{ type: 'text', text: 'the beginning, ' }],
        metadata: { outcome: 'failed', code: 'shutting-down' },
      },
      { role: 'user' },
      { role: 'assistant', metadata: { outcome: 'finished' } },
    ]);
  });

  it('ends an answer with an error when it comes back after it was killed', async () => {
    const cwd = makeFolder();
    writeFileSync(join(cwd, 'slow.mjs'), SLOW_AGENT);
    const first = await startServe(['--agent', './slow.mjs', '--no-page'], { cwd });
    const running = ask(first.url).then((response) => response.text());
    running.catch(() => undefined);
    await first.says('asked');
    first.kill('SIGKILL');
    await first.code;
    const second = await startServe(['--no-page'], { cwd });
    await vi.waitFor(async () => {
      expect(JSON.parse(await historyOf(second.url))).toMatchObject([
        { role: 'user' },
        { role: 'assistant', metadata: { outcome: 'failed', code: 'server-restarted' } },
      ]);
    }, WAIT);
    expect(await (await ask(second.url, { text: 'a free berth' })).text()).toContain('Kalkara 2');
  });

  it.each([
    ['an older', 1, 'was written by an older version (schema 1; this one reads'],
    ['an older', 2, 'Keep that file with the version that wrote it, and choose another file.'],
    ['a newer', 99, 'was written by a newer version (schema 99; this one knows'],
  ])(
    'refuses a database of %s schema (%d) with a sentence and the code 1, and does not change it',
    async (_, version, sentence) => {
      const cwd = makeFolder();
      const file = join(cwd, 'sabir.db');
      sqliteSessionStore({ file }).close();
      const database = new DatabaseSync(file);
      database.exec(`PRAGMA user_version = ${version}`);
      database.close();
      const before = readFileSync(file);
      const { code, stdout, stderr } = await runCli(['serve', '--port', '0', '--no-page'], { cwd });
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(`${file} `);
      expect(stderr).toContain(sentence);
      expect(stderr).toMatch(/^[^\n]+\(--database\)\n$/);
      expect(readFileSync(file)).toEqual(before);
    },
  );

  it('ends at once at the second signal', async () => {
    const cwd = makeFolder();
    writeFileSync(join(cwd, 'slow.mjs'), SLOW_AGENT);
    const cases = [
      ['SIGTERM', 143],
      ['SIGINT', 130],
    ] as const;
    const codes = cases.map(async ([signal]) => {
      const server = await startServe(['--agent', './slow.mjs', ...MEMORY], { cwd });
      const answer = ask(server.url).then((response) => response.text());
      answer.catch(() => undefined);
      await server.says('asked');
      server.kill(signal);
      await server.says('again ends at once');
      server.kill(signal);
      return server.code;
    });
    expect(await Promise.all(codes)).toEqual(cases.map(([, code]) => code));
  });
});
