/** Attacks on what one process holds: memory, places, connections. */
import { describe, expect, it } from 'vitest';
import { asUpstream, type ChatGatewayOptions, memoryTurnLog } from '../../src/gateway/index.ts';
import type { Upstream } from '../../src/turns/upstream.ts';
import { contractBody } from '../contract-client.ts';
import { chatBody, echo, eventually, refusal } from '../gateway-client.ts';
import { startAttacked } from './attacked.ts';

const PUBLIC = { onboarding: { public: true } };
const chatIdOf = (i: number) => `chat_${String(i).padStart(32, '0')}`;

/** Runs until it is stopped. */
const silent = asUpstream(async function* ({ signal }) {
  yield { type: 'text-delta', id: '1', delta: 'on it' };
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
});

/** More than the kernel takes of a response that its client does not read. */
const HISTORY_BYTES = 24_000_000;

const withHistory = (bytes: number) =>
  asUpstream(() => new ReadableStream(), {
    history: () => [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'x'.repeat(bytes) }] }],
  });

describe('a history', () => {
  it('that a client asks for and does not read counts as a stream of its user until the client is gone', async () => {
    const attacked = await startAttacked(withHistory(4_000_000), { limits: { viewersPerUser: 2 } });
    const ask = () => {
      const socket = attacked.say([
        'GET /api/sessions/s1/messages HTTP/1.1',
        'Authorization: Bearer vera',
      ]);
      socket.once('data', () => socket.pause());
      return socket;
    };
    const stalled = [ask(), ask()];
    for (const socket of stalled) await eventually(() => socket.heard().includes(' 200 OK'));
    const third = await attacked.user('vera').messages();
    expect(await refusal(third)).toMatchObject({ status: 429, code: 'too-many-viewers' });
    for (const socket of stalled) socket.destroy();
    await expect.poll(() => attacked.use('viewersPerUser'), { timeout: 5_000 }).toBe(0);
    const read = await attacked.user('vera').messages();
    expect(JSON.stringify(await read.json())).toHaveLength(4_000_063);
    await expect.poll(() => attacked.use('viewersPerUser'), { timeout: 5_000 }).toBe(0);
  });

  it('that waits for its client counts in heldBodyBytes: the next one is refused with 503', async () => {
    const limits = { heldBodyBytes: 1.5 * HISTORY_BYTES };
    const attacked = await startAttacked(withHistory(HISTORY_BYTES), { limits });
    const socket = attacked.say([
      'GET /api/sessions/s1/messages HTTP/1.1',
      'Authorization: Bearer vera',
    ]);
    socket.once('data', () => socket.pause());
    await eventually(() => socket.heard().includes(' 200 OK'));
    const second = await attacked.user('carl').messages();
    expect(await refusal(second)).toMatchObject({ status: 503, code: 'server-full' });
    socket.destroy();
    await expect.poll(() => attacked.use('heldBodyBytes')).toBe(0);
  });
});

describe('a body', () => {
  it('of many empty objects counts with what it takes once it is parsed, not only with its text', async () => {
    const limits = { heldBodyBytes: 1_000_000 };
    const attacked = await startAttacked(silent, { limits });
    const carl = attacked.user('carl');
    const x = Array.from({ length: 8_000 }, () => ({}));
    expect((await carl.post(chatBody('a', { id: 'c1', x }))).status).toBe(200);
    expect(await attacked.use('heldBodyBytes')).toBeGreaterThan(640_000);
    const second = await carl.post(chatBody('a', { id: 'c2', x }));
    expect(await refusal(second)).toMatchObject({ status: 503, code: 'server-full' });
    await carl.stop();
    await expect.poll(() => attacked.use('heldBodyBytes')).toBe(0);
  });
});

