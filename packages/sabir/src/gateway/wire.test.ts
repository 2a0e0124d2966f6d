import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  openSse,
  readChunks,
} from '../../test/gateway-client.ts';
import { CLIENTS, type ClientName, createClient, httpTransport } from '../../test/real-clients.ts';
import type { Chunk } from '../core/chunks.ts';
import { verifyChunks } from '../core/verify.ts';
import { asUpstream, type ChatGateway, type ChatGatewayOptions, type Cors } from './index.ts';

const agentOf = (chunks: Chunk[]) =>
  asUpstream(async function* () {
    yield* chunks;
  });

/** A real client of that release, in session `s1`. */
async function stockClient(name: ClientName, gateway: ChatGateway, query = '') {
  const transport = await httpTransport(name, (url, init) => {
    const to = `${url.replace('/api/chat', '/api/sessions/s1/chat')}${query}`;
    const headers = new Headers(init.headers);
    headers.set('authorization', 'Bearer carl');
    return gateway.fetch(new Request(to, { ...init, headers }));
  });
  return createClient(name, transport);
}

const TOOLS: Chunk[] = [
  { type: 'start-step' },
  { type: 'reasoning-start', id: 'r' },
  { type: 'reasoning-delta', id: 'r', delta: 'Hm.' },
  { type: 'reasoning-end', id: 'r' },
  { type: 'tool-input-start', toolCallId: 'c', toolName: 'look', providerExecuted: true },
  { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"at":1}' },
  {
    type: 'tool-input-available',
    toolCallId: 'c',
    toolName: 'look',
    input: { at: 1 },
    providerExecuted: true,
  } as Chunk,
  {
    type: 'tool-output-available',
    toolCallId: 'c',
    output: { seen: [1, null, 'ü'] },
    providerExecuted: true,
  } as Chunk,
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'There: ' },
  { type: 'text-delta', id: 't', delta: 'ü😀\n\ndata: x' },
  { type: 'text-end', id: 't' },
  { type: 'finish-step' },
];

