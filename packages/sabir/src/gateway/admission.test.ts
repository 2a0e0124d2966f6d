/** Limits on what callers can make a gateway hold, seen from HTTP. */
import { describe, expect, it, vi } from 'vitest';
import { contractBody, createContractUser, openEvents } from '../../test/contract-client.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  eventually,
  ORIGIN,
  openSse,
  refusal,
} from '../../test/gateway-client.ts';
import { openSocket, startServer } from '../../test/raw-http.ts';
import {
  asUpstream,
  type ChatGateway,
  type ChatGatewayOptions,
  type GatewayLimits,
  memoryTurnLog,
} from './index.ts';

const PUBLIC = { onboarding: { public: true } };
const chatIdOf = (i: number) => `chat_${String(i).padStart(32, '0')}`;

function start(limits: Partial<GatewayLimits>, options: Partial<ChatGatewayOptions> = {}) {
  const agent = createAgent();
  const gateway = createTestGateway(agent.upstream, { limits, routes: PUBLIC, ...options });
  const carl = createUser(gateway, 'carl');
  /** How much of a limit is in use, and how often it has refused. */
  const limit = async (name: string) => {
    const all = await carl.metrics();
    return {
      use: all[`sabir_limit_use{limit="${name}"}`],
      max: all[`sabir_limit_max{limit="${name}"}`],
      refused: all[`sabir_limit_refusals_total{limit="${name}"}`],
    };
  };
  return { agent, gateway, carl, cora: createUser(gateway, 'cora'), limit };
}

/** A message on the public route, from an address. */
function postFrom(
  gateway: ChatGateway,
  address: string | undefined,
  i = 0,
  init: RequestInit = {},
) {
  const body = JSON.stringify(contractBody('hi', { sessionId: chatIdOf(i) }));
  const request = new Request(`${ORIGIN}/api/onboarding`, { method: 'POST', body, ...init });
  return gateway.fetch(request, address === undefined ? {} : { address });
}

