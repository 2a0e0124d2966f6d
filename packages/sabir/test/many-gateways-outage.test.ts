/** Redis is away for a while: viewers wait, nothing is shown that is not stored, then all of it is. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import { foldChunks } from '../src/core/fold.ts';
import { verifyChunks } from '../src/core/verify.ts';
import { decodeBatch } from '../src/turns/chunk-codec.ts';
import { chatBody, createUser, openSse, refusal } from './gateway-client.ts';
import { createLedAgent } from './led-agent.ts';
import {
  type GatewayBox,
  inTurn,
  openChat,
  startFleet,
  tellingOf,
  textOf,
} from './many-gateways.ts';
import { openClient } from './redis-clients.ts';
import { IF_REDIS, send, until } from './redis-gateways.ts';
import { hasRedis, type RedisServer, startRedis } from './redis-server.ts';
import { sleep } from './turn-log-helpers.ts';

const OUTAGE_MS = 1_500;

describe.skipIf(!hasRedis)(`a Redis that is away in mid-turn${IF_REDIS}`, () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis({ appendfsync: 'always' });
  });
  afterAll(() => redis?.stop());
  const at = (box: GatewayBox, user = 'carl') => createUser(box.remote, user);

  async function start() {
    const agent = createLedAgent();
    const fleet = await startFleet(redis, {
      agent,
      log: { answerMs: 500 },
      gateway: { timing: { keepAliveMs: 100 } },
    });
    return { ...fleet, agent };
  }

  /** What is stored of the only turn there is, whoever cannot reach it. */
  async function stored(prefix: string): Promise<Chunk[]> {
    const { client, close } = await openClient('redis', redis.port);
    const [key = ''] = (await send(client, 'KEYS', `${prefix}:*:chunks:*`)) as string[];
    const entries = (await send(client, 'XRANGE', key, '-', '+')) as [string, string[]][];
    close();
    return entries.flatMap(([, [, batch = '[]']]) => decodeBatch(batch));
  }

  const wordsOf = (chunks: Chunk[]) =>
    chunks.reduce((all, chunk) => all + (chunk.type === 'text-delta' ? chunk.delta : ''), '');

  type Outage = { begin(boxes: GatewayBox[]): unknown; end(boxes: GatewayBox[]): unknown };
  const OUTAGES: [string, Outage][] = [
    ['is killed and started again', { begin: () => redis.kill(), end: () => redis.start() }],
    ['is suspended', { begin: () => redis.suspend(), end: () => redis.resume() }],
    [
      'cannot be reached',
      {
        begin: (boxes) => boxes.forEach((box) => void box.hold()),
        end: (boxes) => boxes.forEach((box) => void box.letGo()),
      },
    ],
  ];

  it.each(OUTAGES)(
    'and %s: viewers wait, and nothing is lost [RED-06]',
    async (_how, { begin, end }) => {
      const { A, B, C, boxes, agent, finishes, prefix } = await start();
      const sender = openSse(await at(A).post(chatBody('go')));
      const run = await agent.run();
      run.text('One ', 'two ');
      const watcher = openSse(await at(B).resume());
      const ours = await openChat('sabir', () => C);
      const resumed = ours.chat.resumeStream();
      const viewers = [sender, watcher];
      await Promise.all(viewers.map((sse) => sse.until(() => sse.text() === 'One two ')));
      await until('all see it', () => ours.text() === 'One two ');
      const said = wordsOf(await stored(prefix));
      expect(said).toBe('One two ');
      const before = viewers.map(({ raw }) => raw().length);
      await begin(boxes);
      run.text('three ');
      const posted = Date.now();
      const refused = at(B).post(chatBody('meanwhile', { id: 'c2' }));
      await sleep(OUTAGE_MS / 2);
      run.text('four ');
      const refusing = await refused;
      expect(Date.now() - posted).toBeLessThan(OUTAGE_MS + 500);
      expect(await refusal(refusing)).toMatchObject({ status: 503, code: 'log-unavailable' });
      await sleep(OUTAGE_MS / 2);
      for (const [index, { raw, text }] of viewers.entries()) {
        expect(text()).toBe('One two ');
        // Signs of life, and nothing else.
        const since = raw().slice(before[index]);
        expect(since).toMatch(/keep-alive/);
        expect(since.replaceAll(': keep-alive\n\n', '')).toBe('');
      }
      expect(ours.text()).toBe('One two ');
      await end(boxes);
      await Promise.all(
        viewers.map((sse) => sse.until(() => sse.text() === 'One two three four ')),
      );
      run.text('five.');
      run.end();
      await Promise.all([sender.ended, watcher.ended, resumed]);
      await until('it is stored', () => finishes.length > 0);
      expect(finishes).toMatchObject([{ outcome: { status: 'finished' } }]);
      expect(textOf(finishes[0]?.message)).toBe('One two three four five.');
      for (const { chunks } of viewers) {
        expect(tellingOf(foldChunks(chunks()))).toEqual(tellingOf(finishes[0]?.message));
        expect(verifyChunks(chunks())).toEqual([]);
      }
      expect(tellingOf(ours.result().message)).toEqual(tellingOf(finishes[0]?.message));
      expect(agent.runs.map(({ prompt }) => prompt.text)).toEqual(['go']);
      // What was refused was not begun, and can be asked again.
      const again = openSse(await at(C).post(chatBody('meanwhile', { id: 'c2' })));
      const next = await agent.run(1);
      next.text('Now.');
      next.end();
      await again.ended;
      expect(again.text()).toBe('Now.');
    },
  );

  it('never shows what is not stored, however often it is held up [RED-06]', async () => {
    const { A, B, C, boxes, agent, finishes, prefix } = await start();
    const ours = await openChat('sabir', inTurn(A, B, C));
    const sent = ours.chat.sendMessage({ text: 'go' });
    const run = await agent.run();
    run.text('0 ');
    const viewers = [openSse(await at(B).resume()), openSse(await at(C).resume())];
    await Promise.all(viewers.map((sse) => sse.until(() => sse.text())));
    let all = '0 ';
    for (let round = 1; round <= 8; round++) {
      const words = Array.from({ length: 20 }, (_, index) => `${round}.${index} `);
      for (const [index, word] of words.entries()) {
        run.text(word);
        all += word;
        if (index === 10) for (const box of boxes) box.hold();
        if (index % 5 === 0) await sleep(1);
      }
      // Taken before it is asked what is stored: that can only have become more.
      const seen = [...viewers.map(({ text }) => text()), ours.text()];
      const kept = wordsOf(await stored(prefix));
      for (const text of seen) expect(kept.startsWith(text)).toBe(true);
      expect(all.startsWith(kept)).toBe(true);
      for (const box of boxes) box.letGo();
      await sleep(20);
    }
    run.end();
    await Promise.all([sent, ...viewers.map(({ ended }) => ended)]);
    for (const text of [...viewers.map((sse) => sse.text()), ours.text()]) expect(text).toBe(all);
    await until('it is stored', () => finishes.length > 0);
    expect(textOf(finishes[0]?.message)).toBe(all);
  });
});
