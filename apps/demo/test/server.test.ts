import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type DemoServer, spawnServer, startServer } from './demo-harness.ts';

const ask = (text: string) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    id: 'chat-1',
    messages: [{ id: `message-${text}`, role: 'user', parts: [{ type: 'text', text }] }],
  }),
});

describe('the server', () => {
  let server: DemoServer;
  beforeAll(async () => {
    server = await startServer({ SABIR_DEMO_SPEED: '50' });
  });
  afterAll(() => server?.stop());

  test('says that it is well, and which model it has', async () => {
    expect(await server.health()).toMatchObject({ status: 'ok', model: 'scripted model' });
  });

  test('serves the page, compressed, with a policy that lets nothing foreign in', async () => {
    const response = await fetch(server.url);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const policy = response.headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe-inline');
  });

  test.each([
    '/../package.json',
    '/assets/../../package.json',
    '/%2e%2e/package.json',
    '/..%2fpackage.json',
    '/assets/..%5c..%5cpackage.json',
    '//etc/passwd',
    '/index.html%00.js',
  ])('gives out nothing but the page: %s', async (path) => {
    const { status, body } = await rawGet(server.url, path);
    expect(status).toBe(404);
    expect(body).not.toContain('"dependencies"');
  });

  test('streams a flow as an AI SDK client expects it', async () => {
    const response = await fetch(`${server.url}/api/flow`, ask('hello'));
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    const body = await response.text();
    expect(body).toContain('"type":"start"');
    expect(body.match(/"type":"start-step"/g)).toHaveLength(3);
    expect(body).toContain('"outcome":"finished"');
    expect(body.trimEnd().endsWith('data: [DONE]')).toBe(true);
  });

  test('lets no other site spend its key', async () => {
    const foreign = ask('hello');
    const crossSite = { ...foreign.headers, 'sec-fetch-site': 'cross-site' };
    const refused = await fetch(`${server.url}/api/flow`, { ...foreign, headers: crossSite });
    expect(refused.status).toBe(403);
    const form = { ...foreign.headers, 'content-type': 'text/plain' };
    expect((await fetch(`${server.url}/api/flow`, { ...foreign, headers: form })).status).toBe(415);
  });

  test('refuses what it cannot serve with a status and a reason', async () => {
    const broken = { ...ask('hello'), body: '{' };
    const response = await fetch(`${server.url}/api/flow`, broken);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ message: expect.any(String) });
    expect((await fetch(server.url, { method: 'DELETE' })).status).toBe(405);
  });

  test('goes on at the pace of a slow reader, and stops when it leaves', async () => {
    const { stopped } = (await server.health()).runs;
    const leaving = new AbortController();
    const slow = await startServer();
    const response = await fetch(`${slow.url}/api/flow`, {
      ...ask('hello'),
      signal: leaving.signal,
    });
    await response.body?.getReader().read();
    leaving.abort();
    await vi.waitFor(async () => {
      expect((await slow.health()).runs).toMatchObject({ active: 0, stopped: 1 });
    });
    expect((await server.health()).runs.stopped).toBe(stopped);
    await slow.stop();
  });

  test('says clearly that its port is taken', async () => {
    const { port } = new URL(server.url);
    const second = spawnServer({ PORT: port });
    let output = '';
    second.stderr?.on('data', (bytes) => {
      output += bytes;
    });
    const [code] = await once(second, 'exit');
    expect(code).toBe(1);
    expect(output.trim()).toBe(
      `Port ${port} is already taken. Choose another one, for example PORT=${Number(port) + 1}.`,
    );
  });

  test.each(['SIGINT', 'SIGTERM'] as const)('leaves in good order on %s', async (signal) => {
    const other = await startServer();
    const exited = once(other.process, 'exit');
    other.process.kill(signal);
    expect((await exited)[0]).toBe(0);
  });
});

