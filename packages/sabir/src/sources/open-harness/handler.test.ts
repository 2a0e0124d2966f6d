import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { CLIENTS, createClient, httpTransport } from '../../../test/real-clients.ts';
import type { Chunk } from '../../core/chunks.ts';
import { createSseDecoder } from '../../core/sse.ts';
import { verifyChunks } from '../../core/verify.ts';
import { createFlowRuntime, type FlowNodeContext } from './flow-runtime.ts';
import { createOpenHarnessHandler } from './handler.ts';

const url = 'http://localhost/api/flow';
const body = (text = 'hi', more: object = {}) => ({
  id: 'chat',
  trigger: 'submit-message',
  messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text }] }],
  ...more,
});
const post = (content: unknown, init: RequestInit = {}) =>
  new Request(url, {
    method: 'POST',
    body: typeof content === 'string' ? content : JSON.stringify(content),
    ...init,
  });

const flow = (node: (context: FlowNodeContext) => unknown) => () =>
  createFlowRuntime({ name: 'f', nodes: { a: node } });
const echo = flow(({ input, emit }) => {
  const { message } = input as { message: string };
  emit({ type: 'agent:thinking', content: 'Hm.' });
  emit({
    type: 'agent:tool',
    toolName: 'look',
    toolInput: { message },
    toolOutput: message.length,
  });
  emit({ type: 'agent:text', content: `You said ${message}` });
});

function decode(text: string): Chunk[] {
  const chunks: Chunk[] = [];
  const decoder = createSseDecoder({
    frame: ({ data }) => {
      if (data !== '[DONE]') chunks.push(JSON.parse(data));
    },
  });
  decoder.push(text);
  decoder.end();
  return chunks;
}

