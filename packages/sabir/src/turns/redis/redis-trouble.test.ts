import Redis from 'ioredis';
import { createClient } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
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
import { redisTurnLog } from './index.ts';

const HOUR = 3_600_000;

const kinds = describe.skipIf(!hasRedis).each(CLIENT_KINDS);
kinds(`trouble with Redis, by %s${IF_REDIS}`, (kind) => {
  let server: RedisServer;
  const gateways = useGateways(kind, () => server.port);
  beforeAll(async () => {
    server = await startRedis({ appendfsync: 'always' });
  });
  afterEach(() => vi.restoreAllMocks());
  afterAll(() => server?.stop());

  it('for longer than a lease: a writer that only waits for its last words still has the turn', async () => {
    const leaseMs = 800;
    const { log } = await gateways.open({ leaseMs });
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    await server.kill();
    // As one whose agent has said all: nothing renews the lease.
    const last = writer.append([delta('a')]);
    await sleep(leaseMs + 300);
    await server.start();
    expect(await last).toBe(3);
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    expect(await log.get(writer.turnId)).toMatchObject({ outcome: FINISHED });
  });

  it('that refuses for longer than a lease: nobody takes a turn from one who could not renew', async () => {
    const full = await startRedis({ settings: ['--maxmemory-policy', 'noeviction'] });
    try {
      const options = { leaseMs: 600, answerMs: 300 };
      const { log, client } = await gateways.open(options, full.port);
      const { log: other } = await gateways.open(options, full.port);
      const taken: string[] = [];
      other.onOrphan(async ({ turn }) => taken.push(turn.turnId) > 0);
      const writers = await Promise.all(Array.from({ length: 5 }, () => beginTurn(log)));
      const renewals = writers.map(keepRenewing);
      const reading = writers.map(({ turnId }) => readAll(other, turnId));
      await send(client, 'CONFIG', 'SET', 'maxmemory', '1');
      const appending = writers.map((writer) => writer.append(OPENING));
      await sleep(1_500);
      await send(client, 'CONFIG', 'SET', 'maxmemory', '0');
      await Promise.all(appending);
      await Promise.all(writers.map((writer) => writer.append(CLOSING)));
      for (const { stop } of renewals) stop();
      await Promise.all(writers.map((writer) => writer.close(FINISHED)));
      for (const read of await Promise.all(reading)) {
        expect(chunksOf(read)).toEqual([...OPENING, ...CLOSING]);
      }
      expect(taken).toEqual([]);
    } finally {
      await full.stop();
    }
  });

  it('is over: what was refused meanwhile is not done after all', async () => {
    const { log, client } = await gateways.open({ answerMs: 200 });
    const writer = await beginTurn(log);
    await server.kill();
    await until('it is known', () =>
      log.get(writer.turnId).then(
        () => false,
        () => true,
      ),
    );
    const asked = Array.from({ length: 200 }, () => log.command(writer.turnId, { type: 'stop' }));
    for (const one of await Promise.allSettled(asked)) expect(one.status).toBe('rejected');
    await server.start();
    await until('it is back', () => log.get(writer.turnId).then(Boolean, () => false));
    const stats = String(await send(client, 'INFO', 'commandstats'));
    expect(stats).not.toMatch(/cmdstat_rpush/);
  });

  it('that only hits the listening connection: another is opened, also if its client gives up', async () => {
    const [host, port] = ['127.0.0.1', server.port];
    const client =
      kind === 'ioredis'
        ? new Redis(port, host, { retryStrategy: () => null })
        : createClient({ socket: { host, port, reconnectStrategy: false } });
    client.on('error', () => undefined);
    if (!('status' in client)) await client.connect();
    const log = redisTurnLog({ client, prefix: 'gives up', leaseMs: 20_000 });
    const { client: admin } = await gateways.open();
    try {
      const writer = await beginTurn(log);
      const seen: string[] = [];
      const watch = async () => {
        for await (const batch of log.read(writer.turnId, 0, new AbortController().signal)) {
          for (const { chunk } of batch) if (chunk.type === 'text-delta') seen.push(chunk.delta);
        }
      };
      const old = watch();
      await writer.append([delta('one')]);
      await until('it is read', () => seen.length === 1);
      await send(admin, 'CLIENT', 'KILL', 'TYPE', 'pubsub');
      await sleep(100);
      const young = watch();
      await writer.append([delta('two')]);
      await until('all have it', () => seen.length === 4, 3_000);
      await writer.append([delta('three')]);
      await until('all have that', () => seen.length === 6, 1_000);
      await writer.close(FINISHED);
      await Promise.all([old, young]);
    } finally {
      await log.close();
      if ('status' in client) client.disconnect();
      else client.destroy();
    }
  });

  it('or none: all turns of a gateway that has died are taken, however many', async () => {
    const leaseMs = 800;
    const { log } = await gateways.open({ leaseMs });
    const { log: survivor } = await gateways.open({ leaseMs });
    const writers = await Promise.all(
      Array.from({ length: 450 }, (_, at) => beginTurn(log, { sessionId: `${at}` })),
    );
    const taken = new Set<string>();
    const renewals: { stop(): void }[] = [];
    const begun = Date.now();
    survivor.onOrphan(async ({ turn, writer }) => {
      taken.add(turn.turnId);
      renewals.push(keepRenewing(writer));
      return true;
    });
    await until('all are taken', () => taken.size === writers.length, 10 * leaseMs);
    for (const { stop } of renewals) stop();
    // A lease, half of one until somebody looks, and what it takes on a busy machine.
    expect(Date.now() - begun).toBeLessThan(5 * leaseMs);
  });

  it('or none: gateways whose clocks are wrong', async () => {
    const leaseMs = 600;
    const { log } = await gateways.open({ leaseMs });
    const { log: survivor } = await gateways.open({ leaseMs });
    const rightNow = Date.now;
    vi.spyOn(Date, 'now').mockImplementation(() => rightNow() + HOUR);
    const orphan = await beginTurn(log);
    vi.spyOn(Date, 'now').mockImplementation(() => rightNow() - HOUR);
    const ended = await beginTurn(survivor, { chatId: 'ended' });
    await ended.close(FINISHED);
    // Compared with when somebody asked, by the clock of this gateway.
    const { endedAt } = (await survivor.get(ended.turnId)) ?? {};
    expect(Math.abs((endedAt ?? 0) - Date.now())).toBeLessThan(2_000);
    vi.restoreAllMocks();
    const taken: string[] = [];
    survivor.onOrphan(async ({ turn }) => taken.push(turn.turnId) > 0);
    await until('it is taken', () => taken.includes(orphan.turnId), 5_000);
  });

  it('is told in the log, from time to time, with what is wrong', async () => {
    const told: [string, object | undefined][] = [];
    const logger = {
      warn: (message: string, details?: object) => void told.push([message, details]),
    };
    const { log, client } = await gateways.open({ answerMs: 100, logger });
    await send(client, 'ACL', 'SETUSER', 'default', '-evalsha', '-eval');
    await Promise.allSettled([1, 2, 3].map(() => log.begin(request())));
    await send(client, 'ACL', 'SETUSER', 'default', '+@all');
    expect(told).toHaveLength(1);
    expect(told[0]?.[1]).toMatchObject({
      why: 'Redis says NOPERM: this user may not do what is needed',
    });
  });
});
