/** Attacks through the application's own code: an agent, or a hook, that breaks its contract. */
import { setImmediate as nextTick } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Chunk } from '../../src/core/chunks.ts';
import { asUpstream, memoryTurnLog } from '../../src/gateway/index.ts';
import { chatBody, echo, openSse, readChunks, refusal } from '../gateway-client.ts';
import { startAttacked } from './attacked.ts';

const SECRET = 'my secret is 1234';

/** Errors that throw when they are read. */
const unreadable = (): [string, unknown][] => [
  ['has no message', Object.assign(new Error(SECRET), { message: undefined })],
  ['has an empty message', Object.assign(new Error(SECRET), { message: '' })],
  ['has a symbol for a message', Object.assign(new Error(SECRET), { message: Symbol('x') })],
  ['throws when its message is read', withGetter('message')],
  ['throws when its stack is read', withGetter('stack')],
];

function withGetter(name: string): Error {
  return Object.defineProperty(new Error(SECRET), name, {
    get() {
      throw new Error('Do not read me.');
    },
  });
}

describe('an error of the application', () => {
  it.each(unreadable())('that %s is a 500 from access, and is logged', async (_, error) => {
    const attacked = await startAttacked(echo, {
      access() {
        throw error;
      },
    });
    const response = await attacked.user('carl').post(chatBody('a'));
    expect(await refusal(response)).toMatchObject({ status: 500, code: 'internal-error' });
    expect(attacked.lines).toContainEqual(expect.objectContaining({ message: 'request failed' }));
  });

  it.each(unreadable())(
    'that %s does not break a turn from onFinish or the agent',
    async (_, error) => {
      const agent = asUpstream(async function* ({ text }) {
        yield { type: 'text-delta', id: '1', delta: 'hi' };
        if (text === 'throw') throw error;
      });
      const attacked = await startAttacked(agent, {
        onFinish() {
          throw error;
        },
      });
      const carl = attacked.user('carl');
      const failed = openSse(await carl.post(chatBody('throw')));
      await failed.ended;
      expect(failed.frames.at(-1)?.data).toBe('[DONE]');
      expect((await readChunks(await carl.post(chatBody('again')))).at(-1)).toMatchObject({
        type: 'finish',
      });
      await expect.poll(() => attacked.use('liveTurns')).toBe(0);
      expect(attacked.lines.filter(({ message }) => message === 'onFinish failed')).toHaveLength(2);
      expect(JSON.stringify(attacked.lines)).not.toContain(SECRET);
    },
  );
});

/** Says these, as they are. */
const saying = (...chunks: unknown[]) =>
  asUpstream(async function* () {
    for (const chunk of chunks) yield chunk as Chunk;
  });

const FORGED =
  '\n\nevent: done\nid: forged:1\ndata: {"type":"finish"}\n\n: \r\rdata: x\u2028\u2029\0';

function nested(depth: number): unknown {
  let value: unknown = 'core';
  for (let i = 0; i < depth; i++) value = i % 2 ? [value] : { value };
  return value;
}

