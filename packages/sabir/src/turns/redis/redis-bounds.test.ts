import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_KINDS, type OpenClient } from '../../../test/redis-clients.ts';
import { IF_REDIS, send, until, useGateways } from '../../../test/redis-gateways.ts';
import { hasRedis, type RedisServer, startRedis } from '../../../test/redis-server.ts';
import {
  beginTurn,
  CLOSING,
  chunksOf,
  delta,
  FINISHED,
  NEVER,
  OPENING,
  readAll,
  sleep,
  WHOLE_TURN,
} from '../../../test/turn-log-helpers.ts';
import type { TurnInfo } from '../log.ts';
import { createKeys } from './keys.ts';
import { createNews } from './news.ts';

type Client = OpenClient['client'];

const kinds = describe.skipIf(!hasRedis).each(CLIENT_KINDS);
kinds(`what is kept in Redis, by %s${IF_REDIS}`, (kind) => {
  let server: RedisServer;
  const gateways = useGateways(kind, () => server.port);
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  /** Every key of this test, with how many milliseconds it has left; -1 if it stays for ever. */
  async function timesLeft(client: Client): Promise<Record<string, number>> {
    const keys = (await send(client, 'KEYS', `${gateways.prefix}:*`)) as string[];
    const left: Record<string, number> = {};
    for (const key of keys) left[key] = Number(await send(client, 'PTTL', key));
    return left;
  }

  it('is published whole if it is short, else only its number is, and both are read', async () => {
    const { log, client } = await gateways.open({ leaseMs: 60_000 });
    const { log: other } = await gateways.open({ leaseMs: 60_000 });
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    const { channel } = createKeys(gateways.prefix).ofTurn(writer.turnId);
    const heard: string[] = [];
    const insist = <T>(run: () => Promise<T>) => run();
    const news = createNews(client, { insist } as never, 'probe');
    await news.listen(
      channel,
      (message) => heard.push(message),
      () => undefined,
    );
    const reading = readAll(other, writer.turnId);
    const long = delta('x'.repeat(70_000));
    await writer.append([delta('short')]);
    await writer.append([long]);
    await writer.append([delta('ü'.repeat(60_000))]);
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    const whole = [...OPENING, delta('short'), long, delta('ü'.repeat(60_000)), ...CLOSING];
    expect(chunksOf(await reading)).toEqual(whole);
    await until('all is heard', () => heard.length === 5);
    expect(heard[0]).toMatch(/^3 .*short/);
    expect(heard[1]).toBe('4');
    expect(heard[4]).toBe('e7');
    news.close();
  });

  it('is kept for ever if that is what was asked for', async () => {
    const times = { retentionMs: Infinity, dedupeMs: Infinity, outageMs: Infinity };
    const { log, client } = await gateways.open(times);
    const writer = await beginTurn(log);
    await writer.append(WHOLE_TURN);
    await writer.close(FINISHED);
    const { turn } = createKeys(gateways.prefix).ofTurn(writer.turnId);
    const years = Number(await send(client, 'PTTL', turn)) / (365 * 24 * 3_600_000);
    expect(years).toBeGreaterThan(20);
    expect(chunksOf(await readAll(log, writer.turnId))).toEqual(WHOLE_TURN);
  });

  it('is read whole, however many appends there were', async () => {
    const { log } = await gateways.open({ leaseMs: 60_000 });
    const { log: other } = await gateways.open();
    const writer = await beginTurn(log);
    const live = readAll(other, writer.turnId);
    for (let at = 0; at < 2_100; at++) await writer.append([delta(`${at}`)]);
    const { log: late } = await gateways.open();
    const [first] = await firstBatch(late, writer.turnId);
    expect(first).toHaveLength(2_100);
    await writer.close(FINISHED);
    const whole = Array.from({ length: 2_100 }, (_, at) => delta(`${at}`));
    expect(chunksOf(await live)).toEqual(whole);
    expect(chunksOf(await readAll(late, writer.turnId, 1_000))).toEqual(whole.slice(1_000));
  });

  async function firstBatch(log: Awaited<ReturnType<typeof gateways.open>>['log'], turnId: string) {
    for await (const batch of log.read(turnId, 0, NEVER)) return [batch];
    return [];
  }

  it('is appended in the order it was given, though nobody waited in between', async () => {
    const { log } = await gateways.open();
    const writer = await beginTurn(log);
    const all = Array.from({ length: 30 }, (_, at) => delta(`${at}`));
    const numbers = await Promise.all(all.map((chunk) => writer.append([chunk])));
    expect(numbers).toEqual(all.map((_, at) => at + 1));
    await writer.close(FINISHED);
    expect(chunksOf(await readAll(log, writer.turnId))).toEqual(all);
  });

  it('goes by itself, while a turn is live and after its end [RED-05]', async () => {
    const leaseMs = 200;
    const { log, client } = await gateways.open({ leaseMs, retentionMs: 0, outageMs: 1_000 });
    const { log: other } = await gateways.open({ leaseMs, retentionMs: 0, outageMs: 1_000 });
    const writer = await beginTurn(log);
    const reading = readAll(other, writer.turnId);
    await writer.append(OPENING);
    await log.command(writer.turnId, { type: 'stop' });
    await until('it is read', () => log.isReadElsewhere(writer.turnId));
    const live = await timesLeft(client);
    const liveKey = `${gateways.prefix}:live`;
    const { turn, chunks, commands, readers } = createKeys(gateways.prefix).ofTurn(writer.turnId);
    expect(Object.keys(live)).toEqual(
      expect.arrayContaining([turn, chunks, commands, readers, liveKey]),
    );
    for (const [key, left] of Object.entries(live)) {
      if (key !== liveKey) expect(left).toBeGreaterThan(5_000);
      if (key !== liveKey) expect(left).toBeLessThanOrEqual(leaseMs + 10_000 + 1_000);
    }
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    await reading;
    await until('it is no longer among those that live', async () => {
      return !(liveKey in (await timesLeft(client)));
    });
    for (const left of Object.values(await timesLeft(client))) {
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(70_000);
    }
  });

  it('stays for as long as a turn is written, also by one that never renews', async () => {
    const options = { leaseMs: 300, retentionMs: 0, outageMs: 1_000 };
    const { log, client } = await gateways.open(options);
    const writer = await beginTurn(log);
    await log.command(writer.turnId, { type: 'stop' });
    for (let at = 0; at < 8; at++) {
      await writer.append([delta(`${at}`)]);
      await sleep(100);
    }
    await sleep(50);
    for (const [key, left] of Object.entries(await timesLeft(client))) {
      if (!key.endsWith(':live')) expect(left, key).toBeGreaterThan(11_300 - 600);
    }
  });

  it('does not stay among those that live when nobody ever ended it', async () => {
    const { log, client } = await gateways.open({ leaseMs: 100 });
    const writers = await Promise.all(Array.from({ length: 5 }, () => beginTurn(log)));
    const { turn } = createKeys(gateways.prefix).ofTurn(writers[0]?.turnId ?? '');
    await send(client, 'DEL', turn);
    const { live } = createKeys(gateways.prefix);
    await send(client, 'ZADD', live, '0', 'never begun');
    const { log: other } = await gateways.open({ leaseMs: 100 });
    other.onOrphan(async () => false);
    await until('none is left', async () => Number(await send(client, 'EXISTS', live)) === 0);
  });

  it('is gone when too much of it is kept, with all its keys [RED-05]', async () => {
    const { log, client } = await gateways.open({ retainedBytes: 0 });
    const writer = await beginTurn(log);
    await log.command(writer.turnId, { type: 'stop' });
    await writer.append(WHOLE_TURN);
    await writer.close(FINISHED);
    await until('its keys are gone', async () => {
      const keys = Object.keys(await timesLeft(client));
      return !keys.some((key) => key.includes(writer.turnId));
    });
    expect(await log.latest('s', 'c')).toBeUndefined();
  });

  it('is read to its end by those who had begun to, though too much is kept', async () => {
    const { log, client } = await gateways.open({ retainedBytes: 0 });
    for (let round = 0; round < 30; round++) {
      const writer = await beginTurn(log);
      const reading = readAll(log, writer.turnId);
      await writer.append(WHOLE_TURN);
      await writer.close(FINISHED);
      // Who came too late finds nothing; nobody finds half of it.
      const read = chunksOf(await reading);
      if (read.length > 0) expect(read).toEqual(WHOLE_TURN);
      expect(await log.get(writer.turnId)).toBeUndefined();
    }
    for (const [key, left] of Object.entries(await timesLeft(client))) {
      if (!key.endsWith(':live')) expect(left, key).toBeGreaterThan(0);
    }
  });

  it('is kept though Redis forgets its scripts', async () => {
    const [log, other] = await gateways.openMany(2);
    if (!log || !other) throw new Error('unreachable');
    const { client } = await gateways.open();
    const forget = () => send(client, 'SCRIPT', 'FLUSH');
    const writer = await beginTurn(log);
    const reading = readAll(other, writer.turnId);
    for (const chunk of WHOLE_TURN) {
      await forget();
      await writer.append([chunk]);
    }
    await forget();
    expect(await other.command(writer.turnId, { type: 'stop' })).toBe(true);
    await forget();
    await writer.renew();
    await forget();
    await writer.close(FINISHED);
    await forget();
    expect(chunksOf(await reading)).toEqual(WHOLE_TURN);
    expect(await other.latest('s', 'c')).toMatchObject({ outcome: FINISHED });
  });

  it('is not disturbed by what others publish', async () => {
    const { log, client } = await gateways.open();
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    const reading = readAll(log, writer.turnId);
    const { channel } = createKeys(gateways.prefix).ofTurn(writer.turnId);
    await until('somebody listens', async () => {
      const [, count] = (await send(client, 'PUBSUB', 'NUMSUB', channel)) as [string, number];
      return Number(count) > 0;
    });
    for (const noise of ['', ' ', '3 not JSON', '9 {', 'e', 'e99', 'x', '-1', '3 []', 'NaN [1]']) {
      await send(client, 'PUBLISH', channel, noise);
    }
    await send(client, 'PUBLISH', `${gateways.prefix}:orphans`, 'no such turn');
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    expect(chunksOf(await reading)).toEqual([...OPENING, ...CLOSING]);
  });

  it('is found under odd names', async () => {
    const odd = ['{a}', '}{', 'a b\r\n', '日本語 😀', '\'"\\', '\0', '*?[x]', ''];
    for (const prefix of ['odd {prefix}', 'p\r\n😀']) {
      const { log } = await gateways.open({ prefix });
      const { log: other } = await gateways.open({ prefix });
      for (const name of odd) {
        const given = { sessionId: name, chatId: name, requestId: name, messageId: name };
        const origin = { name, [name]: name };
        const writer = await beginTurn(log, { ...given, origin });
        await writer.append([{ type: 'start', messageId: name }, delta(name)]);
        const expected: Partial<TurnInfo> = { ...given, turnId: writer.turnId, lastSeq: 2 };
        expect(await other.latest(name, name)).toMatchObject(expected);
        expect(await other.begin({ ...given })).toMatchObject({ existing: expected });
        await writer.close({ status: 'failed', code: 'run-failed', message: name });
        const read = chunksOf(await readAll(other, writer.turnId));
        expect(read).toEqual([{ type: 'start', messageId: name }, delta(name)]);
      }
      for (const turnId of [...odd, 'x', 'a'.repeat(10_000)]) {
        expect(await other.get(turnId)).toBeUndefined();
        expect(await other.command(turnId, { type: 'stop' })).toBe(false);
        expect(await readAll(other, turnId)).toEqual([]);
      }
    }
  });
});
