/** Attacks on what one process holds: memory, places, connections. */
import { describe, expect, it } from 'vitest';
import { asUpstream, memoryTurnLog } from '../../src/gateway/index.ts';
import { chatBody, echo, eventually, refusal } from '../gateway-client.ts';
import { startAttacked } from './attacked.ts';

/** Runs until it is stopped. */
const silent = asUpstream(async function* ({ signal }) {
  yield { type: 'text-delta', id: '1', delta: 'on it' };
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
});

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
    await expect.poll(() => attacked.use('viewersPerUser')).toBe(0);
    const read = await attacked.user('vera').messages();
    expect(JSON.stringify(await read.json())).toHaveLength(4_000_063);
    await expect.poll(() => attacked.use('viewersPerUser')).toBe(0);
  });

  it('that waits for its client counts in heldBodyBytes: the next one is refused with 503', async () => {
    const limits = { heldBodyBytes: 6_000_000 };
    const attacked = await startAttacked(withHistory(4_000_000), { limits });
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
