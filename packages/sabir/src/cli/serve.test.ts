/** `sabir serve` as a process: what it prints, whom it lets in, and how it ends. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SignJWT } from 'jose';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket } from 'ws';
import { ask, makeFolder, runCli, startServe } from '../../test/cli-process.ts';
import { openSocket } from '../../test/raw-http.ts';
import { knockAt } from '../../test/socket-client.ts';

const run = promisify(execFile);
/** Nothing is kept, and no page is read from the built package. */
const MEMORY = ['--database', ':memory:', '--no-page'];

/** What a session's socket says first, or with which status or code it is refused. */
function knock(
  url: string,
  options: { headers?: Record<string, string>; protocols?: string[]; query?: string },
) {
  const { promise, resolve } = Promise.withResolvers<object | number>();
  const { query = 'role=client' } = options;
  const address = `${url.replace('http', 'ws')}/api/sessions/s/ws?${query}`;
  const socket = new WebSocket(address, options.protocols ?? [], {
    headers: options.headers ?? {},
  });
  socket.once('message', (frame) => {
    const { data, ...event } = JSON.parse(String(frame));
    resolve({ ...event, ...data });
  });
  socket.once('unexpected-response', (_, { statusCode = 0 }) => resolve(statusCode));
  socket.once('close', resolve);
  socket.on('error', () => undefined);
  onTestFinished(() => socket.terminate());
  return promise;
}

type Headers = Record<string, string>;

/** What the log says about pages of other origins. */
function linesOnPages({ stderr }: { stderr: string }): string[] {
  return stderr.split('\n').filter((line) => line.includes('another origin'));
}

describe('the command sabir', () => {
  it('prints help and its version, and names an unknown command or flag [CLI-03]', async () => {
    const [help, serveHelp, alsoHelp, version, unknown, flag] = await Promise.all([
      runCli([]),
      runCli(['serve', '--help']),
      runCli(['help', 'serve']),
      runCli(['--version']),
      runCli(['sevre']),
      runCli(['serve', '--prot', '3000']),
    ]);
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage: sabir') });
    expect(serveHelp).toMatchObject({ code: 0, stdout: expect.stringContaining('--port') });
    expect(alsoHelp.stdout).toBe(serveHelp.stdout);
    expect(version).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\S*\n$/),
    });
    expect(unknown).toMatchObject({
      code: 2,
      stdout: '',
      stderr: 'Unknown command sevre. Did you mean serve? See sabir --help.\n',
    });
    expect(flag).toMatchObject({
      code: 2,
      stdout: '',
      stderr: 'Unknown flag --prot. Did you mean --port?\n',
    });
  });
});

