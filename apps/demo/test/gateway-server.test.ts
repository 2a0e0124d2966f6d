import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DemoServer, startServer } from './demo-harness.ts';

const ON = { ENABLE_AI_SDK_ADAPTER: 'true' };
const SESSION = '/api/sessions/s1';
const ADDRESSES = [
  ['POST', `${SESSION}/chat`],
  ['GET', `${SESSION}/chat/c1/stream`],
  ['POST', `${SESSION}/chat/c1/stop`],
  ['GET', `${SESSION}/messages`],
  ['POST', '/api/chat'],
  ['GET', '/api/chat/c1/stream'],
  ['POST', '/api/chat/c1/stop'],
  ['POST', '/api/chat/c1/answer'],
  ['GET', '/metrics'],
] as const;

const ask = (text: string, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-sabir-detach': '1', ...headers },
  body: JSON.stringify({
    id: 'c1',
    messages: [{ id: `message-${text}`, role: 'user', parts: [{ type: 'text', text }] }],
  }),
});

describe('the server without the gateway', () => {
  let server: DemoServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server?.stop());

  test.each(ADDRESSES)('%s %s is like anything else that is not there', async (method, path) => {
    const answer = async (address: string) => {
      const response = await fetch(server.url + address, { method });
      return [response.status, await response.text(), response.headers.get('content-type')];
    };
    expect(await answer(path)).toEqual(await answer('/nothing/of/the/kind'));
    expect((await answer(path))[0]).toBe(404);
  });

  test('says that it has none', async () => {
    expect(await server.health()).toMatchObject({ gateway: false });
  });
});

describe('the server with the gateway', () => {
  let server: DemoServer;
  beforeAll(async () => {
    server = await startServer({ ...ON, SABIR_DEMO_SPEED: '50' });
  });
  afterAll(() => server?.stop());
  const get = (path: string) => fetch(server.url + path);

  test('is what `npm start` starts, unless told otherwise', async () => {
    const { scripts } = JSON.parse(
      await readFile(new URL('../package.json', import.meta.url), 'utf8'),
    ) as { scripts: { start: string } };
    const [command, ...args] = scripts.start.split(' ');
    expect(command).toBe('node');
    for (const [setting, gateway] of [
      [undefined, true],
      ['false', false],
    ] as const) {
      const started = await startServer({ ENABLE_AI_SDK_ADAPTER: setting }, args);
      expect(await started.health()).toMatchObject({ gateway });
      await started.stop();
    }
  });

  test('streams the flow, remembers the conversation, and counts', async () => {
    const sent = await fetch(`${server.url}${SESSION}/chat`, ask('hello'));
    expect(sent.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    expect(sent.headers.get('x-content-type-options')).toBe('nosniff');
    const body = await sent.text();
    expect(body.match(/"type":"start-step"/g)).toHaveLength(3);
    expect(body).toContain('"outcome":"finished"');

    const history = (await (await get(`${SESSION}/messages`)).json()) as Array<{ role: string }>;
    expect(history.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(await (await get('/api/sessions/s2/messages')).json()).toEqual([]);
    expect((await get(`${SESSION}/chat/c1/stream`)).status).toBe(204);
    expect(await (await get('/metrics')).text()).toContain(
      'sabir_turns_total{outcome="finished"} 1',
    );
  });

  test('speaks the contract on /api/chat, with the desk behind it', async () => {
    const sent = await fetch(`${server.url}/api/chat`, ask('hello'));
    expect(sent.headers.get('x-vercel-ai-ui-message-stream')).toBeNull();
    expect(sent.headers.get('x-content-type-options')).toBe('nosniff');
    const body = await sent.text();
    const events = body.match(/(?<=^event: )\S+/gm) ?? [];
    expect([events[0], events.at(-1)]).toEqual(['meta', 'done']);
    expect(body).toContain('"data":{"name":"Triage"}');
    expect(body).toContain('"outcome":"finished"');
    expect((await fetch(`${server.url}/api/onboarding`, ask('hello'))).status).toBe(404);
  });

  test('lets no other site in', async () => {
    const { url } = server;
    const foreign = { 'sec-fetch-site': 'cross-site' };
    expect((await fetch(`${url}${SESSION}/chat`, ask('hello', foreign))).status).toBe(403);
    expect((await fetch(`${url}${SESSION}/messages`, { headers: foreign })).status).toBe(403);
    expect((await fetch(`${url}/api/chat`, ask('hello', foreign))).status).toBe(403);
    const form = ask('hello', { 'content-type': 'text/plain' });
    expect((await fetch(`${url}${SESSION}/chat`, form)).status).toBe(415);
    expect((await fetch(`${url}/api/chat`, form)).status).toBe(415);
  });

  test('leaves in good order in mid-answer: whoever watches is told', async () => {
    const leaving = await startServer(ON);
    const exited = once(leaving.process, 'exit');
    const sent = await fetch(`${leaving.url}${SESSION}/chat`, ask('hello'));
    leaving.process.kill('SIGTERM');
    const body = await sent.text();
    expect(body).toContain('"type":"error","errorText":"The server is restarting');
    expect(body.trimEnd().endsWith('data: [DONE]')).toBe(true);
    expect((await exited)[0]).toBe(0);
  });
});