describe('the stream', () => {
  it('has the headers that clients and proxies need, on POST and on resume [RFC-MANUAL-01]', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const response = await carl.post(chatBody('hi'));
    expect(response.status).toBe(200);
    const headers = {
      'content-type': 'text/event-stream; charset=utf-8',
      'x-vercel-ai-ui-message-stream': 'v1',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-sabir-turn': expect.stringMatching(/^[\w-]{16,}$/),
      'x-resumable-stream-id': 'c1',
    };
    expect(Object.fromEntries(response.headers)).toEqual(headers);
    expect(Object.fromEntries((await carl.resume()).headers)).toEqual(headers);
  });

  it('names the chat in x-resumable-stream-id as the path of its stream has it, whatever the id holds', async () => {
    const carl = createUser(createTestGateway(createAgent().upstream), 'carl');
    const ids: Record<string, string> = { 'a/b ü': 'a%2Fb%20%C3%BC', '\ud800': '%EF%BF%BD' };
    for (const [id, streamId] of Object.entries(ids)) {
      const response = await carl.post(chatBody('hi', { id }));
      expect(response.headers.get('x-resumable-stream-id')).toBe(streamId);
    }
    const contract = await carl.post(chatBody('hi', { id: 'other' }), { query: 'wire=contract' });
    expect(contract.headers.has('x-resumable-stream-id')).toBe(false);
  });

  it('has a name and a number on every frame, and [DONE] last [RFC-INT-1.3] [RFC-INT-4.1] [RFC-INT-4.2] [RFC-INT-4.3]', async () => {
    const carl = createUser(createTestGateway(agentOf(TOOLS)), 'carl');
    const response = await carl.post(chatBody('hi'));
    const turnId = response.headers.get('x-sabir-turn');
    const sse = openSse(response);
    await sse.ended;
    expect(sse.frames.at(-1)).toEqual({ event: undefined, id: undefined, data: '[DONE]' });
    expect(sse.raw().endsWith('\n\ndata: [DONE]\n\n')).toBe(true);
    const frames = sse.frames.slice(0, -1);
    expect(frames.map(({ event }) => event)).toEqual([
      'message-start',
      ...TOOLS.map(({ type }) => type),
      'message-finish',
    ]);
    expect(frames.map(({ id }) => id)).toEqual(frames.map((_, i) => `${turnId}:${i + 1}`));
    expect(sse.chunks()).toEqual([
      { type: 'start', messageId: expect.any(String) },
      ...TOOLS,
      { type: 'finish', finishReason: 'stop', messageMetadata: { outcome: 'finished' } },
    ]);
  });

  it('ends with an error frame and a finish frame where the agent fails [RFC-ERR-11] [RFC-INT-5.1] [RFC-INT-5.2] [RFC-INT-5.3]', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const sse = openSse(await carl.post(chatBody('hi')));
    const run = await agent.run();
    run.delta('half');
    await sse.until(() => sse.text());
    run.fail(new Error('The model is overloaded.\n    at run (/srv/agent/run.ts:1:2)'));
    await sse.ended;
    expect(sse.frames.slice(-3).map(({ event, data }) => [event, data])).toEqual([
      ['error', '{"type":"error","errorText":"The model is overloaded."}'],
      ['message-finish', '{"type":"finish","finishReason":"error"}'],
      [undefined, '[DONE]'],
    ]);
    expect(verifyChunks(sse.chunks())).toEqual([]);
  });

  it('shows an agent’s errors in the words of the option', async () => {
    const carl = createUser(
      createTestGateway(() => asUpstream(() => Promise.reject(new Error('secret'))), {
        errorText: () => 'Ask again later.',
      }),
      'carl',
    );
    const chunks = await readChunks(await carl.post(chatBody('hi')));
    expect(chunks).toContainEqual({ type: 'error', errorText: 'Ask again later.' });
    expect(JSON.stringify(chunks)).not.toContain('secret');
  });

  it.each([
    ['cannot be reached', 'Connection failed', () => Promise.reject(new Error('ECONNREFUSED'))],
    ['takes too long', 'Connection failed', () => new Promise<never>(() => undefined)],
  ])(
    'is a 200 with an error where the agent %s [RFC-ERR-01] [RFC-ERR-10]',
    async (_, text, open) => {
      let tries = 0;
      const gateway = createTestGateway(
        {
          open: () => {
            tries++;
            return open();
          },
        },
        { timing: { connectMs: 30 } },
      );
      const response = await createUser(gateway, 'carl').post(chatBody('hi'));
      expect(response.status).toBe(200);
      expect(await readChunks(response)).toMatchObject([
        { type: 'start' },
        { type: 'message-metadata', messageMetadata: { code: 'upstream-unreachable' } },
        { type: 'error', errorText: text },
        { type: 'finish', finishReason: 'error' },
      ]);
      expect(tries).toBe(1);
    },
  );

  it('fails after the idle limit, and the agent is stopped [RFC-ERR-06] [RFC-STATE-05]', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { timing: { idleMs: 40 } });
    const sse = openSse(await createUser(gateway, 'carl').post(chatBody('hi')));
    const run = await agent.run();
    run.delta('hm');
    await sse.ended;
    expect(run.turn.signal.aborted).toBe(true);
    expect(sse.chunks()).toContainEqual({
      type: 'error',
      errorText: 'The agent has gone silent, so its turn was stopped.',
    });
  });

  it('says now and then that it is alive, between frames and not inside them [RFC-RISK-02]', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { timing: { keepAliveMs: 5 } });
    const sse = openSse(await createUser(gateway, 'carl').post(chatBody('hi')));
    const run = await agent.run();
    await sse.until(() => sse.raw().startsWith(': keep-alive\n\n: keep-alive\n\n'));
    run.delta('a');
    await sse.until(() => sse.text());
    const before = sse.raw().length;
    await sse.until(() => sse.raw().slice(before).includes(': keep-alive\n\n'));
    run.end();
    await sse.ended;
    expect(sse.chunks().map(({ type }) => type)).toEqual([
      'start',
      'text-start',
      'text-delta',
      'text-end',
      'finish',
    ]);
  });

  it('loses none of a thousand deltas [RFC-INT-6.1] [RFC-INT-6.2] [RFC-INT-6.3]', async () => {
    const words = Array.from({ length: 1_500 }, (_, i) => `${i} `);
    const upstream = asUpstream(async function* () {
      yield { type: 'text-start', id: 't' };
      for (const delta of words) yield { type: 'text-delta', id: 't', delta };
    });
    const gateway = createTestGateway(upstream);
    const sse = openSse(await createUser(gateway, 'carl').post(chatBody('hi')));
    await sse.ended;
    expect(sse.frames.slice(0, -1).map(({ id }) => Number(id?.split(':')[1]))).toEqual(
      Array.from({ length: 1_504 }, (_, i) => i + 1),
    );
    const client = await stockClient('ai@7', gateway);
    await client.chat.sendMessage({ text: 'again' });
    expect(client.result().message?.parts).toMatchObject([{ text: words.join('') }]);
  });
});

