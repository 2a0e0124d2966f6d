import { describe, expect, it } from 'vitest';
import {
  CHAT_ID,
  contractBody,
  createContractUser,
  openEvents,
  readEvents,
  startContractTurn as startTurn,
  talker,
} from '../../../test/contract-client.ts';
import {
  chatBody,
  createAgent,
  createLogSpy,
  createTestGateway,
  createUser,
  echo,
  openSse,
  readChunks,
  refusal,
} from '../../../test/gateway-client.ts';
import { memoryTurnLog } from '../../gateway/index.ts';

describe('the wire', () => {
  it('of a route of the contract can be the AI SDK’s', async () => {
    const gateway = createTestGateway(echo);
    const carl = createContractUser(gateway, 'carl');
    const response = await carl.post(contractBody('hi'), { query: 'wire=ai-sdk' });
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    const sse = openSse(response);
    await sse.ended;
    expect(sse.text()).toBe('You said hi');
    expect(sse.frames.at(-1)?.data).toBe('[DONE]');
    const [start] = sse.frames;
    const query = 'wire=ai-sdk&aiSdk=7';
    const rest = await carl.resumeAt(start?.id ?? '', CHAT_ID, { query });
    expect(await readChunks(rest)).toEqual(sse.chunks().slice(1));
  });

  it('of a session can be the contract’s, with the same cursors', async () => {
    const gateway = createTestGateway(talker);
    const carl = createUser(gateway, 'carl');
    const response = await carl.post(chatBody('hi'), { query: 'wire=contract' });
    expect(response.headers.has('x-vercel-ai-ui-message-stream')).toBe(false);
    const events = await readEvents(response);
    expect(events[0]?.data).toMatchObject({
      sessionId: 's1',
      conversationId: 'c1',
      endpoint: '/api/sessions/s1/chat',
    });
    for (const [at, { id }] of events.entries()) {
      if (id === undefined || at === events.length - 1) continue;
      const rest = await readEvents(await carl.resumeAt(id, 'c1', { query: 'wire=contract' }));
      expect(rest.at(-1)).toEqual(events.at(-1));
      expect((await carl.resumeAt(id)).headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    }
  });

  it('is one of the three: anything else is a 400, and nothing is prompted', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream);
    const carl = createContractUser(gateway, 'carl');
    const inSession = createUser(gateway, 'carl');
    for (const query of ['wire=ag_ui', 'wire=']) {
      const responses = await Promise.all([
        carl.post(contractBody('hi'), { query }),
        carl.resume(CHAT_ID, { query }),
        inSession.post(chatBody('hi'), { query }),
        inSession.resume('c1', { query }),
      ]);
      for (const response of responses) {
        expect(await refusal(response)).toMatchObject({ status: 400, code: 'bad-request' });
      }
    }
    expect(agent.runs).toHaveLength(0);
  });
});

describe('a viewer that is let go', () => {
  it('for an expired sign-in is told so with a terminal error, and resumes where it was', async () => {
    const authenticate = (request: Request) => ({
      id: 'carl',
      ...(request.headers.has('x-short') && { expiresAt: Date.now() + 60 }),
    });
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { authenticate });
    const carl = createContractUser(gateway, 'carl');
    const headers = { 'x-short': '1' };
    const first = openEvents(await carl.post(contractBody('hi'), { headers }));
    const run = await agent.run();
    run.say({ type: 'tool-input-available', toolCallId: 't', toolName: 'dig', input: {} });
    run.delta('a');
    await first.ended;
    // Nothing is said of the message, whose turn goes on.
    expect(first.types()).toEqual(['meta', 'message.start', 'tool.call', 'message.delta', 'error']);
    expect(first.events().at(-1)).toEqual({
      type: 'error',
      data: {
        message: 'Your sign-in has expired.',
        code: 'sign-in-expired',
        retryable: true,
        terminal: true,
      },
    });
    const second = openEvents(await carl.resumeAt(first.events().at(-2)?.id ?? ''));
    run.delta('b');
    run.end();
    await second.ended;
    expect(second.said()).toBe('b');
    expect(second.types().at(-1)).toBe('done');
  });

  it('before it was told anything hears of the run and the error, and of no message', async () => {
    const authenticate = () => ({ id: 'carl', expiresAt: Date.now() + 40 });
    const gateway = createTestGateway(createAgent().upstream, { authenticate });
    const reader = openEvents(
      await createContractUser(gateway, 'carl').post(contractBody('hi'), {}),
    );
    await reader.ended;
    expect(reader.types()).toEqual(['meta', 'error']);
  });

  it('and comes back by itself is just let go', async () => {
    const authenticate = () => ({ id: 'carl', expiresAt: Date.now() + 60 });
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { authenticate });
    const headers = { 'x-sabir-resume': '0' };
    const carl = createContractUser(gateway, 'carl');
    const reader = openEvents(await carl.post(contractBody('hi'), { headers }));
    (await agent.run()).delta('a');
    await reader.ended;
    expect(reader.types()).toEqual(['meta', 'message.start', 'message.delta']);
  });

  it('because the server goes down is told that', async () => {
    const { gateway, first, run } = await startTurn();
    run.delta('a');
    await first.until(() => first.said());
    await gateway.close();
    await first.ended;
    expect(first.events().at(-1)).toMatchObject({
      type: 'error',
      data: { code: 'shutting-down', retryable: true, terminal: true },
    });
    expect(first.types()).not.toContain('done');
  });

  it('because the log failed, or went away under it, is told that', async () => {
    for (const [broken, code] of [
      [async () => Promise.reject(new Error('gone')), 'log-failed'],
      [async () => ({ done: true as const, value: undefined }), 'shutting-down'],
    ] as const) {
      const log = memoryTurnLog();
      const read: typeof log.read = () => ({ [Symbol.asyncIterator]: () => ({ next: broken }) });
      const { first } = await startTurn({ log: { ...log, read } });
      await first.ended;
      expect(first.types()).toEqual(['meta', 'error']);
      expect(first.events().at(-1)?.data).toMatchObject({ code, retryable: true, terminal: true });
    }
  });

  it('because it was too slow is told that', async () => {
    const { first: _, run, carl } = await startTurn({ limits: { viewerBacklogBytes: 1_000 } });
    run.delta('a');
    const response = await carl.resume();
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const first = await reader.read();
    expect(first.done).toBe(false);
    for (let i = 0; i < 10; i++) run.say({ type: 'data-x', data: 'x'.repeat(500) });
    await new Promise((resolve) => setTimeout(resolve, 50));
    let text = '';
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      text += new TextDecoder().decode(next.value);
    }
    expect(text).toContain('"code":"viewer-too-slow"');
    expect(text.trimEnd().split('\n\n').at(-1)).toMatch(/^event: error\n/);
  });
});

describe('a `meta` of the operator’s that throws', () => {
  it('is logged, and adds nothing', async () => {
    const { logger, lines } = createLogSpy();
    const meta = () => {
      throw new Error('no such model');
    };
    const gateway = createTestGateway(echo, { logger, routes: { chat: { meta } } });
    const events = await readEvents(
      await createContractUser(gateway, 'carl').post(contractBody('hi')),
    );
    expect(events[0]?.data).toMatchObject({ conversationId: CHAT_ID });
    expect(lines.map(({ message }) => message)).toContain('meta threw');
  });
});
