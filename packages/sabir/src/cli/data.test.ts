/** `sabir data` as a process, on a file that a real `sabir serve` has written. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeFolder, runCli, startServe } from '../../test/cli-process.ts';

const ECHO = `export default () => ({ name: 'echo', async *prompt({ text }) {
  yield { type: 'text-delta', delta: 'You said ' + text };
} });`;

/** Olga alone in one session, Bob alone in another, and both in a third. */
async function writeChats() {
  const cwd = makeFolder();
  writeFileSync(join(cwd, 'echo.mjs'), ECHO);
  const tokens = ['--token', 'olga=first-secret', '--token', 'bob=second-secret'];
  const server = await startServe(['--agent', './echo.mjs', '--no-page', ...tokens], { cwd });
  const say = async (session: string, token: string, text: string) => {
    const response = await fetch(`${server.url}/api/sessions/${session}/chat`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({
        id: 'c',
        messages: [{ id: text, role: 'user', parts: [{ type: 'text', text }] }],
      }),
    });
    expect(await response.text()).toContain(`You said ${text}`);
  };
  await say('hers', 'first-secret', 'herring for olga');
  await say('shared', 'first-secret', 'haddock for olga');
  await say('shared', 'second-secret', 'salmon');
  await say('his', 'second-secret', 'trout');
  const data = (...args: string[]) => runCli(['data', ...args], { cwd });
  const stop = async () => {
    server.kill('SIGTERM');
    expect(await server.code).toBe(0);
  };
  /** Every byte of the file, and of what SQLite keeps beside it. */
  const bytes = () =>
    readdirSync(cwd)
      .filter((name) => name.startsWith('sabir.db'))
      .map((name) => readFileSync(join(cwd, name), 'latin1'))
      .join('');
  return { cwd, data, stop, bytes };
}

describe('sabir data', () => {
  it('lists sessions, backs them up for their owner alone, and deletes one person’s data for good', async () => {
    const { cwd, data, stop, bytes } = await writeChats();
    const busy = await data('list');
    expect(busy).toMatchObject({ code: 1, stdout: '' });
    expect(busy.stderr).toContain('is in use: another process has it open.');
    await stop();

    const list = await data('list');
    expect(list.stdout).toMatch(/^last change +bytes +messages +session\n/);
    for (const row of [/ 2 {2}hers\n/, / 4 {2}shared\n/, / 2 {2}his\n/]) {
      expect(list.stdout).toMatch(row);
    }
    expect(list.stdout).toMatch(/\n3 sessions, \d{3,} bytes\n$/);

    expect(await data('backup', '--to', 'copy.db')).toMatchObject({ code: 0 });
    expect(statSync(join(cwd, 'copy.db')).mode & 0o777).toBe(0o600);
    expect((await data('list', '--database', 'copy.db')).stdout).toBe(list.stdout);
    const again = await data('backup', '--to', 'copy.db');
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('is there already') });

    const counts = '1 sessions, 2 prompts, 4 messages, 2 participants.\n';
    const dry = await data('delete-user', '--user', 'olga', '--dry-run');
    expect(dry.stdout).toBe(`Would delete ${counts}`);
    expect(bytes()).toContain('herring');
    expect((await data('delete-user', '--user', 'olga')).stdout).toBe(`Deleted ${counts}`);
    for (const gone of ['herring', 'haddock', 'olga', 'hers']) expect(bytes()).not.toContain(gone);
    for (const kept of ['salmon', 'trout', 'bob']) expect(bytes()).toContain(kept);
    expect((await data('delete-user', '--user', 'olga')).stdout).toContain('Deleted 0 sessions');
    expect((await data('list')).stdout).toMatch(/ 2 {2}shared\n/);

    expect((await data('purge', '--days', '1')).stdout).toContain('Deleted 0 sessions');
    const all = 'delete 2 sessions, 2 prompts, 4 messages, 2 participants.\n';
    expect((await data('purge', '--days', '0', '--dry-run')).stdout).toBe(`Would ${all}`);
    expect((await data('purge', '--days', '0')).stdout).toContain('Deleted 2 sessions');
    for (const gone of ['salmon', 'trout', 'bob']) expect(bytes()).not.toContain(gone);
  });

  it('says what is missing, wrong or not there, and makes no file', async () => {
    const cwd = makeFolder();
    const data = (...args: string[]) => runCli(['data', ...args], { cwd });
    const [absent, unknown, needs, foreign, days, help] = await Promise.all([
      data('list'),
      data('lits'),
      data('purge'),
      data('list', '--dry-run'),
      data('purge', '--days', 'two'),
      data(),
    ]);
    expect(absent).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^There is no file .*sabir\.db/),
    });
    expect(existsSync(join(cwd, 'sabir.db'))).toBe(false);
    expect(unknown).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Did you mean list?'),
    });
    expect(needs).toMatchObject({
      code: 2,
      stderr: 'sabir data purge needs --days <number>, such as 90.\n',
    });
    expect(foreign).toMatchObject({ code: 2, stderr: 'sabir data list takes no --dry-run.\n' });
    expect(days).toMatchObject({ code: 2, stderr: expect.stringContaining('not “two”') });
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('delete-user') });
  });
});