describe('what a client can parse [RFC-MANUAL-02] [RFC-RISK-03]', () => {
  const NEWER: Chunk[] = [
    { type: 'start-step' },
    { type: 'custom', kind: 'x.y' } as Chunk,
    { type: 'reasoning-file', url: 'data:a/b;base64,AA==', mediaType: 'a/b' } as Chunk,
    { type: 'tool-input-available', toolCallId: 'c', toolName: 'pay', input: {} },
    { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' } as Chunk,
    { type: 'tool-output-denied', toolCallId: 'c' } as Chunk,
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'Hello' },
    { type: 'finish-step' },
    { type: 'start-step' },
    { type: 'text-delta', id: 't', delta: ' again', more: 'of it' } as Chunk,
    { type: 'text-end', id: 't' },
  ];
  const typesFor = async (init: { query?: string; headers?: HeadersInit }) => {
    const carl = createUser(createTestGateway(agentOf(NEWER)), 'carl');
    const chunks = await readChunks(await carl.post(chatBody('hi'), init));
    return new Set(chunks.map(({ type }) => type));
  };

  it.each([
    ['', 5],
    ['aiSdk=5', 5],
    ['aiSdk=6', 6],
    ['aiSdk=7', 7],
    ['aiSdk=8', 5],
    ['aiSdk=', 5],
  ])('is asked for in the address: %j is as good as %d', async (query, major) => {
    const types = await typesFor({ query });
    expect(types.has('custom')).toBe(major === 7);
    expect(types.has('tool-approval-request')).toBe(major >= 6);
    expect(types.has('tool-output-error')).toBe(major === 5);
  });

  it('is asked for by a header too, and the address has the last word', async () => {
    const headers = { 'x-sabir-ai-sdk': '7' };
    expect(await typesFor({ headers })).toContain('custom');
    expect(await typesFor({ headers, query: 'aiSdk=6' })).not.toContain('custom');
  });

  it.each(CLIENTS)('is all that $name gets that says nothing [RFC-INT-1.2]', async ({ name }) => {
    // 6.0.9 names its version in its user agent.
    const denied = name === 'ai@6.0.9' ? { state: 'output-denied' } : { state: 'output-error' };
    const { chat, result } = await stockClient(name, createTestGateway(agentOf(NEWER)));
    await chat.sendMessage({ text: 'hi' });
    expect(result().error).toBeUndefined();
    expect(result().message).toMatchObject({
      metadata: { outcome: 'finished' },
      parts: [
        { type: 'step-start' },
        { type: 'file' },
        { type: 'tool-pay', ...denied },
        { type: 'text', text: 'Hello', state: 'done' },
        { type: 'step-start' },
        { type: 'text', text: ' again', state: 'done' },
      ],
    });
  });

  it.each(CLIENTS)('is more where $name says who it is', async ({ name, major }) => {
    const gateway = createTestGateway(
      agentOf(NEWER.map((chunk) => ({ ...chunk, more: undefined }))),
    );
    const { chat, result } = await stockClient(name, gateway, `?aiSdk=${major}`);
    await chat.sendMessage({ text: 'hi' });
    expect(result().error).toBeUndefined();
    const types = result().message?.parts.map(({ type }) => type as string) ?? [];
    expect(types.includes('custom')).toBe(major === 7);
    expect(result().message?.parts.find(({ type }) => type === 'tool-pay')).toMatchObject({
      state: major === 5 ? 'output-error' : 'output-denied',
    });
  });
});