describe('live turns', () => {
  it('of one user past liveTurnsPerUser are refused with 429 before the agent is asked; others’ are not', async () => {
    const log = memoryTurnLog();
    const begin = vi.spyOn(log, 'begin');
    const { agent, carl, cora, limit } = start({ liveTurnsPerUser: 2 }, { log });
    for (const id of ['a', 'b']) expect((await carl.post(chatBody('hi', { id }))).status).toBe(200);
    const response = await carl.post(chatBody('hi', { id: 'c' }));
    expect(response.headers.get('retry-after')).toBe('5');
    expect(await refusal(response)).toMatchObject({ status: 429, code: 'too-many-turns' });
    expect(begin).toHaveBeenCalledTimes(2);
    expect((await cora.post(chatBody('hi', { id: 'c' }))).status).toBe(200);
    await agent.run(2);
    expect(agent.runs).toHaveLength(3);
    expect(await limit('liveTurnsPerUser')).toEqual({ use: 2, max: 2, refused: 1 });
    expect(await limit('liveTurns')).toEqual({ use: 3, max: 4_000, refused: 0 });
  });

  it('in all past liveTurns are refused with 503', async () => {
    const { carl, cora } = start({ liveTurns: 1 });
    await carl.post(chatBody('hi'));
    const response = await cora.post(chatBody('hi'));
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await refusal(response)).toMatchObject({ status: 503, code: 'server-full' });
  });

  it('at their limit leave repeats, resumes, answers and stops alone', async () => {
    const upstream = asUpstream(async function* ({ answer }) {
      yield { type: 'data-question', id: 'q1', data: { questionId: 'q1', status: 'open' } };
      await answer('q1');
      yield { type: 'text-delta', id: '1', delta: 'thanks' };
    });
    const gateway = createTestGateway(upstream, { limits: { liveTurnsPerUser: 1 } });
    const carl = createUser(gateway, 'carl');
    const first = openSse(await carl.post(chatBody('go')));
    await first.until(() => first.chunks().some(({ type }) => type === 'data-question'));
    const repeat = await carl.post(chatBody('go'));
    expect(repeat.status).toBe(200);
    expect((await carl.resume()).status).toBe(200);
    expect((await carl.answer('q1', 'yes')).status).toBe(202);
    await first.ended;
    expect(first.text()).toBe('thanks');
    const again = openSse(await carl.post(chatBody('again')));
    await again.until(() => again.chunks().some(({ type }) => type === 'data-question'));
    expect((await carl.post(chatBody('more', { id: 'c2' }))).status).toBe(429);
    expect((await carl.stop()).status).toBe(202);
    await again.ended;
  });

  it('free their place however they end', async () => {
    const { agent, gateway, carl, limit } = start({ liveTurnsPerUser: 1 });
    const endings = [
      async (i: number) => (await agent.run(i)).end(),
      async (i: number) => (await agent.run(i)).fail(new Error('broken')),
      async () => void (await carl.stop()),
    ];
    for (const [i, end] of endings.entries()) {
      const sse = openSse(await carl.post(chatBody(`message ${i}`)));
      await agent.run(i);
      await end(i);
      await sse.ended;
      await expect.poll(async () => (await limit('liveTurns')).use).toBe(0);
    }
    // One that is refused, and one whose log refuses it.
    expect((await carl.post('not JSON')).status).toBe(400);
    expect((await limit('liveTurns')).use).toBe(0);
    await gateway.close();
  });

  it('free their place when the agent cannot be reached or the log fails', async () => {
    const log = memoryTurnLog();
    const { carl, limit } = start(
      { liveTurnsPerUser: 1 },
      {
        log,
        upstream: () => {
          throw new Error('nobody home');
        },
      },
    );
    await openSse(await carl.post(chatBody('hi'))).ended;
    await expect.poll(async () => (await limit('liveTurns')).use).toBe(0);
    vi.spyOn(log, 'begin').mockRejectedValueOnce(new Error('away'));
    expect((await carl.post(chatBody('again'))).status).toBe(500);
    expect(await limit('liveTurnsPerUser')).toMatchObject({ use: 0 });
    expect(await limit('heldBodyBytes')).toMatchObject({ use: 0 });
  });

  it('of one address past liveTurnsPerAddress are refused on public routes; IPv6 counts by its /64', async () => {
    const { gateway, limit } = start({ liveTurnsPerAddress: 1 });
    const cases: [string | undefined, number][] = [
      ['203.0.113.7', 200],
      ['203.0.113.7', 429],
      ['::ffff:203.0.113.7', 429],
      ['203.0.113.8', 200],
      ['2001:db8:0:1::1', 200],
      ['2001:0db8::1:ffff:ffff:ffff:ffff', 429],
      ['2001:db8:0:2::1', 200],
      [undefined, 200],
      [undefined, 429],
    ];
    for (const [i, [address, status]] of cases.entries()) {
      expect([address, (await postFrom(gateway, address, i)).status]).toEqual([address, status]);
    }
    expect(await limit('liveTurnsPerAddress')).toEqual({ use: 1, max: 1, refused: 4 });
  });

  it('count by what addressOf reads from the proxy’s header, and by no header without it', async () => {
    const from = (ip: string) => ({ headers: { 'x-forwarded-for': ip } });
    const trusting = start(
      { liveTurnsPerAddress: 1 },
      { addressOf: (request) => request.headers.get('x-forwarded-for')?.split(',').at(-1) },
    );
    const statuses = [];
    for (const [i, ip] of ['198.51.100.1', '198.51.100.2', '198.51.100.1'].entries()) {
      statuses.push((await postFrom(trusting.gateway, '127.0.0.1', i, from(ip))).status);
    }
    expect(statuses).toEqual([200, 200, 429]);
    const { gateway } = start({ liveTurnsPerAddress: 1 });
    expect((await postFrom(gateway, '127.0.0.1', 1, from('198.51.100.1'))).status).toBe(200);
    expect((await postFrom(gateway, '127.0.0.1', 2, from('198.51.100.2'))).status).toBe(429);
  });

  it('past the log’s liveBytes are refused with 503 until there is room', async () => {
    const log = memoryTurnLog({ liveBytes: 1_000 });
    const { agent, carl, cora, limit } = start({}, { log });
    const first = openSse(await carl.post(chatBody('hi')));
    (await agent.run()).delta('x'.repeat(1_500));
    await first.until(() => first.text());
    const response = await cora.post(chatBody('hi'));
    expect(await refusal(response)).toMatchObject({ status: 503, code: 'server-full' });
    expect(await limit('liveBytes')).toMatchObject({ max: 1_000, refused: 1 });
    (await agent.run()).delta('x'.repeat(1_500));
    await first.ended;
    expect(first.chunks().find(({ type }) => type === 'error')).toMatchObject({
      errorText: 'The server is busy. Try again in a moment.',
    });
    await expect.poll(async () => (await limit('liveBytes')).use).toBe(0);
    expect((await cora.post(chatBody('hi'))).status).toBe(200);
  });
});

