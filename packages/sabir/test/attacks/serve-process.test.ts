/** Attacks on `sabir serve` and `sabir data` as processes: tokens, logs, files, agents, signals. */
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { makeFolder, runCli, startServe } from '../cli-process.ts';

const NO_PAGE = '--no-page';
const MEMORY = ['--database', ':memory:', NO_PAGE];
const ECHO = `export default () => ({ name: 'echo', async *prompt({ text }) {
  yield { type: 'text-delta', delta: text };
} });`;
const JWT_SECRET = 'a secret that is long enough for tests';

function ask(url: string, text: string, headers: Record<string, string> = {}, session = 's') {
  return fetch(`${url}/api/sessions/${session}/chat`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      id: 'c',
      messages: [{ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }],
    }),
  });
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

function sign(claims: Record<string, unknown>): Promise<string> {
  const expiry = { exp: Math.floor(Date.now() / 1_000) + 60 };
  return new SignJWT({ ...expiry, ...claims })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(JWT_SECRET));
}

/** Opens a socket; gives its first event, or the status it was refused with. */
function connect(url: string, options: { headers?: Record<string, string>; query?: string } = {}) {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const address = `${url.replace('http', 'ws')}/api/sessions/s/ws?role=client${options.query ?? ''}`;
  const socket = new WebSocket(address, { headers: options.headers ?? {} });
  socket.once('message', (frame) => resolve(JSON.parse(String(frame))));
  socket.once('unexpected-response', (_, { statusCode }) => resolve(statusCode));
  socket.on('error', () => undefined);
  onTestFinished(() => socket.terminate());
  return promise;
}

