import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DemoServer, spawnServer, startServer } from './demo-harness.ts';

const ON = { ENABLE_AI_SDK_ADAPTER: 'true', SABIR_DEMO_SPEED: '50' };
const ID = `session_${'0a'.repeat(16)}`;
const SESSION = `/api/sessions/${ID}`;
const WS = `${SESSION}/ws?role=client&dialect=v2&messages=0`;

const ask = (text: string, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-sabir-detach': '1', ...headers },
  body: JSON.stringify({
    id: ID,
    messages: [{ id: `message-${text}`, role: 'user', parts: [{ type: 'text', text }] }],
  }),
});

/** What a server says when it starts, and how it ends. */
async function start(env: Record<string, string>): Promise<string> {
  const child = spawnServer(env);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (bytes) => {
      output += bytes;
      if (/^Sessions: .*\n/m.test(output)) child.kill('SIGTERM');
    });
  }
  await once(child, 'exit');
  return output;
}

type Listener = { until(type: string): Promise<Said>; close(): void };
type Said = { type: string; data?: { [field: string]: unknown } };

/** A window's socket: what it is told, one after the other. */
async function listen(url: string): Promise<Listener> {
  const socket = new WebSocket(url.replace('http', 'ws'));
  const heard: Said[] = [];
  let onSaid: (() => void) | undefined;
  socket.addEventListener('message', ({ data }) => {
    heard.push(JSON.parse(data));
    onSaid?.();
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => reject(new Error('refused')));
  });
  return {
    async until(type) {
      for (;;) {
        const said = heard.shift();
        if (said?.type === type) return said;
        if (said) continue;
        await new Promise<void>((resolve) => {
          onSaid = resolve;
        });
      }
    },
    close: () => socket.close(),
  };
}

describe('the sessions of the server', () => {
  let server: DemoServer;
  beforeAll(async () => {
    server = await startServer(ON);
  });
  afterAll(() => server?.stop());
  const history = async (of = server) =>
    (await (await fetch(`${of.url}${SESSION}/messages`)).json()) as Array<{ role: string }>;

  test('are answered by their agent, and are remembered', async () => {
    const sent = await fetch(`${server.url}${SESSION}/chat`, ask('a berth, please'));
    expect(sent.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    const body = await sent.text();
    expect(body).toContain('"toolName":"find_berths"');
    expect(body).toContain('"outcome":"finished"');
    expect((await history()).map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(await server.health()).toMatchObject({ agent: 'scripted agent' });
  });

  test('are others than those of the flow, on the same addresses', async () => {
    const body = await (await fetch(`${server.url}/api/sessions/s1/chat`, ask('hello'))).text();
    expect(body.match(/"type":"start-step"/g)).toHaveLength(3);
    await expect(listen(`${server.url}/api/sessions/s1/ws?role=client`)).rejects.toThrow('refused');
  });

  test('tell who is there, by window, and what waits', async () => {
    const first = await listen(`${server.url}${WS}&window=window-1`);
    expect((await first.until('init')).data).toMatchObject({
      protocol: { name: 'sabir' },
      connectedUsers: expect.arrayContaining([{ id: 'window-1' }]),
      queue: [],
    });
    const second = await listen(`${server.url}${WS}&window=window-2`);
    expect(await first.until('user.joined')).toMatchObject({ userId: 'window-2' });
    const sent = await fetch(`${server.url}${SESSION}/chat`, ask('cast off'));
    const { questionId } = (await second.until('question')) as { questionId?: string };
    const queued = await fetch(`${server.url}${SESSION}/chat`, ask('hello'));
    expect((await first.until('queue.state')).data).toMatchObject({
      queue: [{ content: 'hello', position: 1 }],
    });
    const answered = await fetch(`${server.url}${SESSION}/chat/${ID}/answer`, {
      ...ask(''),
      body: JSON.stringify({ questionId, answer: 'Not yet' }),
    });
    expect(answered.status).toBe(202);
    expect(await sent.text()).toContain('"answer":"Not yet"');
    expect(await queued.text()).toContain('"outcome":"finished"');
    second.close();
    expect(await first.until('user.left')).toMatchObject({ userId: 'window-2' });
    first.close();
  });

  test('let no other site in', async () => {
    const { url } = server;
    const foreign = { 'sec-fetch-site': 'cross-site' };
    expect((await fetch(`${url}${SESSION}/chat`, ask('hello', foreign))).status).toBe(403);
    expect((await fetch(`${url}${SESSION}/messages`, { headers: foreign })).status).toBe(403);
    const form = ask('hello', { 'content-type': 'text/plain' });
    expect((await fetch(`${url}${SESSION}/chat`, form)).status).toBe(415);
  });

  test('are not there without the gateway', async () => {
    const off = await startServer();
    expect((await fetch(`${off.url}${SESSION}/messages`)).status).toBe(404);
    await expect(listen(`${off.url}${WS}`)).rejects.toThrow('refused');
    await off.stop();
  });

  test('outlive the server in a file; whoever watches when it leaves is told', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sabir-demo-'));
    const env = { ...ON, SABIR_DEMO_SPEED: '1', SABIR_DATABASE: join(directory, 'sessions.db') };
    try {
      const leaving = await startServer(env);
      const exited = once(leaving.process, 'exit');
      const sent = await fetch(`${leaving.url}${SESSION}/chat`, ask('the logbook'));
      let body = '';
      for await (const text of sent.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        body += text;
        if (body.includes('Algiers') && !leaving.process.killed) leaving.process.kill('SIGTERM');
      }
      expect(body.trimEnd().endsWith('data: [DONE]')).toBe(true);
      expect((await exited)[0]).toBe(0);
      const next = await startServer(env);
      await expect
        .poll(async () => (await history(next)).map(({ role }) => role))
        .toContain('user');
      await next.stop();
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

describe('what the server says of its sessions when it starts', () => {
  test.each([
    ['nothing set', {}, 'scripted agent; kept in memory (SABIR_DATABASE names a file'],
    [
      'OpenCode',
      { SABIR_AGENT: 'opencode', SABIR_MODEL: 'some/model' },
      'OpenCode with some/model',
    ],
    ['a key', { OPENAI_API_KEY: 'sk-fake' }, 'gpt-5-mini; kept in memory'],
  ] as const)('%s', async (_, env, report) => {
    const output = await start({ ...ON, ...env });
    expect(output.split('\n').find((line) => line.startsWith('Sessions: '))).toContain(report);
    expect(output).not.toContain('sk-fake');
  });

  test('an agent it does not know is refused, with those it does', async () => {
    expect(await start({ ...ON, SABIR_AGENT: 'parrot' })).toContain(
      'SABIR_AGENT is scripted or opencode, not parrot.',
    );
  });
});