describe('CORS', () => {
  const ask = (cors: Cors | undefined, method: string, origin?: string) => {
    const options: Partial<ChatGatewayOptions> = cors ? { cors } : {};
    const headers = { authorization: 'Bearer carl', ...(origin && { origin }) };
    const url = `http://g/api/sessions/s1/${method === 'OPTIONS' ? 'chat' : 'channels'}`;
    return createTestGateway(echo, options).fetch(new Request(url, { method, headers }));
  };
  const app = 'https://app.example';
  const allowed = (response: Response) => response.headers.get('access-control-allow-origin');

  it('lets nobody in unless it is set', async () => {
    expect(allowed(await ask(undefined, 'OPTIONS', app))).toBeNull();
    expect(allowed(await ask(undefined, 'GET', app))).toBeNull();
    expect(allowed(await ask({ origins: '*' }, 'GET'))).toBeNull();
  });

  it('lets in whom the option names', async () => {
    expect(allowed(await ask({ origins: '*' }, 'GET', app))).toBe('*');
    for (const origins of [[app], (origin: string) => origin === app]) {
      expect(allowed(await ask({ origins }, 'GET', app))).toBe(app);
      const other = await ask({ origins }, 'GET', 'https://evil.example');
      expect([allowed(other), other.headers.get('vary')]).toEqual([null, 'origin']);
    }
  });

  it('answers a preflight with all that our clients send', async () => {
    const response = await ask({ origins: [app], credentials: true }, 'OPTIONS', app);
    expect([response.status, Object.fromEntries(response.headers)]).toEqual([
      204,
      {
        'access-control-allow-origin': app,
        'access-control-allow-credentials': 'true',
        'access-control-allow-methods': 'GET, POST, OPTIONS',
        'access-control-allow-headers':
          'authorization, content-type, last-event-id, x-sabir-detach, x-sabir-resume, x-sabir-attempt, x-sabir-ai-sdk',
        'access-control-expose-headers':
          'x-vercel-ai-ui-message-stream, x-sabir-turn, x-resumable-stream-id, retry-after',
        'access-control-max-age': '600',
        vary: 'origin',
      },
    ]);
    const short = await ask({ origins: '*', maxAge: 5 }, 'OPTIONS', app);
    expect(short.headers.get('access-control-max-age')).toBe('5');
  });

  it('lets a page read refusals and streams too', async () => {
    const gateway = createTestGateway(echo, { cors: { origins: [app] } });
    const headers = { origin: app };
    const refused = await createUser(gateway, undefined).post(chatBody('hi'), { headers });
    const served = await createUser(gateway, 'carl').post(chatBody('hi'), { headers });
    expect([refused.status, allowed(refused)]).toEqual([401, app]);
    expect([served.status, allowed(served)]).toEqual([200, app]);
  });

  it('never opens cookies to everybody', async () => {
    const response = await ask({ origins: '*', credentials: true }, 'GET', app);
    expect(response.headers.get('access-control-allow-credentials')).toBeNull();
  });
});