describe('sabir serve', () => {
  it('takes no role, name or sign-in from claims of another shape, an address or another scheme', async () => {
    const server = await startServe([...MEMORY, '--log', 'info'], {
      env: { SABIR_JWT_SECRET: JWT_SECRET, SABIR_TOKEN: 'owner-secret-1' },
    });
    const { url } = server;
    const refused = [
      { sub: 'eve', role: ['owner'] },
      { sub: 'eve', role: { owner: true } },
      { sub: 'eve', role: 'OWNER' },
      { sub: 'eve', role: 'owner ' },
      { sub: 'eve', role: null },
      { sub: ['owner'] },
      { sub: '' },
      { sub: 7 },
      { role: 'owner' },
    ];
    for (const claims of refused) {
      const response = await ask(url, 'x', bearer(await sign(claims)));
      expect(response.status, JSON.stringify(claims)).toBe(401);
    }
    const [, claims] = (await sign({ sub: 'eve', role: 'owner' })).split('.');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    expect((await ask(url, 'x', bearer(`${none}.${claims}.`))).status).toBe(401);

    // The name that the owner's token has is no more than a name.
    const namesake = await sign({ sub: 'owner', role: 'viewer' });
    expect((await ask(url, 'x', bearer(namesake))).status).toBe(404);
    expect(await connect(url, { headers: bearer(namesake) })).toMatchObject({
      data: { role: 'viewer' },
    });
    expect((await ask(url, 'x', bearer('owner-secret-1'))).status).toBe(200);

    const secret = 'owner-secret-1';
    for (const query of [
      `&token=${secret}`,
      `&access_token=${secret}`,
      `&authorization=${secret}`,
    ]) {
      expect(await connect(url, { query })).toBe(401);
    }
    const basic = Buffer.from(`owner:${secret}`).toString('base64');
    for (const authorization of [
      `Basic ${basic}`,
      secret,
      `Token ${secret}`,
      `Bearer ${secret}x`,
    ]) {
      expect(await connect(url, { headers: { authorization } })).toBe(401);
    }
    expect(await connect(url, { headers: { cookie: `token=${secret}` } })).toBe(401);

    // A name from a JWT is data, not lines of the log.
    const forger = await sign({ sub: 'eve\n2026 error forged', name: 'x\r\n2026 error forged' });
    expect((await ask(url, 'x', bearer(forger))).status).toBe(200);
    expect(server.output.stderr).not.toMatch(/^2026 error forged/m);
    // Neither the secrets nor the tokens that were tried are written anywhere.
    const written = server.output.stdout + server.output.stderr;
    for (const word of [secret, JWT_SECRET, namesake, forger]) expect(written).not.toContain(word);
  });

  it('survives agents that throw at once, that never begin, and that answer with nonsense', async () => {
    const cwd = makeFolder();
    writeFileSync(
      join(cwd, 'hostile.mjs'),
      `export default (sessionId) => {
        if (sessionId === 'throws') throw new Error('hunter2');
        if (sessionId === 'never') return new Promise(() => {});
        if (sessionId === 'nothing') return null;
        return { name: 'hostile', prompt({ text, emit, ask }) {
          if (text === 'throw') throw new Error('at once');
          if (text === 'no iterable') return 5;
          const cycle = {}; cycle.cycle = cycle;
          if (text === 'nonsense') return (async function* () {
            yield null; yield 5; yield { type: '__proto__' }; yield { type: 'text-delta' };
            yield { type: 'tool-input-available', toolCallId: {} };
            emit(null); emit(5); emit({ type: {} }); emit({ type: '__proto__', cycle, big: 5n });
            ask({ text: 5, options: [null], expiresInMs: 'soon', questionId: 'q' });
          })();
          if (text === 'cycle') return (async function* () {
            yield { type: 'data-x', data: cycle };
          })();
          return (async function* () { yield { type: 'text-delta', delta: 'still here' }; })();
        } };
      };`,
    );
    const server = await startServe(['--agent', './hostile.mjs', '--log', 'info', ...MEMORY], {
      cwd,
    });
    for (const session of ['throws', 'nothing']) {
      expect(await (await ask(server.url, 'x', {}, session)).text(), session).toContain('"error"');
    }
    const stuck = ask(server.url, 'x', {}, 'never').catch(() => undefined);
    for (const text of ['throw', 'no iterable', 'nonsense', 'cycle']) {
      const response = await ask(server.url, text, {}, 'odd');
      await response.text();
    }
    expect(await (await ask(server.url, 'fine', {}, 'odd')).text()).toContain('still here');
    server.kill('SIGTERM');
    await server.says('again ends at once');
    server.kill('SIGTERM');
    expect(await server.code).toBe(143);
    await stuck;
  });

  it('ends within its time on SIGTERM while sockets are open and answers run', async () => {
    const server = await startServe([...MEMORY, '--shutdown', '1']);
    const answer = ask(server.url, 'the long story').then((response) => response.text());
    answer.catch(() => undefined);
    const sockets = Array.from({ length: 20 }, () => connect(server.url));
    for (const init of await Promise.all(sockets)) expect(init).toMatchObject({ type: 'init' });
    const began = performance.now();
    server.kill('SIGTERM');
    expect(await server.code).toBe(0);
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it('does not write through a link into the file of another program', async () => {
    const cwd = makeFolder();
    const victim = join(cwd, 'victim.txt');
    writeFileSync(victim, 'not a database, and long enough to be looked at as one'.repeat(100));
    const before = readFileSync(victim);
    symlinkSync(victim, join(cwd, 'sabir.db'));
    const { code, stderr } = await runCli(['serve', '--port', '0', NO_PAGE], { cwd });
    expect(code).toBe(1);
    expect(stderr).toContain('is no SQLite database');
    expect(readFileSync(victim)).toEqual(before);
  });
});

describe('sabir data', () => {
  it('deletes the data of exactly one person, not of those with similar ids', async () => {
    const cwd = makeFolder();
    const env = { SABIR_JWT_SECRET: JWT_SECRET };
    writeFileSync(join(cwd, 'echo.mjs'), ECHO);
    const server = await startServe(['--agent', './echo.mjs', NO_PAGE], { cwd, env });
    // A capital, a prefix, a wildcard of SQL, an accent written in two ways, a space, a quote.
    const people = [
      'olga',
      'Olga',
      'olg',
      'olga2',
      'olg_',
      '%',
      'ólga',
      'o\u0301lga',
      'olga ',
      "'",
    ];
    for (const [n, sub] of people.entries()) {
      const token = await sign({ sub, role: 'owner' });
      await (await ask(server.url, `words-of-${n}.`, bearer(token), `session-${n}`)).text();
    }
    expect(statSync(join(cwd, 'sabir.db')).mode & 0o077).toBe(0);
    expect(statSync(join(cwd, 'sabir.db-wal')).mode & 0o077).toBe(0);
    server.kill('SIGTERM');
    expect(await server.code).toBe(0);
    const left = () => {
      const bytes = readFileSync(join(cwd, 'sabir.db'), 'latin1');
      return people.filter((_, n) => bytes.includes(`words-of-${n}.`));
    };
    const remove = (user: string) => runCli(['data', 'delete-user', `--user=${user}`], { cwd });
    for (const user of ['%', 'olg_', 'olga', "'"]) {
      expect((await remove(user)).stdout).toMatch(/^Deleted 1 sessions, 1 prompts/);
    }
    expect(left()).toEqual(['Olga', 'olg', 'olga2', 'ólga', 'o\u0301lga', 'olga ']);
    expect((await remove("x' OR '1'='1")).stdout).toMatch(/^Deleted 0 sessions/);
    expect(left()).toHaveLength(6);
  });
});