describe('one caller', () => {
  it('who fills all that one user may hold is refused with 429, and others are served', async () => {
    const limits = { heldBodyBytesPerUser: 1_000_000, heldBodyBytesPerAddress: 100_000 };
    const attacked = await startAttacked(silent, { limits, routes: PUBLIC });
    const x = Array.from({ length: 8_000 }, () => ({}));
    const carl = attacked.user('carl');
    expect((await carl.post(chatBody('a', { id: 'c1', x }))).status).toBe(200);
    const second = await carl.post(chatBody('a', { id: 'c2', x }));
    expect(second.headers.get('retry-after')).toBe('5');
    expect(await refusal(second)).toMatchObject({ status: 429, code: 'too-many-requests' });
    expect((await attacked.user('cora').post(chatBody('a', { id: 'c2', x }))).status).toBe(200);
    const few = Array.from({ length: 1_000 }, () => ({}));
    const statuses: number[] = [];
    for (let i = 0; i < 2; i++) {
      const body = contractBody('a', { sessionId: chatIdOf(i), x: few });
      statuses.push((await attacked.stranger.post(body)).status);
    }
    expect(statuses).toEqual([200, 429]);
    await carl.stop();
    await expect.poll(() => attacked.use('liveTurns')).toBe(2);
    expect((await carl.post(chatBody('a', { id: 'c2', x }))).status).toBe(200);
  });
});

describe('an ended turn', () => {
  it('that said almost nothing counts with what it takes itself, so that many of them are forgotten', async () => {
    const log = memoryTurnLog({ retainedBytes: 20_000 });
    const attacked = await startAttacked(echo, { log });
    const carl = attacked.user('carl');
    for (let i = 0; i < 12; i++) await (await carl.post(chatBody('a', { id: `c${i}` }))).text();
    expect(await log.latest('s1', 'c0')).toBeUndefined();
    expect(await log.latest('s1', 'c11')).toBeDefined();
  });
});

describe('connections to the agent', () => {
  it('that strangers cause by resuming chats that are not there are closed past 500, the oldest first', async () => {
    const agent = asUpstream({
      name: 'silent',
      prompt: () => new ReadableStream(),
      restore: () => undefined,
    });
    let open = 0;
    const counted: Upstream = {
      ...agent,
      async open(identity) {
        const session = await agent.open(identity);
        open++;
        const close = () => {
          open--;
          session.close();
        };
        return Object.assign(Object.create(session), { close });
      },
    };
    const { stranger, gateway } = await startAttacked(counted, { routes: PUBLIC });
    for (let from = 0; from < 600; from += 50) {
      const resumes = Array.from({ length: 50 }, (_, i) => stranger.resume(chatIdOf(from + i)));
      for (const { status } of await Promise.all(resumes)) expect(status).toBe(204);
    }
    expect(open).toBe(500);
    await gateway.close();
    expect(open).toBe(0);
  });
});