describe('viewers', () => {
  it('of one user past viewersPerUser are refused with 429, and free their place when they leave', async () => {
    const { agent, carl, cora, limit } = start({ viewersPerUser: 2 });
    const first = openSse(await carl.post(chatBody('hi')));
    (await agent.run()).delta('a');
    const second = openSse(await carl.resume());
    await second.until(() => second.text());
    const response = await carl.resume();
    expect(response.headers.get('retry-after')).toBe('5');
    expect(await refusal(response)).toMatchObject({ status: 429, code: 'too-many-viewers' });
    expect((await carl.post(chatBody('more', { id: 'c2' }))).status).toBe(429);
    expect((await carl.messages()).status).toBe(429);
    expect(agent.runs).toHaveLength(1);
    expect((await cora.resume()).status).toBe(200);
    expect(await limit('viewersPerUser')).toEqual({ use: 2, max: 2, refused: 3 });
    await second.leave();
    const third = openSse(await carl.resume());
    await third.until(() => third.text());
    (await agent.run()).end();
    await Promise.all([first.ended, third.ended]);
    // What gives nothing takes no place.
    for (let i = 0; i < 3; i++) expect((await carl.resume('unknown')).status).toBe(204);
    await carl.messages();
    expect(await limit('viewersPerUser')).toMatchObject({ use: 1 });
  });

  it('of one turn past viewersPerTurn, and in all past viewers, are refused', async () => {
    const { agent, carl, cora } = start({ viewersPerTurn: 2, viewers: 3 });
    await carl.post(chatBody('hi'));
    (await agent.run()).delta('a');
    expect((await cora.resume()).status).toBe(200);
    expect(await refusal(await cora.resume())).toMatchObject({ status: 429 });
    expect((await cora.post(chatBody('mine', { id: 'c2' }))).status).toBe(200);
    const full = await refusal(await cora.resume('c2'));
    expect(full).toMatchObject({ status: 503, code: 'server-full' });
  });

  it('of one address past viewersPerAddress are refused on public routes', async () => {
    const { gateway } = start({ viewersPerAddress: 1 });
    expect((await postFrom(gateway, '203.0.113.7', 1)).status).toBe(200);
    expect((await postFrom(gateway, '203.0.113.7', 2)).status).toBe(429);
    expect((await postFrom(gateway, '203.0.113.8', 3)).status).toBe(200);
  });
});

describe('bodies', () => {
  /** A request whose body is begun and never ended. */
  function half(path: string, token = 'carl') {
    const cancelled = vi.fn();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) =>
        controller.enqueue(new TextEncoder().encode(`{"a":"${'x'.repeat(994)}`)),
      cancel: cancelled,
    });
    const headers = { authorization: `Bearer ${token}` };
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    return { request: new Request(`${ORIGIN}/api/${path}`, init), cancelled };
  }

  it('that are being read at once are limited per user and per address', async () => {
    const { gateway, carl, cora, limit } = start(
      { bodiesPerUser: 2, bodiesPerAddress: 1 },
      { timing: { bodyMs: 200, publicBodyMs: 200 } },
    );
    const reading = [1, 2].map(() => gateway.fetch(half('sessions/s1/chat').request));
    await expect.poll(async () => (await limit('bodiesPerUser')).use).toBe(2);
    const refused = await carl.post(chatBody('hi'));
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(await refusal(refused)).toMatchObject({ status: 429, code: 'too-many-requests' });
    expect((await cora.post(chatBody('hi'))).status).toBe(200);
    const address = '203.0.113.7';
    const public1 = gateway.fetch(half('onboarding').request, { address });
    await expect.poll(async () => (await limit('bodiesPerAddress')).use).toBe(1);
    expect((await postFrom(gateway, address)).status).toBe(429);
    expect((await postFrom(gateway, '203.0.113.8')).status).toBe(200);
    for (const response of await Promise.all([...reading, public1])) {
      expect(await refusal(response)).toMatchObject({ status: 408, code: 'body-too-slow' });
    }
    expect(await limit('bodiesPerUser')).toEqual({ use: 0, max: 2, refused: 1 });
  });

  it('past heldBodyBytes in all are refused with 503: those being read, and those of running turns', async () => {
    const { agent, gateway, carl, limit } = start(
      { heldBodyBytes: 3_500 },
      { timing: { bodyMs: 300 } },
    );
    const slow = gateway.fetch(half('sessions/s1/chat').request);
    await expect.poll(async () => (await limit('heldBodyBytes')).use).toBe(1_000);
    const text = 'y'.repeat(720);
    const refused = await refusal(await carl.post(chatBody(text)));
    expect(refused).toMatchObject({ status: 503, code: 'server-full' });
    expect((await slow).status).toBe(408);
    const sse = openSse(await carl.post(chatBody(text)));
    await agent.run();
    expect((await carl.post(chatBody(text, { id: 'c2' }))).status).toBe(503);
    (await agent.run()).end();
    await sse.ended;
    await expect.poll(async () => (await limit('heldBodyBytes')).use).toBe(0);
    expect((await carl.post(chatBody(text, { id: 'c2' }))).status).toBe(200);
  });

  it('on public routes are small, and hold no files unless set', async () => {
    const { gateway, limit } = start({});
    const anybody = createContractUser(gateway, undefined, 'onboarding');
    const file = { type: 'file', mediaType: 'image/png', url: 'data:,x' };
    const withFile = { messages: [{ id: 'u', role: 'user', parts: [file] }] };
    const large = await refusal(await anybody.post(contractBody('x'.repeat(65_000))));
    expect(large).toMatchObject({ status: 413, code: 'body-too-large' });
    const attached = await refusal(await anybody.post(withFile));
    expect(attached).toMatchObject({ status: 413, code: 'attachments-too-large' });
    expect((await anybody.answer('q', 'x'.repeat(65_000))).status).toBe(413);
    expect((await limit('publicBodyBytes')).refused).toBe(2);
    expect((await limit('publicAttachmentBytes')).refused).toBe(1);
    const open = createTestGateway(echo, { routes: PUBLIC, limits: { publicAttachmentBytes: 9 } });
    const other = createContractUser(open, undefined, 'onboarding');
    expect((await other.post(withFile)).status).toBe(200);
  });

  it('that stall on a real socket are answered with 408, and the connection is closed', async () => {
    const { gateway } = start({}, { timing: { publicBodyMs: 50 } });
    const server = await startServer(gateway.fetch);
    const socket = openSocket(
      server.port,
      'POST /api/onboarding HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"messages"',
    );
    await eventually(() => socket.destroyed || socket.readableEnded, 'the end of the connection');
    expect(socket.heard()).toMatch(/^HTTP\/1\.1 408 /);
  });
});