describe('createOpenHarnessHandler', () => {
  it('answers with the AI SDK stream and its headers', async () => {
    const response = await createOpenHarnessHandler(echo)(post(body()));
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'x-vercel-ai-ui-message-stream': 'v1',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    const text = await response.text();
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(verifyChunks(decode(text))).toEqual([]);
  });

  it.each(CLIENTS)('serves the stock transport of $name', async ({ name }) => {
    const handler = createOpenHarnessHandler(echo);
    const transport = await httpTransport(name, (to, init) => handler(new Request(to, init)));
    const { chat, result } = await createClient(name, transport);
    await chat.sendMessage({ text: 'ahoy' });
    expect(result().status).toBe('ready');
    expect(result().message?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'reasoning', text: 'Hm.' },
      { type: 'tool-look', input: { message: 'ahoy' }, output: 4 },
      { type: 'text', text: 'You said ahoy', state: 'done' },
    ]);
    await chat.sendMessage({ text: 'again' });
    expect(result().messages).toHaveLength(4);
  });

  it('tells the factory who asks, and lets it refuse with a response', async () => {
    const seen = vi.fn();
    const handler = createOpenHarnessHandler((context) => {
      seen(context.chatId, context.body, context.messages.length);
      if (!context.request.headers.has('authorization')) {
        throw new Response('who are you?', { status: 401 });
      }
      return echo();
    });
    const refused = await handler(post(body('hi', { plan: 'free' })));
    expect([refused.status, await refused.text()]).toEqual([401, 'who are you?']);
    expect(seen).toHaveBeenCalledWith('chat', { plan: 'free' }, 1);
    const allowed = await handler(post(body(), { headers: { authorization: 'Bearer x' } }));
    expect(allowed.status).toBe(200);
  });

  it('accepts messages with content instead of parts', async () => {
    const response = await createOpenHarnessHandler(echo)(
      post({ messages: [{ role: 'user', content: 'old style' }] }),
    );
    expect(await response.text()).toContain('You said old style');
  });

  it.each([
    ['{', 400, 'The body is not JSON.'],
    ['', 400, 'The body is not JSON.'],
    ['[]', 400, 'The body is not an object.'],
    [{}, 400, 'messages is not an array.'],
    [{ messages: [null] }, 400, 'messages[0] is not an object.'],
    [{ messages: [{ role: 'robot' }] }, 400, 'messages[0].role is not user, assistant or system.'],
    [{ messages: [{ role: 'user' }] }, 400, 'messages[0] has neither parts nor content.'],
    [
      { messages: [{ role: 'user', parts: ['x'] }] },
      400,
      'A part of messages[0] is not an object.',
    ],
    [body('x'.repeat(2_000_000)), 413, 'The body is larger than 1000000 bytes.'],
  ])('says what is wrong with a request: %#', async (content, status, message) => {
    const response = await createOpenHarnessHandler(echo)(post(content));
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({
      message,
      code: expect.any(String),
      remedy: expect.any(String),
    });
  });

  it('counts the bytes of a body that does not tell its length', async () => {
    const stream = new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(100_000));
      },
    });
    const response = await createOpenHarnessHandler(echo)(
      new Request(url, { method: 'POST', body: stream, duplex: 'half' } as RequestInit),
    );
    expect(response.status).toBe(413);
  });

  it('has nothing to resume, and takes nothing but POST', async () => {
    const handler = createOpenHarnessHandler(echo, { headers: { 'x-mine': '1' } });
    const resume = await handler(new Request(`${url}/chat/stream`));
    expect([resume.status, resume.headers.get('x-mine')]).toEqual([204, '1']);
    expect((await handler(new Request(url, { method: 'DELETE' }))).status).toBe(405);
  });

  it('streams an error for people when the runtime cannot be made, and logs where, without its text', async () => {
    const error = vi.fn();
    const handler = createOpenHarnessHandler(
      () => {
        throw new Error('No API key in the environment');
      },
      { logger: { warn: vi.fn(), error } },
    );
    const chunks = decode(await (await handler(post(body()))).text());
    // What the factory said may name an address or a key, so it stays on the server.
    expect(chunks).toContainEqual({
      type: 'error',
      errorText: 'The agent could not finish its answer.',
    });
    expect(verifyChunks(chunks)).toEqual([]);
    expect(error).toHaveBeenCalledExactlyOnceWith('the runtime could not be created', {
      error: { name: 'Error', stack: expect.any(String) },
    });
  });

  it('says before the first byte that a factory gave no runtime, or that nobody asked', async () => {
    const nothing = await createOpenHarnessHandler(() => undefined as never)(post(body()));
    expect([nothing.status, (await nothing.json()).code]).toEqual([503, 'runtime-not-ready']);
    const factory = vi.fn(echo);
    const silent = await createOpenHarnessHandler(factory)(post({ messages: [] }));
    expect([silent.status, (await silent.json()).code]).toEqual([400, 'no-user-message']);
    expect(factory).not.toHaveBeenCalled();
  });

  it('puts the headers it was given on every response, in place of its own', async () => {
    const handler = createOpenHarnessHandler(
      ({ body: { refuse } }) => {
        if (refuse) throw new Response(null, { status: 401 });
        return echo();
      },
      { headers: { 'Access-Control-Allow-Origin': '*', 'Cache-Control': 'no-store' } },
    );
    const requests = [
      post(body()),
      post(body('hi', { refuse: true })),
      post('{'),
      new Request(url, { method: 'OPTIONS' }),
      new Request(url, { method: 'PUT' }),
    ];
    const answers = await Promise.all(requests.map((request) => handler(request)));
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 400, 204, 405]);
    for (const { headers } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe('*');
      expect(headers.get('cache-control')).toBe('no-store');
    }
    expect(answers[4]?.headers.get('allow')).toBe('POST');
  });

  it('can refuse with one and the same response twice', async () => {
    const refusal = new Response('no', { status: 403 });
    const handler = createOpenHarnessHandler(() => {
      throw refusal;
    });
    for (let n = 0; n < 2; n++) {
      const answer = await handler(post(body()));
      expect([answer.status, await answer.text()]).toEqual([403, 'no']);
    }
  });

  it('sends no comments when told so', async () => {
    vi.useFakeTimers();
    try {
      for (const keepAliveMs of [0, Number.POSITIVE_INFINITY]) {
        const handler = createOpenHarnessHandler(
          flow(() => new Promise(() => undefined)),
          { keepAliveMs },
        );
        const response = await handler(post(body()));
        expect(vi.getTimerCount()).toBe(0);
        await response.body?.cancel();
      }
    } finally {
      vi.useRealTimers();
    }
  });

  it('does not run anything for a client that left while the runtime was being made', async () => {
    const node = vi.fn();
    const controller = new AbortController();
    const handler = createOpenHarnessHandler(async () => {
      controller.abort();
      return flow(node)();
    });
    await (await handler(post(body(), { signal: controller.signal }))).text();
    expect(node).not.toHaveBeenCalled();
  });

  it('lets a factory hand out the chat’s own paused runtime, one stream at a time', async () => {
    const runtime = createFlowRuntime({
      name: 'f',
      nodes: {
        a: async ({ emit, messages }) => {
          emit({ type: 'agent:text:delta', content: `Heard [${messages}]. ` });
          if (messages.length === 0) await new Promise(() => undefined);
        },
      },
    });
    const handler = createOpenHarnessHandler(() => runtime);
    const first = await handler(post(body('one')));
    runtime.dispatch({ type: 'abort', resumable: true });
    expect(await first.text()).toContain('"outcome":"paused"');
    const second = await (await handler(post(body('two')))).text();
    expect(second).toContain('Heard [two].');
    expect(second).toContain('"outcome":"finished"');
  });

  it('stops the run when a value it handed over was made unsayable afterwards', async () => {
    const signals: AbortSignal[] = [];
    const handler = createOpenHarnessHandler(
      flow(({ emit, signal }) => {
        signals.push(signal);
        const toolOutput: Record<string, unknown> = {};
        emit({ type: 'agent:tool', toolName: 't', toolOutput });
        toolOutput.self = toolOutput;
        return new Promise(() => undefined);
      }),
    );
    await expect((await handler(post(body()))).text()).rejects.toThrow(/circular/i);
    expect(signals[0]?.aborted).toBe(true);
  });

  it('refuses a body that was read already', async () => {
    const request = post(body());
    await request.text();
    expect((await createOpenHarnessHandler(echo)(request)).status).toBe(400);
  });

  it('keeps a silent stream open with comments', async () => {
    vi.useFakeTimers();
    try {
      const handler = createOpenHarnessHandler(
        flow(() => new Promise(() => undefined)),
        { keepAliveMs: 15_000 },
      );
      const response = await handler(post(body()));
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      const next = async () => new TextDecoder().decode((await reader.read()).value);
      expect(await next()).toContain('"type":"start"');
      expect(await next()).toContain('"type":"start-step"');
      const silent = next();
      await vi.advanceTimersByTimeAsync(15_000);
      expect(await silent).toBe(': keep-alive\n\n');
      await reader.cancel();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('stops the run when the request is aborted, before or during the stream', async () => {
    for (const abortFirst of [true, false]) {
      const signals: AbortSignal[] = [];
      const controller = new AbortController();
      const handler = createOpenHarnessHandler(
        flow(({ signal }) => {
          signals.push(signal);
          return new Promise(() => undefined);
        }),
      );
      const request = post(body(), { signal: controller.signal });
      if (abortFirst) queueMicrotask(() => controller.abort());
      const response = handler(request);
      if (!abortFirst) {
        await response;
        controller.abort();
      }
      const text = await response.then(
        (answer) => answer.text(),
        () => '',
      );
      if (text) expect(text).toContain('"outcome":"stopped"');
      for (const signal of signals) expect(signal.aborted).toBe(true);
    }
  });
});

describe('over a real socket', () => {
  const signals: AbortSignal[] = [];
  const handler = createOpenHarnessHandler(
    flow(async ({ emit, signal }) => {
      signals.push(signal);
      emit({ type: 'agent:text:delta', content: 'Half ' });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    }),
  );

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const answer = await handler(post(Buffer.concat(chunks).toString()));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    response.on('close', () => void reader.cancel());
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      response.write(value);
    }
    response.end();
  }

  const server = createServer((request, response) => void serve(request, response));
  beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)));
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  it.each(CLIENTS)('stops the run when the Chat of $name stops [FR-009]', async ({ name }) => {
    const { port } = server.address() as AddressInfo;
    const transport = await httpTransport(name, (_, init) =>
      fetch(`http://127.0.0.1:${port}/`, init),
    );
    const { chat, result } = await createClient(name, transport);
    const sent = chat.sendMessage({ text: 'hi' });
    await vi.waitFor(() => expect(result().message?.parts.at(-1)).toMatchObject({ text: 'Half ' }));
    await chat.stop();
    await sent;
    await vi.waitFor(() => expect(signals.at(-1)?.aborted).toBe(true));
    expect([result().status, result().error]).toEqual(['ready', undefined]);
  });
});