describe('a client that leaves', () => {
  const slowly = <T>(value: T) => new Promise<T>((resolve) => setTimeout(resolve, 30, value));
  const stages: [string, Partial<ChatGatewayOptions>][] = [
    ['authenticate', { authenticate: () => slowly({ id: 'carl' }) }],
    ['access', { access: () => slowly('owner' as const) }],
    ['enabled', { enabled: () => slowly(true) }],
    ['admit', { admit: () => slowly(true) }],
    ['begin of the log', { log: withSlow('begin') }],
    ['latest of the log', { log: withSlow('latest') }],
    ['live of the log', { log: withSlow('live') }],
  ];

  function withSlow(name: 'begin' | 'latest' | 'live') {
    const log = memoryTurnLog();
    const run = log[name]?.bind(log) as (...given: unknown[]) => Promise<unknown>;
    return Object.assign(log, {
      [name]: async (...given: unknown[]) => slowly(await run(...given)),
    });
  }

  it.each(stages)('during %s gives back every place it took', async (_, options) => {
    // Of a client that ended its side right after its request, only a write tells whether it is gone.
    const timing = { disconnectGraceMs: 0, keepAliveMs: 20 };
    const { user, contractUser, use } = await startAttacked(silent, { ...options, timing });
    const carl = user('carl');
    const asks: ((signal: AbortSignal) => Promise<Response>)[] = [
      (signal) => carl.post(chatBody('a'), { signal }),
      (signal) => carl.resume('c1', { signal }),
      (signal) => contractUser('carl').post(contractBody('a'), { signal }),
    ];
    for (const afterMs of [1, 10, 40]) {
      await Promise.all(
        asks.map(async (ask) => {
          const leaving = new AbortController();
          const asked = ask(leaving.signal).catch(() => undefined);
          await new Promise((resolve) => setTimeout(resolve, afterMs));
          leaving.abort();
          await asked;
        }),
      );
    }
    for (const limit of [
      'viewers',
      'liveTurns',
      'heldBodyBytes',
      'bodiesPerUser',
      'viewersPerTurn',
    ]) {
      await expect.poll(() => use(limit)).toBe(0);
    }
  });

  it('between two requests that are refused leaves nothing behind, whatever they are refused for', async () => {
    const limits = { bodyBytes: 2_000, liveTurnsPerUser: 0 };
    const { user, use, stranger } = await startAttacked(silent, { limits, routes: PUBLIC });
    const carl = user('carl');
    const statuses = new Set<number>();
    for (const response of [
      await carl.post('{'),
      await carl.post('[]'),
      await carl.post(chatBody('x'.repeat(3_000))),
      await carl.post(chatBody('')),
      await carl.post(chatBody('a')),
      await carl.post(chatBody('a'), { query: 'wire=x' }),
      await carl.resume('none'),
      await carl.answer('q1', 'x'),
      await carl.answerWith('{'),
      await stranger.post(contractBody('a', { sessionId: 'x' })),
      await stranger.resume(),
    ]) {
      statuses.add(response.status);
    }
    expect([...statuses].sort()).toEqual([204, 400, 404, 413, 429]);
    for (const limit of [
      'viewers',
      'liveTurns',
      'heldBodyBytes',
      'bodiesPerUser',
      'bodiesPerAddress',
    ]) {
      expect([limit, await use(limit)]).toEqual([limit, 0]);
    }
  });
});

describe('an address', () => {
  it('that a client names in a header counts for nothing', async () => {
    const limits = { liveTurnsPerAddress: 2 };
    const { stranger } = await startAttacked(silent, { limits, routes: PUBLIC });
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) {
      const ip = `203.0.113.${i}`;
      const headers = {
        'x-forwarded-for': ip,
        forwarded: `for=${ip}`,
        'x-real-ip': ip,
        'cf-connecting-ip': ip,
        'true-client-ip': ip,
        'x-client-ip': ip,
        via: ip,
      };
      const body = contractBody('a', { sessionId: chatIdOf(i) });
      statuses.push((await stranger.post(body, { headers })).status);
    }
    expect(statuses).toEqual([200, 200, 429, 429]);
  });

  it.each([
    ['an IPv4 address with a port', ['203.0.113.1:1', '203.0.113.1:2', '203.0.113.1']],
    [
      'an IPv6 address in brackets with a port',
      ['[2001:db8::1]:1', '[2001:DB8::2]:2', '2001:db8:0:0::3'],
    ],
    [
      'an IPv4 address inside of IPv6',
      ['::ffff:203.0.113.1', '203.0.113.1', '[::FFFF:203.0.113.1]:9'],
    ],
  ])('that a proxy names as %s is the same from every port', async (_, addresses) => {
    const { stranger } = await startAttacked(silent, {
      limits: { liveTurnsPerAddress: 1 },
      routes: PUBLIC,
      addressOf: (request) => request.headers.get('x-from') ?? undefined,
    });
    const statuses: number[] = [];
    for (const [i, from] of [...addresses, '198.51.100.1:1'].entries()) {
      const body = contractBody('a', { sessionId: chatIdOf(i) });
      statuses.push((await stranger.post(body, { headers: { 'x-from': from } })).status);
    }
    expect(statuses).toEqual([200, 429, 429, 200]);
  });
});