describe('the address of a request', () => {
  it('is the socket’s, through serve', async () => {
    const seen: unknown[] = [];
    const { gateway } = start(
      {},
      { admit: (_request, _user, { address }) => void seen.push(address) },
    );
    const server = await startServer(gateway.fetch);
    const body = JSON.stringify(contractBody('hi'));
    const response = await fetch(`${server.url}/api/onboarding`, { method: 'POST', body });
    await response.body?.cancel();
    expect(seen).toEqual(['127.0.0.1']);
  });
});

describe('a public route', () => {
  it('ignores x-sabir-detach and x-sabir-resume: a turn that is left is stopped', async () => {
    for (const name of ['x-sabir-detach', 'x-sabir-resume']) {
      const headers = { [name]: '1' };
      const { agent, gateway } = start({}, { timing: { disconnectGraceMs: 5 } });
      const first = openEvents(await postFrom(gateway, '203.0.113.7', 1, { headers }));
      const run = await agent.run();
      run.delta('a');
      await first.until(() => first.said());
      await first.leave();
      await eventually(() => run.turn.signal.aborted, 'the stop');
    }
  });
});

describe('admit', () => {
  it('is asked for each message before its body is read; false is a 429', async () => {
    const asked: unknown[] = [];
    const admit = vi.fn((request: Request, { id }: { id: string }, where: object) => {
      asked.push([id, where, request.bodyUsed]);
      return id !== 'carl';
    });
    const { agent, gateway, carl, cora } = start({}, { admit });
    const refused = await carl.post('not JSON');
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(await refusal(refused)).toMatchObject({ status: 429, code: 'too-many-requests' });
    expect((await cora.post(chatBody('hi'))).status).toBe(200);
    expect((await postFrom(gateway, '203.0.113.7')).status).toBe(200);
    await agent.run(1);
    expect(agent.runs).toHaveLength(2);
    expect(asked).toEqual([
      ['carl', { route: 'sessions', sessionId: 's1' }, false],
      ['cora', { route: 'sessions', sessionId: 's1' }, false],
      ['public', { route: 'onboarding', address: '203.0.113.7' }, false],
    ]);
    // A user who may not send does not learn the application's rules.
    expect((await createUser(gateway, 'vera').post(chatBody('hi'))).status).toBe(404);
    expect(admit).toHaveBeenCalledTimes(3);
  });

  it('that throws is a 500 and begins nothing', async () => {
    const { agent, carl } = start(
      {},
      {
        admit() {
          throw new Error('broken');
        },
      },
    );
    expect((await carl.post(chatBody('hi'))).status).toBe(500);
    expect(agent.runs).toHaveLength(0);
  });
});
