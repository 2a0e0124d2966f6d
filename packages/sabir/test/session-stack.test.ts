/** The RFC's integration tests on the real chain: agent → session → gateway → client. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import { foldChunks } from '../src/core/fold.ts';
import { createSseDecoder } from '../src/core/sse.ts';
import { verifyChunks } from '../src/core/verify.ts';
import {
  type SessionStackOptions,
  sqliteSessionStore,
  startSessionStack,
} from '../src/platforms/node/sessions.ts';
import { chatBody, openSse, readChunks } from './gateway-client.ts';
import { CLIENTS, createClient, httpTransport } from './real-clients.ts';
import { type ScriptedAgent, scriptedAgent } from './scripted-agent.ts';
import { joinSession } from './session-chain.ts';

const ROLES = { vera: 'viewer', carl: 'collaborator', olga: 'owner' } as const;

async function start(
  options: Partial<Omit<SessionStackOptions, 'agent'>> & { agent?: ScriptedAgent } = {},
) {
  const { agent = scriptedAgent(), ...given } = options;
  const folder = mkdtempSync(join(tmpdir(), 'sabir-stack-'));
  const store = sqliteSessionStore({ file: join(folder, 'sessions.db') });
  const stack = await startSessionStack({
    store,
    agent: () => agent,
    authenticate: ({ headers }) => {
      const id = headers.get('authorization')?.replace('Bearer ', '');
      return id ? { id, name: id } : null;
    },
    access: ({ id }, sessionId) =>
      sessionId.startsWith('s') ? (ROLES[id as keyof typeof ROLES] ?? null) : null,
    shutdownMs: 100,
    ...given,
  });
  onTestFinished(async () => {
    await stack.close();
    store.close();
    rmSync(folder, { recursive: true });
  });
  const call = (path: string, user = 'carl', init: RequestInit = {}) =>
    fetch(`${stack.url}/api/sessions/${path}`, {
      ...init,
      headers: { authorization: `Bearer ${user}`, ...(init.headers as object) },
    });
  return {
    stack,
    store,
    agent,
    call,
    post: (text: string, { user = 'carl', session = 's1', chat = 'c1', ...init } = {} as Post) =>
      call(`${session}/chat`, user, {
        method: 'POST',
        body: JSON.stringify(chatBody(text, { id: chat })),
        ...init,
      }),
    join: (user = 'olga', sessionId = 's1', query = '&dialect=v2') =>
      joinSession(stack, { user, sessionId, query }),
  };
}

type Post = { user?: string; session?: string; chat?: string } & RequestInit;

const textOf = (chunks: Chunk[]) =>
  chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');

describe('agent → session → gateway → client', () => {
  it.each(CLIENTS)(
    'round trip: $name gets the answer, and the session keeps it [RFC-INT-1.1] [RFC-INT-1.2] [RFC-INT-1.3]',
    async ({ name }) => {
      const { stack, store } = await start();
      const api = `${stack.url}/api/sessions/s1/chat`;
      const transport = await httpTransport(name, (_, init) => {
        const headers = { ...(init.headers as object), authorization: 'Bearer carl' };
        return fetch(api, { ...init, headers });
      });
      const { chat, result } = await createClient(name, transport);
      await chat.sendMessage({ text: 'everything' });
      const { status, message, error } = result();
      expect([status, error]).toEqual(['ready', undefined]);
      const shown = message?.parts.map(({ type }) => type).filter((type) => type !== 'data-queue');
      expect(shown).toEqual([
        ...['step-start', 'reasoning', 'tool-lookup', 'step-start', 'text', 'source-url', 'file'],
        'data-weather',
      ]);
      await chat.sendMessage({ text: 'text' });
      expect(result().messages.at(-1)?.parts.at(-1)).toMatchObject({ text: 'Hello, world!' });
      expect(
        store
          .open('s1')
          .messages()
          .map(({ role }) => role),
      ).toEqual([...['user', 'assistant', 'user', 'assistant']]);
    },
  );

  it('the stream is start, deltas, finish, and lawful [RFC-INT-1.3]', async () => {
    const { post } = await start();
    const chunks = await readChunks(await post('text'));
    expect(verifyChunks(chunks)).toEqual([]);
    const types = chunks.map(({ type }) => type).filter((type) => !type.startsWith('data-'));
    expect(types).toEqual([
      ...['start', 'text-start', 'text-delta', 'text-delta', 'text-delta', 'text-end', 'finish'],
    ]);
  });

  it('abort: a client that closes its connection stops its own turn, and no other [RFC-INT-2.1] [RFC-INT-2.2] [RFC-INT-2.3]', async () => {
    const { post, store, agent } = await start({
      gateway: { timing: { disconnectGraceMs: 20 } },
    });
    const leave = new AbortController();
    const response = await post('slow', { signal: leave.signal });
    const turnId = response.headers.get('x-sabir-turn') as string;
    const sse = openSse(response);
    sse.ended.catch(() => undefined);
    await sse.until(() => sse.text() === 'Half ');
    const next = openSse(await post('text', { chat: 'c2', user: 'olga' }));
    await next.until(() => next.raw().includes('data-queue'));
    leave.abort();
    await next.ended;
    expect(next.text()).toBe('Hello, world!');
    expect(agent.prompts[0]?.signal.aborted).toBe(true);
    expect(store.open('s1').promptInfo('turnId', turnId)).toMatchObject({ outcome: 'stopped' });
  });

  it('auth: at the gateway and at the socket alike [RFC-INT-3.1] [RFC-INT-3.2] [RFC-INT-3.3]', async () => {
    const { stack, post, join } = await start();
    const nobody = await fetch(`${stack.url}/api/sessions/s1/chat`, { method: 'POST', body: '{}' });
    expect(nobody.status).toBe(401);
    expect((await post('text', { session: 'x1' })).status).toBe(404);
    expect((await post('text', { user: 'vera' })).status).toBe(404);
    // The socket is held to the same, whoever comes past the gateway.
    const vera = await join('vera');
    vera.send({ type: 'prompt', content: 'text' });
    expect(await vera.until(({ type }) => type === 'error')).toMatchObject({
      code: 'may-only-watch',
    });
    expect(stack.sessions.sessions.size).toBe(1);
  });

  it('tools: their input, output and errors arrive in order, as they were [RFC-INT-4.1] [RFC-INT-4.2] [RFC-INT-4.3]', async () => {
    const { post } = await start();
    const chunks = await readChunks(await post('tool'));
    const tools = chunks.filter(({ type }) => type.startsWith('tool-'));
    expect(tools).toMatchObject([
      { type: 'tool-input-start', toolCallId: 'call-1', toolName: 'lookup' },
      { type: 'tool-input-available', toolCallId: 'call-1', input: { port: 'Oran' } },
      { type: 'tool-output-available', toolCallId: 'call-1', output: { berths: 42 } },
    ]);
    const failed = foldChunks(await readChunks(await post('toolerror', { chat: 'c2' })));
    expect(failed.parts).toContainEqual(
      expect.objectContaining({ state: 'output-error', errorText: 'No such port.' }),
    );
    expect(failed.metadata).toMatchObject({ outcome: 'finished' });
  });

  it('errors: the agent’s words arrive, and the stream closes cleanly [RFC-INT-5.1] [RFC-INT-5.2] [RFC-INT-5.3]', async () => {
    const { post, call } = await start();
    const chunks = await readChunks(await post('failhalf'));
    expect(verifyChunks(chunks)).toEqual([]);
    expect(chunks.slice(-2)).toMatchObject([
      { type: 'error', errorText: 'It broke.' },
      { type: 'finish' },
    ]);
    const history = await (await call('s1/messages')).json();
    expect(history.at(-1)).toMatchObject({ metadata: { outcome: 'failed' } });
    expect(textOf(await readChunks(await post('text', { chat: 'c2' })))).toBe('Hello, world!');
  });

  it('long turns: a thousand deltas, none lost, for whoever comes late as well [RFC-INT-6.1] [RFC-INT-6.2] [RFC-INT-6.3]', async () => {
    const { post, call, join } = await start();
    const direct = await join();
    const sse = openSse(await post('bursts 1000'));
    await sse.until(() => sse.text().length > 0);
    const late = openSse(await call('s1/chat/c1/stream'));
    await Promise.all([sse.ended, late.ended]);
    const whole = Array.from({ length: 1_000 }, (_, i) => `${i + 1} `).join('');
    expect(sse.chunks().filter(({ type }) => type === 'text-delta')).toHaveLength(1_000);
    for (const { text, chunks } of [sse, late]) {
      expect(text()).toBe(whole);
      expect(verifyChunks(chunks())).toEqual([]);
    }
    await direct.until(({ type }) => type === 'message.finalize');
    expect(direct.text()).toBe(whole);
    const [, answer] = await (await call('s1/messages')).json();
    expect(answer.parts.at(-1)).toMatchObject({ text: whole });
  });

  it('speed: what the gateway adds to the session’s own socket, measured [RFC-INT-7.1]', async () => {
    const PACED = 300;
    const agent = scriptedAgent();
    const { post, join } = await start({ agent });
    const arrivals = { direct: new Map<string, number>(), gateway: new Map<string, number>() };
    const direct = await join('olga', 's1', '&dialect=v2');
    direct.onEvent = ({ type, delta }) => {
      if (type === 'message.part.text-delta')
        arrivals.direct.set(delta as string, performance.now());
    };
    const decoder = createSseDecoder({
      frame({ data }) {
        if (!data.includes('"text-delta"')) return;
        arrivals.gateway.set((JSON.parse(data) as { delta: string }).delta, performance.now());
      },
    });
    const { body } = await post(`paced ${PACED}`);
    for await (const bytes of body ?? []) decoder.push(bytes);
    const added = [...arrivals.gateway]
      .map(([delta, at]) => at - (arrivals.direct.get(delta) ?? Number.NaN))
      .sort((a, b) => a - b);
    expect(added).toHaveLength(PACED);
    const at = (share: number) => (added[Math.floor(PACED * share)] as number).toFixed(2);
    console.log(`added by the gateway to the direct socket: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
    expect(Number(at(0.5))).toBeLessThan(5);
  });

  it('a hundred streams of one session, a hundred prompts in a row [RFC-INT-7.2]', async () => {
    const { post, call } = await start();
    const sse = openSse(await post('slow'));
    await sse.until(() => sse.text() === 'Half ');
    const viewers = await Promise.all(
      Array.from({ length: 100 }, async () => openSse(await call('s1/chat/c1/stream'))),
    );
    await call('s1/chat/c1/stop', 'carl', { method: 'POST' });
    for (const { ended, chunks } of [sse, ...viewers]) {
      await ended;
      expect(foldChunks(chunks()).metadata).toMatchObject({ outcome: 'stopped' });
    }
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, i) =>
        readChunks(await post(`echo ${i}`, { chat: `c-${i}` })),
      ),
    );
    expect(answers.map(textOf)).toEqual(answers.map((_, i) => `echo ${i}`));
  });
});

describe('the chain', () => {
  it('shows a queued prompt’s place, and takes it back', async () => {
    const { post, call, join } = await start();
    const first = openSse(await post('slow'));
    await first.until(() => first.text() === 'Half ');
    const second = openSse(await post('text', { chat: 'c2', user: 'olga' }));
    const third = openSse(await post('text', { chat: 'c3' }));
    const placeOf = ({ chunks }: typeof first) =>
      chunks().findLast(({ type }) => type === 'data-queue') as { data: object } | undefined;
    await third.until(() => placeOf(third));
    expect(placeOf(second)?.data).toMatchObject({ position: 1, status: 'waiting' });
    expect(placeOf(third)?.data).toMatchObject({ position: 2 });
    const vera = await join('vera');
    await call('s1/chat/c2/stop', 'olga', { method: 'POST' });
    await second.ended;
    expect(foldChunks(second.chunks()).metadata).toMatchObject({
      outcome: 'stopped',
    });
    await third.until(() => JSON.stringify(placeOf(third)).includes('"position":1'));
    expect(await vera.until(({ type }) => type === 'queue.withdrawn')).toBeTruthy();
    await call('s1/chat/c1/stop', 'carl', { method: 'POST' });
    await third.ended;
    expect(third.text()).toBe('Hello, world!');
  });

  it('stops what runs, and not what waits behind it in the same chat', async () => {
    const { post, call } = await start();
    const first = openSse(await post('slow'));
    await first.until(() => first.text() === 'Half ');
    const next = post('text', { user: 'olga' });
    const second = openSse(await next);
    await second.until(() => JSON.stringify(second.chunks()).includes('data-queue'));
    expect((await call('s1/chat/c1/stop', 'carl', { method: 'POST' })).status).toBe(202);
    await Promise.all([first.ended, second.ended]);
    expect(foldChunks(first.chunks()).metadata).toMatchObject({ outcome: 'stopped' });
    expect(second.text()).toBe('Hello, world!');
  });

  it('asks, is answered over HTTP, and every viewer sees it', async () => {
    const { post, call, join } = await start();
    const olga = await join();
    const sse = openSse(await post('question'));
    const open = await sse.until(() => sse.chunks().find(({ type }) => type === 'data-question'));
    expect(open).toMatchObject({
      data: {
        questionId: 'q1',
        options: ['Yes', 'No'],
        status: 'open',
        expiresAt: expect.any(Number),
      },
    });
    const answer = (given: string) =>
      call('s1/chat/c1/answer', 'carl', {
        method: 'POST',
        body: JSON.stringify({ questionId: 'q1', answer: given }),
      });
    expect((await answer('Yes')).status).toBe(202);
    expect((await answer('No')).status).toBe(409);
    await sse.ended;
    expect(sse.text()).toBe('I need a decision. Answered: Yes');
    expect(olga.of('status').map(({ data }) => data)).toContainEqual({
      questionAnswered: 'q1',
      answer: 'Yes',
    });
  });

  it('an answer on the session’s own socket counts as well', async () => {
    const { post, join } = await start();
    const olga = await join();
    const sse = openSse(await post('question'));
    await olga.until(({ type }) => type === 'question');
    olga.send({ type: 'answer', questionId: 'q1', answer: 'No' });
    await sse.ended;
    expect(sse.text()).toBe('I need a decision. Answered: No');
    const questions = sse.chunks().filter(({ type }) => type === 'data-question');
    expect(questions.at(-1)).toMatchObject({ data: { status: 'answered', answer: 'No' } });
  });

  it('a stop on the session’s own socket ends the turn for everybody', async () => {
    const { post, join } = await start();
    const olga = await join();
    const sse = openSse(await post('slow'));
    await sse.until(() => sse.text() === 'Half ');
    olga.send({ type: 'abort' });
    await sse.ended;
    expect(foldChunks(sse.chunks()).metadata).toMatchObject({ outcome: 'stopped' });
  });

  it('keeps channels apart [RFC-CHANNEL-01]', async () => {
    const { post, call } = await start();
    const slack = 'channelType=slack&channelId=c9';
    await readChunks(await post('text'));
    const url = `s1/chat?${slack}`;
    const body = JSON.stringify(chatBody('echo slack', { id: 'c2' }));
    await readChunks(await call(url, 'carl', { method: 'POST', body }));
    const texts = async (query: string) => {
      const messages = await (await call(`s1/messages${query}`)).json();
      return messages.flatMap(({ parts }: { parts: { text?: string }[] }) =>
        parts.flatMap(({ text }) => text ?? []),
      );
    };
    expect(await texts('')).toEqual(['text', 'Hello, world!']);
    expect(await texts(`?${slack}`)).toEqual(['echo slack', 'echo slack']);
    expect(await (await call('s1/channels')).json()).toHaveLength(2);
  });
});