describe('a real provider', () => {
  const seen: Array<{ authorization?: string; body: ProviderRequest }> = [];
  const provider = createServer(async (incoming, outgoing) => {
    const body = JSON.parse(await readBody(incoming)) as ProviderRequest;
    seen.push({ authorization: incoming.headers.authorization, body });
    if (body.messages.some(({ content }) => content?.includes('busy'))) {
      outgoing.writeHead(429).end('{"error":{"message":"key sk-secret is over its quota"}}');
      return;
    }
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const delta of toDeltas(body)) {
      outgoing.write(`data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`);
    }
    outgoing.write('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n');
    outgoing.write('data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}}\n\n');
    outgoing.end('data: [DONE]\n\n');
  });
  let server: DemoServer;
  beforeAll(async () => {
    provider.listen(0, '127.0.0.1');
    await once(provider, 'listening');
    const { port } = provider.address() as AddressInfo;
    server = await startServer({
      SABIR_MODEL_BASE_URL: `http://127.0.0.1:${port}/v1/`,
      SABIR_MODEL_API_KEY: 'local-secret',
      SABIR_MODEL: 'local-model',
      ENABLE_AI_SDK_ADAPTER: 'true',
    });
  });
  afterAll(async () => {
    await server?.stop();
    provider.close();
  });

  test('answers through the same flow: thinking, tools, text and usage', async () => {
    expect((await server.health()).model).toBe('local-model');
    const body = await (await fetch(`${server.url}/api/flow`, ask('lingua franca'))).text();
    expect(body).toContain('"type":"reasoning-delta"');
    expect(body).toContain('"toolName":"search_notes","input":{"query":"lingua franca"}');
    expect(body).toContain('The Mediterranean lingua franca');
    expect(body).toContain('"delta":"Words of the writer."');
    expect(body).toContain('"usage":{"inputTokens":44,"outputTokens":28');
    expect(body).toContain('"outcome":"finished"');
    expect(body).not.toContain('local-secret');
    expect(seen[0]?.authorization).toBe('Bearer local-secret');
    const answer = seen[1]?.body.messages.find(({ role }) => role === 'tool');
    expect(answer?.content).toContain('lingua-franca');
  });

  test('answers in sessions as well, with what was said before', async () => {
    const chat = `${server.url}/api/sessions/session_${'0'.repeat(32)}/chat`;
    for (const words of ['first', 'second']) {
      const body = await (await fetch(chat, ask(words))).text();
      expect(body).toContain('"delta":"Words of the undefined."');
      expect(body).toContain('"usage":{"inputTokens":11,"outputTokens":7');
      expect(body).toContain('"outcome":"finished"');
    }
    const roles = seen.at(-1)?.body.messages.map(({ role }) => role);
    expect(roles).toEqual(['system', 'user', 'assistant', 'user']);
  });

  test.each(['/api/flow', `/api/sessions/session_${'1'.repeat(32)}/chat`])(
    'that refuses is explained in plain words, without its own: %s',
    async (path) => {
      const body = await (await fetch(server.url + path, ask('busy'))).text();
      expect(body).toContain('The model is busy right now. Try again in a moment.');
      expect(body).not.toContain('sk-secret');
    },
  );
});

type ProviderRequest = {
  messages: Array<{ role: string; content: string | null }>;
  tools?: unknown;
};

/** The researcher thinks and searches once; everybody else just speaks. */
function toDeltas({ messages, tools }: ProviderRequest): unknown[] {
  const isFirstTurn = !messages.some(({ role }) => role === 'tool');
  if (tools && isFirstTurn) {
    const call = (piece: object) => ({ tool_calls: [{ index: 0, ...piece }] });
    return [
      { reasoning_content: 'I should ' },
      { reasoning_content: 'search.' },
      call({ id: 'call-1', function: { name: 'search_notes', arguments: '{"que' } }),
      call({ function: { arguments: 'ry":"lingua franca"}' } }),
    ];
  }
  const who = /the (researcher|writer|reviewer) of/.exec(messages[0]?.content ?? '')?.[1];
  return [{ role: 'assistant', content: '' }, { content: `Words of the ${who}.` }];
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  let body = '';
  for await (const bytes of incoming) body += bytes;
  return body;
}

/** `fetch` tidies paths up before it sends them; an attacker does not. */
async function rawGet(url: string, path: string): Promise<{ status?: number; body: string }> {
  const { hostname, port } = new URL(url);
  const outgoing = httpRequest({ hostname, port, path }).end();
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { status: incoming.statusCode, body: await readBody(incoming) };
}
