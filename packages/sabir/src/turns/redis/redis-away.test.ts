import Redis from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_KINDS } from '../../../test/redis-clients.ts';
import { IF_REDIS, keepRenewing, send, until, useGateways } from '../../../test/redis-gateways.ts';
import { hasRedis, type RedisServer, startRedis } from '../../../test/redis-server.ts';
import {
  beginTurn,
  CLOSING,
  chunksOf,
  delta,
  FINISHED,
  OPENING,
  readAll,
  request,
  sleep,
} from '../../../test/turn-log-helpers.ts';
import type { TurnCommand, TurnLog } from '../log.ts';
import { redisTurnLog } from './index.ts';

const unavailable = { code: 'log-unavailable', status: 503, retryable: true };
const unhandled: unknown[] = [];
const onUnhandled = (error: unknown) => unhandled.push(error);

const kinds = describe.skipIf(!hasRedis).each(CLIENT_KINDS);
kinds(`while Redis is away, by %s${IF_REDIS}`, (kind) => {
  let server: RedisServer;
  const gateways = useGateways(kind, () => server.port);
  beforeAll(async () => {
    process.on('unhandledRejection', onUnhandled);
    server = await startRedis({ appendfsync: 'always' });
  });
  afterAll(async () => {
    await server?.stop();
    process.off('unhandledRejection', onUnhandled);
    expect(unhandled).toEqual([]);
  });

  async function isAwayFor(ms: number): Promise<void> {
    await server.kill();
    await sleep(ms);
    await server.start();
  }

  it('nothing that was acknowledged is lost, and nothing is there twice [RED-06]', async () => {
    const [one, other] = await gateways.openMany(2, { leaseMs: 5_000 });
    if (!one || !other) throw new Error('unreachable');
    let isOver = false;
    const turns = Array.from({ length: 6 }, async (_, turn) => {
      const writer = await beginTurn(turn % 2 ? one : other, { chatId: `chat ${turn}` });
      const live = [one, other].map((log) => readAll(log, writer.turnId));
      await writer.append(OPENING);
      const words: string[] = [];
      for (let at = 0; !isOver; at++) {
        words.push(`${turn}.${at} `);
        expect(await writer.append([delta(`${turn}.${at} `)])).toBe(at + 3);
        await sleep(2);
      }
      await writer.append(CLOSING);
      await writer.close(FINISHED);
      const expected = [...OPENING, ...words.map(delta), ...CLOSING];
      for (const read of await Promise.all(live)) expect(chunksOf(read)).toEqual(expected);
      expect(chunksOf(await readAll(other, writer.turnId))).toEqual(expected);
      return words.length;
    });
    await sleep(100);
    for (let outage = 0; outage < 3; outage++) {
      await isAwayFor(20 * outage);
      await sleep(150);
    }
    isOver = true;
    for (const count of await Promise.all(turns)) expect(count).toBeGreaterThan(3);
  });

  it('commands that were said yes to arrive, and none twice', async () => {
    const [one, other] = await gateways.openMany(2, { leaseMs: 5_000 });
    if (!one || !other) throw new Error('unreachable');
    const writer = await beginTurn(one);
    const received: TurnCommand[] = [];
    const listening = (async () => {
      for await (const command of writer.commands()) received.push(command);
    })();
    const taken: string[] = [];
    let isOver = false;
    const asking = (async () => {
      for (let at = 0; !isOver; at++) {
        const answer = { type: 'answer', questionId: `${at}`, answer: at } as const;
        const stop = { type: 'stop', reason: `${at}` } as const;
        const isTaken = await other.command(writer.turnId, at % 2 ? answer : stop);
        if (isTaken) taken.push(`${at}`);
        await sleep(1);
      }
    })();
    await sleep(50);
    await isAwayFor(30);
    await sleep(100);
    await isAwayFor(0);
    await sleep(100);
    isOver = true;
    await asking;
    await writer.renew();
    await writer.append(CLOSING.slice(1));
    await writer.close(FINISHED);
    await listening;
    const heard = received.map((command) =>
      command.type === 'answer' ? command.questionId : command.type === 'stop' && command.reason,
    );
    expect(taken.length).toBeGreaterThan(10);
    expect(heard).toEqual(taken);
  });

  it('no turn begins: it is said soon, and none turns up later [RED-07]', async () => {
    const [log, other] = await gateways.openMany(2, { answerMs: 200, leaseMs: 5_000 });
    if (!log || !other) throw new Error('unreachable');
    const given = request({ chatId: 'begun while away' });
    await server.kill();
    const before = Date.now();
    await expect(log.begin(given)).rejects.toMatchObject(unavailable);
    await expect(log.latest('s', 'c')).rejects.toMatchObject(unavailable);
    await expect(log.command('turn', { type: 'stop' })).rejects.toMatchObject(unavailable);
    expect(Date.now() - before).toBeLessThan(3_000);
    await server.start();
    await until('it is back', () =>
      other.latest('s', 'c').then(
        () => true,
        () => false,
      ),
    );
    expect(await other.latest('s', 'begun while away')).toBeUndefined();

    // It is asked, and does not answer in time: what it does later is taken back.
    server.suspend();
    await expect(log.begin(given)).rejects.toMatchObject(unavailable);
    server.resume();
    await until('it is taken back', async () => {
      return (await other.latest('s', 'begun while away')) === undefined;
    });
    // The late step may run only now; what takes it back follows it.
    let begun = await log.begin(given);
    await until('it begins anew', async () => {
      if (!('writer' in begun)) begun = await log.begin(given);
      return 'writer' in begun;
    });
    if (!('writer' in begun)) throw new Error('unreachable');
    const { turnId } = begun.writer;
    expect((await other.live('s', 'begun while away')).map((turn) => turn.turnId)).toEqual([
      turnId,
    ]);
    expect(await other.latest('s', 'begun while away')).toMatchObject({ turnId });
  });

  it('requests that are begun when it goes are begun once or refused', async () => {
    const [one, other] = await gateways.openMany(2, { answerMs: 1_000, leaseMs: 20_000 });
    if (!one || !other) throw new Error('unreachable');
    const attempts: Promise<string | undefined>[] = [];
    const goes = sleep(20).then(() => isAwayFor(20));
    for (let at = 0; at < 60; at++) {
      const same = request({ chatId: `attempt ${at}` });
      for (const log of [one, other]) {
        const begun = log.begin(same);
        attempts.push(
          begun.then(
            (one) => ('writer' in one ? one.writer.turnId : undefined),
            (error) => void expect(error).toMatchObject(unavailable),
          ),
        );
      }
      await sleep(1);
    }
    await goes;
    const writers = (await Promise.all(attempts)).filter((id) => id !== undefined);
    expect(new Set(writers).size).toBe(writers.length);
    for (let at = 0; at < 60; at++) {
      const { turnId } = (await one.latest('s', `attempt ${at}`)) ?? {};
      // Whatever is there has a writer that knows of it.
      if (turnId) expect(writers).toContain(turnId);
      expect((await one.live('s', `attempt ${at}`)).length).toBeLessThanOrEqual(1);
    }
  });

  it('writers wait, ask once however often they are told to, and go on', async () => {
    const { log, client } = await gateways.open({ leaseMs: 5_000 });
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    await server.kill();
    const renewals = Array.from({ length: 500 }, () => writer.renew());
    const appending = writer.append([delta('a')]);
    let isStored = false;
    void appending.then(() => {
      isStored = true;
    });
    await sleep(200);
    expect(isStored).toBe(false);
    await server.start();
    expect(await appending).toBe(3);
    await Promise.all(renewals);
    expect(chunksOf((await readOnce(log, writer.turnId)) ?? [])).toEqual([...OPENING, delta('a')]);
    const stats = String(await send(client, 'INFO', 'commandstats'));
    const calls = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].map(
      ([, count]) => count,
    );
    expect(calls.length).toBeGreaterThan(0);
    for (const count of calls) expect(Number(count)).toBeLessThan(50);
  });

  async function readOnce(log: TurnLog, turnId: string) {
    const reader = log.read(turnId, 0, new AbortController().signal)[Symbol.asyncIterator]();
    const { value } = await reader.next();
    await reader.return?.();
    return value;
  }

  it('for too long, readers and writers are told, and may come back', async () => {
    const [log, other] = await gateways.openMany(2, { outageMs: 800, leaseMs: 1_000 });
    if (!log || !other) throw new Error('unreachable');
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    const reading = readAll(other, writer.turnId);
    await sleep(50);
    await server.kill();
    const appending = writer.append([delta('a')]);
    const renewing = writer.renew();
    const all = [appending, renewing, reading];
    await Promise.all(all.map((one) => expect(one).rejects.toMatchObject(unavailable)));
    await expect(readAll(other, writer.turnId)).rejects.toMatchObject(unavailable);
    await server.start();
    await until('it is back', () =>
      other.latest('s', 'c').then(
        () => true,
        () => false,
      ),
    );
    // Its lease has run out meanwhile: whoever notices has ended it, or it is the first to.
    await writer.append(CLOSING).then(
      () => writer.close(FINISHED),
      (error) => expect(error).toMatchObject({ code: 'turn-fenced' }),
    );
    const numbers = (await readAll(other, writer.turnId)).map(({ seq }) => seq);
    expect(numbers).toEqual(numbers.map((_, at) => at + 1));
    expect(numbers.length).toBeGreaterThan(2);
  });

  it('for longer than a lease, turns stay with those who write them', async () => {
    // The one that writes is the later to find out that Redis is back.
    const { log: writing } = await gateways.open({ leaseMs: 1_500 }, server.port, 400);
    const { log: other } = await gateways.open({ leaseMs: 1_500 });
    const adopted: string[] = [];
    other.onOrphan(async ({ turn }) => adopted.push(turn.turnId) > 0);
    const writers = await Promise.all([1, 2, 3].map(() => beginTurn(writing)));
    const renewals = writers.map(keepRenewing);
    const reads = writers.map(({ turnId }) => readAll(other, turnId));
    await Promise.all(writers.map((writer) => writer.append(OPENING)));
    await isAwayFor(2_000);
    await until('it is back', () => other.get(writers[0]?.turnId ?? '').then(Boolean, () => false));
    await Promise.all(writers.map((writer) => writer.append(CLOSING)));
    for (const { stop } of renewals) stop();
    await Promise.all(writers.map((writer) => writer.close(FINISHED)));
    for (const read of await Promise.all(reads)) {
      expect(chunksOf(read)).toEqual([...OPENING, ...CLOSING]);
    }
    expect(adopted).toEqual([]);
    for (const { failures } of renewals) expect(failures).toEqual([]);
  });

  it('for longer than a lease, one that is opened when it is back takes nothing either', async () => {
    const leaseMs = 1_000;
    const { log } = await gateways.open({ leaseMs }, undefined, 400);
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    await server.kill();
    const renewal = keepRenewing(writer);
    await sleep(leaseMs + 100);
    await server.start();
    // It is there before the writer's client has connected again.
    const { log: fresh } = await gateways.open({ leaseMs });
    const taken: string[] = [];
    fresh.onOrphan(async ({ turn }) => taken.push(turn.turnId) > 0);
    expect(await fresh.get(writer.turnId)).toMatchObject({ lastSeq: 2 });
    await sleep(leaseMs);
    expect(taken).toEqual([]);
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    renewal.stop();
    expect(await fresh.get(writer.turnId)).toMatchObject({ outcome: FINISHED });
  });

  it('but only slow, everything waits and nothing is lost', async () => {
    const [one, other] = await gateways.openMany(2, { leaseMs: 200 });
    if (!one || !other) throw new Error('unreachable');
    const writer = await beginTurn(one);
    const renewal = keepRenewing(writer);
    const reading = readAll(other, writer.turnId);
    await writer.append(OPENING);
    server.suspend();
    const appending = writer.append([delta('a')]);
    const commanding = other.command(writer.turnId, { type: 'stop' });
    await sleep(500);
    server.resume();
    expect(await appending).toBe(3);
    expect(await commanding).toBe(true);
    for await (const command of writer.commands()) {
      expect(command).toEqual({ type: 'stop' });
      break;
    }
    renewal.stop();
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    expect(chunksOf(await reading)).toEqual([...OPENING, delta('a'), ...CLOSING]);
    expect(renewal.failures).toEqual([]);
  });

  it('a client without an error listener of its own brings nothing down', async () => {
    const bare =
      kind === 'redis'
        ? await createClient({
            socket: { port: server.port, host: '127.0.0.1', reconnectStrategy: () => 20 },
          }).connect()
        : new Redis(server.port, '127.0.0.1', { retryStrategy: () => 20 });
    const log = redisTurnLog({ client: bare, prefix: 'bare' });
    const writer = await beginTurn(log);
    const reading = readAll(log, writer.turnId);
    await writer.append(OPENING);
    await isAwayFor(50);
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    expect(await reading).toHaveLength(4);
    await log.close();
    if ('destroy' in bare) bare.destroy();
    else bare.disconnect();
  });

  it('a log can be closed', async () => {
    const { log } = await gateways.open({ answerMs: 200 });
    const writer = await beginTurn(log);
    const reading = readAll(log, writer.turnId);
    await server.kill();
    const appending = writer.append(OPENING);
    const before = Date.now();
    await log.close();
    expect(Date.now() - before).toBeLessThan(2_000);
    expect(await reading).toEqual([]);
    await server.start();
    await appending.catch((error) => expect(error).toMatchObject({ code: 'turn-fenced' }));
    await expect(writer.append(CLOSING)).rejects.toMatchObject({ code: 'turn-fenced' });
    await expect(log.begin(request())).rejects.toMatchObject({ code: 'shutting-down' });
  });
});