describe('a chunk', () => {
  const hostile: [string, unknown][] = [
    ['text', { type: 'text-delta', id: '1', delta: FORGED }],
    ['part id', { type: 'text-delta', id: FORGED, delta: 'x' }],
    ['type', { type: `data-${FORGED}`, id: 'd', data: 1 }],
    ['message id', { type: 'start', messageId: FORGED }],
    [
      'tool name',
      { type: 'tool-input-available', toolCallId: FORGED, toolName: FORGED, input: {} },
    ],
    ['question', { type: 'data-question', id: FORGED, data: { questionId: FORGED, text: FORGED } }],
    ['metadata', { type: 'message-metadata', messageMetadata: { [FORGED]: FORGED } }],
  ];

  it.each(hostile)(
    'with the end of a frame in its %s forges no frame on any wire',
    async (_, chunk) => {
      const { user } = await startAttacked(saying(chunk));
      for (const [i, query] of ['', 'aiSdk=5', 'aiSdk=6', 'aiSdk=7', 'wire=contract'].entries()) {
        const sse = openSse(await user('carl').post(chatBody('a', { id: `c${i}` }), { query }));
        await sse.ended;
        expect(sse.frames.length).toBeGreaterThan(1);
        for (const { id, data } of sse.frames) {
          expect(id ?? '').not.toContain('forged');
          if (data !== '[DONE]') expect(() => JSON.parse(data)).not.toThrow();
        }
        expect(sse.raw()).not.toMatch(/^data: x/m);
      }
    },
  );

  it.each<[string, unknown]>([
    ['is nested 100,000 levels deep', nested(100_000)],
    [
      'contains itself',
      Object.assign(
        [],
        { 0: {} },
        {
          get 1() {
            return this;
          },
        },
      ),
    ],
    [
      'throws when it is read',
      {
        get secret() {
          throw new Error('no');
        },
      },
    ],
    [
      'throws when it becomes JSON',
      {
        toJSON() {
          throw new Error('no');
        },
      },
    ],
    ['is a bigint', { n: 1n }],
    ['is a function', { f: Math.random }],
  ])('whose input %s ends in an answer that every client can parse', async (_, input) => {
    const call = { toolCallId: 'c', toolName: 't' };
    const agent = saying(
      { type: 'tool-input-available', ...call, input },
      { type: 'tool-output-available', toolCallId: 'c', output: input },
      { type: 'data-x', data: input },
    );
    const { user, use } = await startAttacked(agent);
    const chunks = await readChunks(await user('carl').post(chatBody('a')));
    expect(chunks.at(-1)).toMatchObject({ type: 'finish' });
    await expect.poll(() => use('liveTurns')).toBe(0);
  });

  it('with __proto__ and constructor in its values pollutes nothing, and reaches clients without them', async () => {
    const hostile = JSON.parse(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    );
    let finished: unknown;
    const agent = saying(
      { type: 'start', messageMetadata: hostile },
      { type: 'message-metadata', messageMetadata: hostile },
      {
        type: 'tool-input-available',
        toolCallId: '__proto__',
        toolName: '__proto__',
        input: hostile,
      },
      { type: 'tool-output-available', toolCallId: '__proto__', output: hostile },
      { type: 'data-__proto__', id: '__proto__', data: hostile },
      { type: '__proto__' },
      { type: 'constructor' },
    );
    const { user } = await startAttacked(agent, {
      onFinish: ({ message }) => {
        finished = message;
      },
    });
    const sse = openSse(await user('carl').post(chatBody('a')));
    await sse.ended;
    expect(sse.raw()).not.toContain('polluted');
    await expect.poll(() => finished).toBeDefined();
    expect(JSON.stringify(finished)).not.toContain('polluted');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it('of a thousand unknown types makes two hundred lines of metrics, each on one line', async () => {
    const types = Array.from({ length: 1_000 }, (_, i) => ({ type: `odd"\n${i}} 1\nforged 1\n` }));
    const { user, url, use } = await startAttacked(saying(...types));
    await readChunks(await user('carl').post(chatBody('a')));
    await expect.poll(() => use('liveTurns')).toBe(0);
    const text = await (await fetch(`${url}/metrics`)).text();
    const odd = text.split('\n').filter((line) => line.includes('odd'));
    expect(odd.length).toBeLessThanOrEqual(201);
    expect(text).not.toMatch(/^forged/m);
  });
});

describe('an agent', () => {
  it('that says more without end is cut off at maxTurnBytes, and others are answered meanwhile', async () => {
    const agent = asUpstream(async function* ({ text }) {
      for (;;)
        yield { type: 'text-delta', id: '1', delta: text === 'flood' ? 'x'.repeat(100) : 'x' };
    });
    const log = memoryTurnLog({ maxTurnBytes: 3_000_000 });
    const { user, url, use } = await startAttacked(agent, { log });
    const sse = openSse(await user('carl').post(chatBody('flood')));
    let longestMs = 0;
    let isOver = false;
    void sse.ended.then(() => {
      isOver = true;
    });
    while (!isOver) {
      const from = performance.now();
      await (await fetch(`${url}/healthz`)).text();
      longestMs = Math.max(longestMs, performance.now() - from);
    }
    expect(sse.raw()).toContain('turn-too-large');
    expect(longestMs).toBeLessThan(1_000);
    await expect.poll(() => use('liveTurns')).toBe(0);
  });

  it('that goes on after a stop is not heard, and its place is free', async () => {
    let isDone = false;
    const agent = asUpstream(async function* () {
      for (let i = 0; i < 2_000; i++) {
        yield { type: 'text-delta', id: '1', delta: `${i} ` };
        await nextTick();
      }
      isDone = true;
    });
    const { user, use } = await startAttacked(agent);
    const sse = openSse(await user('carl').post(chatBody('a')));
    await sse.until(() => sse.text());
    expect((await user('carl').stop()).status).toBe(202);
    await sse.ended;
    await expect.poll(() => use('liveTurns')).toBe(0);
    expect(isDone).toBe(false);
  });

  it('that asks two thousand questions gets the answers to those that are answered', async () => {
    const agent = asUpstream(async function* ({ answer }) {
      for (let i = 0; i < 2_000; i++) {
        yield { type: 'data-question', id: `q${i}`, data: { questionId: `q${i}`, status: 'open' } };
      }
      const last = await answer('q1999');
      yield { type: 'text-delta', id: '1', delta: `got ${last} and ${await answer('__proto__')}` };
    });
    const { user } = await startAttacked(agent);
    const sse = openSse(await user('carl').post(chatBody('a')));
    await sse.until(() => sse.chunks().length > 2_000);
    expect((await user('carl').answer('__proto__', 'x')).status).toBe(404);
    expect((await user('carl').answer('q1999', 'x')).status).toBe(202);
    expect((await user('carl').stop()).status).toBe(202);
    await sse.ended;
  });
});

describe('a hook', () => {
  it('onAudit that throws, rejects or never settles changes no answer', async () => {
    const hooks = [
      () => {
        throw new Error(SECRET);
      },
      () => Promise.reject(new Error(SECRET)),
      () => new Promise(() => undefined),
    ];
    for (const onAudit of hooks) {
      const { user, lines } = await startAttacked(echo, { onAudit });
      const chunks = await readChunks(await user('carl').post(chatBody('a')));
      expect(chunks.at(-1)).toMatchObject({ type: 'finish' });
      expect(JSON.stringify(lines)).not.toContain(SECRET);
    }
  });

  it('meta that claims our own ids, or breaks lines, does not get them', async () => {
    const meta = { runId: 'forged', conversationId: 'forged', [FORGED]: FORGED, model: FORGED };
    const { contractUser } = await startAttacked(echo, { routes: { chat: { meta } } });
    const sse = openSse(await contractUser('carl').post({ messages: chatBody('a').messages }));
    await sse.ended;
    const [first] = sse.frames;
    expect(first?.event).toBe('meta');
    const told = JSON.parse(first?.data ?? '');
    expect(told.runId).not.toBe('forged');
    expect(told.conversationId).toMatch(/^chat_/);
    expect(sse.frames.filter(({ event }) => event === 'done')).toHaveLength(1);
  });
});