describe('sabir serve', () => {
  it('prints a curl that works, with a token and without [CLI-01] [CLI-02]', async () => {
    const secret = "s3cr$'t";
    const servers = await Promise.all([
      startServe(MEMORY),
      startServe([...MEMORY, '--token', `olga=${secret}`]),
      startServe(MEMORY, { env: { SABIR_TOKEN: `olga=${secret}` } }),
    ]);
    const answers = servers.map(async ({ output }) => {
      const [curl = ''] = /^curl .*$/m.exec(output.stdout) ?? [];
      const env = { ...process.env, SABIR_TOKEN: `olga=${secret}` };
      return (await run('sh', ['-c', curl], { env })).stdout;
    });
    for (const answer of await Promise.all(answers)) expect(answer).toContain('Dockyard Creek 7');
    for (const { output } of servers) expect(output.stderr).toBe('');
    expect(servers[2]?.output.stdout).not.toContain(secret);
  });

  it('lets in who has a token, over HTTP and WebSocket, for what they may do', async () => {
    const jwtSecret = 'a secret that is long enough for tests';
    const { url } = await startServe(
      [...MEMORY, '--token', 'olga=owner-secret', '--viewer-token', 'vera=viewer-secret'],
      { env: { SABIR_JWT_SECRET: jwtSecret, SABIR_RUNNER_TOKEN: 'runner-secret' } },
    );
    const sign = (claims: Record<string, unknown>, alg = 'HS256') =>
      new SignJWT({ exp: Math.floor(Date.now() / 1000) + 60, ...claims })
        .setProtectedHeader({ alg })
        .sign(new TextEncoder().encode(jwtSecret));
    const jwt = await sign({ sub: 'jay' });
    const statusOf = async (token?: string) =>
      (await ask(url, token === undefined ? {} : { token })).status;
    expect(await statusOf()).toBe(401);
    expect(await statusOf('wrong')).toBe(401);
    expect(await statusOf('owner-secret')).toBe(200);
    expect(await statusOf('viewer-secret')).toBe(404);
    expect(await statusOf(jwt)).toBe(200);
    expect(await statusOf(await sign({ sub: 'jay', role: 'viewer' }))).toBe(404);
    expect(await statusOf(await sign({ sub: 'jay', role: 'king' }))).toBe(401);
    expect(await statusOf(await sign({ sub: 'jay', exp: undefined }))).toBe(401);
    expect(await statusOf(await sign({ sub: 'jay' }, 'HS512'))).toBe(401);

    const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
    expect(await knock(url, {})).toBe(401);
    expect(await knock(url, bearer('wrong'))).toBe(401);
    expect(await knock(url, bearer('owner-secret'))).toMatchObject({ role: 'owner' });
    expect(await knock(url, { protocols: ['sabir', 'bearer.viewer-secret'] })).toMatchObject({
      role: 'viewer',
    });
    expect(await knock(url, bearer(jwt))).toMatchObject({ role: 'collaborator' });
    const runner = { query: 'role=runner&runnerId=r' };
    expect(await knock(url, { ...bearer('owner-secret'), ...runner })).toBe(404);
    expect(await knock(url, { ...bearer('runner-secret'), ...runner })).toMatchObject({
      protocol: { name: 'sabir-runner' },
    });
    for (const token of ['owner-secret', 'runner-secret']) {
      expect(await knock(url, { ...bearer(token), query: 'role=gateway' })).toBe(404);
    }
    expect(await statusOf('runner-secret')).toBe(401);

    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`${url}/metrics`)).status).not.toBe(200);
    expect((await fetch(`${url}/metrics`, bearer('owner-secret'))).status).toBe(200);
  });

  it('refuses pages of other sites where it asks for no token, and logs the flag that lets them in', async () => {
    const { url, output } = await startServe(MEMORY);
    const host = new URL(url).host;
    const evil = { origin: 'http://evil.example' };
    expect((await ask(url)).status).toBe(200);
    expect((await ask(url, { headers: evil })).status).toBe(403);
    expect((await ask(url, { headers: { ...evil, authorization: 'Bearer x' } })).status).toBe(401);
    expect(await knock(url, { headers: { origin: `http://${host}` } })).toMatchObject({});
    expect(await knock(url, { headers: evil })).toBe(403);
    expect(await knock(url, { headers: evil, protocols: ['sabir', 'bearer.x'] })).toBe(403);
    // Its own name, made to lead here.
    const renamed = { host: 'evil.example', origin: 'http://evil.example' };
    expect(await knock(url, { headers: renamed })).toBe(401);
    for (const path of ['/metrics', '/healthz', '/']) {
      const request = `GET ${path} HTTP/1.1\r\nHost: evil.example\r\n\r\n`;
      const http = openSocket(Number(new URL(url).port), request);
      await vi.waitFor(() => expect(http.heard()).toMatch(/^HTTP\/1\.1 401 /));
    }
    expect((await fetch(`${url}/metrics`)).status).toBe(200);
    expect(linesOnPages(output)).toEqual([
      expect.stringContaining('origin=http://evil.example flag="--cors http://evil.example"'),
    ]);
  });

  it.each([
    ['a WebSocket of a session', (url: string, headers: Headers) => knock(url, { headers })],
    ['a WebSocket of a chat', (url: string, headers: Headers) => knockAt(url, { headers })],
    [
      'a preflight',
      async (url: string, headers: Headers) => {
        await fetch(`${url}/api/sessions/s/chat`, { method: 'OPTIONS', headers });
        return 403;
      },
    ],
  ])('logs %s from a foreign page once, with the flag that allows it', async (_, send) => {
    const { url, output } = await startServe(MEMORY);
    const headers = { origin: 'http://app.example' };
    for (const _ of [1, 2]) expect(await send(url, headers)).toBe(403);
    expect(linesOnPages(output)).toEqual([
      expect.stringContaining('origin=http://app.example flag="--cors http://app.example"'),
    ]);
  });

  it.each(['null', 'chrome-extension://abc'])(
    'advises no flag for a page with the origin %s, which --cors cannot name',
    async (origin) => {
      const { url, output } = await startServe(MEMORY);
      expect((await ask(url, { headers: { origin } })).status).toBe(403);
      expect(linesOnPages(output)).toEqual([
        expect.stringMatching(/--cors cannot name its origin.*serve it over HTTP/),
      ]);
      expect(output.stderr).not.toContain('flag=');
    },
  );

  it('logs nothing about a client with an origin and a token that it lets in', async () => {
    const { url, output } = await startServe([...MEMORY, '--token', 'olga=secret']);
    const headers = { origin: 'http://app.example' };
    expect((await ask(url, { token: 'secret', headers })).status).toBe(200);
    expect((await ask(url, { headers })).status).toBe(403);
    expect(linesOnPages(output)).toHaveLength(1);
    expect(output.stderr.indexOf('another origin')).toBeGreaterThan(
      output.stderr.indexOf('turn began'),
    );
  });

  it('names no model for an agent that has none', async () => {
    const { output } = await startServe([...MEMORY, '--model', 'openai/gpt-5']);
    expect(output.stdout).toMatch(/Agent +scripted: follows a script, without a model\n/);
  });

  it('says what to do about a port that is taken, an agent or a folder that is not there', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo;
    const cwd = makeFolder();
    const [taken, absent, folder] = await Promise.all([
      runCli(['serve', '--port', String(port), ...MEMORY]),
      runCli(['serve', '--port', '0', '--agent', './absent.js', ...MEMORY]),
      runCli(['serve', '--port', '0', '--no-page', '--database', 'nope/x.db'], { cwd }),
    ]);
    const nope = join(cwd, 'nope');
    expect(folder).toEqual({
      code: 1,
      stdout: '',
      stderr: `There is no folder ${nope} for --database. Make it first: mkdir -p ${nope}\n`,
    });
    expect(existsSync(nope)).toBe(false);
    expect(taken).toEqual({
      code: 1,
      stdout: '',
      stderr:
        `Port ${port} is already taken. Choose another one: sabir serve --port ${port + 1}, or ` +
        '--port 0 for any that is free.\n',
    });
    expect(absent).toMatchObject({ code: 1, stdout: '' });
    expect(absent.stderr).toMatch(
      /^There is no \S+absent\.js\. --agent wants the path of a module\.\n$/,
    );
  });

  it('goes on after a rejection that an agent’s module left unhandled, and logs it without its text', async () => {
    const cwd = makeFolder();
    writeFileSync(
      join(cwd, 'stray.mjs'),
      `export default () => ({ name: 'stray', async *prompt({ text }) {
        Promise.reject(new RangeError(text));
        yield { type: 'text-delta', delta: 'still here' };
      } });`,
    );
    const args = ['--agent', './stray.mjs', '--log', 'json', ...MEMORY];
    const server = await startServe(args, { cwd });
    expect(await (await ask(server.url, { text: 'hunter2' })).text()).toContain('still here');
    await server.says('a promise was rejected');
    expect(await (await ask(server.url)).text()).toContain('still here');
    const lines = server.output.stderr.split('\n');
    const line = lines.find((text) => text.includes('a promise was rejected'));
    expect(JSON.parse(line ?? '')).toMatchObject({
      level: 'error',
      error: { name: 'RangeError', stack: expect.stringContaining('stray.mjs') },
    });
    expect(server.output.stderr).not.toContain('hunter2');
  });

  it('ends with a log line after an exception that nothing caught, without its text', async () => {
    const cwd = makeFolder();
    writeFileSync(
      join(cwd, 'broken.mjs'),
      `export default () => ({ name: 'broken', async *prompt({ text }) {
        setTimeout(() => { throw new Error(text); });
      } });`,
    );
    const args = ['--agent', './broken.mjs', '--log', 'json', ...MEMORY];
    const server = await startServe(args, { cwd });
    ask(server.url, { text: 'hunter2' }).catch(() => undefined);
    expect(await server.code).toBe(1);
    const line = server.output.stderr.trim().split('\n').at(-1) ?? '';
    expect(JSON.parse(line)).toMatchObject({
      level: 'error',
      error: { name: 'Error', stack: expect.stringContaining('broken.mjs') },
    });
    expect(server.output.stderr).not.toContain('hunter2');
  });

  it.each(['info', 'json'])(
    'has no line in its log that a client forged (--log %s)',
    async (log) => {
      const session = 'x\n2026 error forged\r\u001b[2J\u0085\u2028\u202e\u007f';
      const server = await startServe(['--log', log, ...MEMORY]);
      await ask(server.url, { session: encodeURIComponent(session) });
      await server.says('turn began');
      const forged = server.output.stderr.split('\n').filter((line) => line.includes('forged'));
      const [first = ''] = forged;
      expect(forged).toEqual([first]);
      expect(first).toMatch(/^[\x20-\x7e]*turn began[\x20-\x7e]*$/);
      if (log === 'json') expect(JSON.parse(first)).toMatchObject({ sessionId: session });
    },
  );

  it('serves a page of one’s own, without what is hidden or elsewhere, or none', async () => {
    const cwd = makeFolder();
    mkdirSync(join(cwd, 'public'));
    writeFileSync(join(cwd, 'public', 'index.html'), '<title>Mine</title>');
    writeFileSync(join(cwd, 'public', '.env'), 'SECRET');
    writeFileSync(join(cwd, 'secret.txt'), 'SECRET');
    symlinkSync('../secret.txt', join(cwd, 'public', 'link.txt'));
    const args = ['--database', ':memory:', '--page', 'public'];
    const [own, none] = await Promise.all([startServe(args, { cwd }), startServe(MEMORY)]);
    expect(await (await fetch(`${own.url}/`)).text()).toContain('Mine');
    for (const path of ['.env', 'link.txt', '..%2fsecret.txt', 'nothing', '%ff']) {
      expect((await fetch(`${own.url}/${path}`)).status, path).toBe(404);
    }
    expect((await fetch(`${own.url}/sabir/clients/index.js`)).status).toBe(200);
    expect((await fetch(`${own.url}/sabir/gateway/index.js`)).status).toBe(404);
    expect((await fetch(`${none.url}/`)).status).toBe(404);
  });

  it('serves regular files of a page only, in pieces, with headers that bind the page', async () => {
    const cwd = makeFolder();
    const folder = join(cwd, 'public');
    mkdirSync(folder);
    writeFileSync(join(folder, 'index.html'), '<title>Mine</title>');
    writeFileSync(join(folder, 'empty.txt'), '');
    writeFileSync(join(folder, 'large.bin'), 'begin');
    // Without holes in it, no memory could hold it.
    truncateSync(join(folder, 'large.bin'), 5_000_000_000);
    await run('mkfifo', [join(folder, 'fifo')]);
    const args = ['--database', ':memory:', '--page', 'public'];
    const policy = "default-src 'self' https://cdn.example.com";
    const [server, loose, off] = await Promise.all([
      startServe(args, { cwd }),
      startServe([...args, '--csp', policy], { cwd }),
      startServe(args, { cwd, env: { SABIR_CSP: 'none' } }),
    ]);
    const fifo = await fetch(`${server.url}/fifo`, { signal: AbortSignal.timeout(2_000) });
    expect(fifo.status).toBe(404);
    const large = await fetch(`${server.url}/large.bin`);
    expect(large.headers.get('content-length')).toBe('5000000000');
    const reader = large.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    expect(Buffer.from(value ?? []).toString('utf8', 0, 5)).toBe('begin');
    await reader?.cancel();
    const head = await fetch(`${server.url}/large.bin`, { method: 'HEAD' });
    expect(head.headers.get('content-length')).toBe('5000000000');
    expect(await (await fetch(`${server.url}/empty.txt`)).text()).toBe('');
    const page = await fetch(`${server.url}/`);
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(page.headers.get('content-security-policy')).toContain("default-src 'self'");
    const policies = [loose, off].map(async ({ url }) =>
      (await fetch(`${url}/`)).headers.get('content-security-policy'),
    );
    expect(await Promise.all(policies)).toEqual([policy, null]);
  });
});
