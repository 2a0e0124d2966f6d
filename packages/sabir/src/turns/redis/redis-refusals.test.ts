import Redis from 'ioredis';
import { createClient } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_KINDS, openClient } from '../../../test/redis-clients.ts';
import { IF_REDIS, send, useGateways } from '../../../test/redis-gateways.ts';
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
  WHOLE_TURN,
} from '../../../test/turn-log-helpers.ts';
import type { TurnLog } from '../log.ts';
import { type RedisTurnLogOptions, redisTurnLog } from './index.ts';

const host = '127.0.0.1';
const unavailable = { code: 'log-unavailable', status: 503 };
const refuses = (word: string) => ({
  ...unavailable,
  cause: { why: expect.stringMatching(`^Redis says ${word}`) },
});
const SOON = { answerMs: 300, outageMs: 600 };

/** Whoever asks is told, and nobody hangs. */
async function everyoneIsTold(log: TurnLog, error: object): Promise<void> {
  const before = Date.now();
  await Promise.all([
    expect(log.begin(request())).rejects.toMatchObject(error),
    expect(log.latest('s', 'c')).rejects.toMatchObject(error),
    expect(log.live('s', 'c')).rejects.toMatchObject(error),
    expect(log.get('turn')).rejects.toMatchObject(error),
    expect(log.command('turn', { type: 'stop' })).rejects.toMatchObject(error),
    expect(readAll(log, 'turn')).rejects.toMatchObject(error),
    expect(log.isReadElsewhere('turn')).rejects.toMatchObject(error),
  ]);
  expect(Date.now() - before).toBeLessThan(5_000);
}

describe('what is no client', () => {
  it.each([
    ['nothing', undefined],
    ['null', null],
    ['an address', 'redis://localhost'],
    ['options', { host, port: 6379 }],
    ['a class', createClient],
    ['a promise of one', Promise.resolve({})],
  ])('is refused with a word on what is needed: %s', (_what, client) => {
    const create = () => redisTurnLog({ client } as unknown as RedisTurnLogOptions);
    expect(create).toThrow(TypeError);
    expect(create).toThrow(/createClient\(\) of redis, or new Redis\(\) of ioredis/);
  });
});

describe.skipIf(!hasRedis)(`a client that is not connected${IF_REDIS}`, () => {
  let server: RedisServer;
  const closing: (() => unknown)[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });
  afterAll(() => server?.stop());
  const createLog = (client: RedisTurnLogOptions['client'], options = {}) => {
    const log = redisTurnLog({ client, ...SOON, ...options }) as TurnLog;
    closing.push(() => log.close());
    return log;
  };

  it('yet: it says so, and works once it is', async () => {
    const client = createClient({ socket: { host, port: server.port } });
    const log = createLog(client);
    await everyoneIsTold(log, unavailable);
    await client.connect();
    closing.push(() => client.destroy());
    const writer = await beginTurn(log);
    await writer.append(WHOLE_TURN);
    await writer.close(FINISHED);
    expect(chunksOf(await readAll(log, writer.turnId))).toEqual(WHOLE_TURN);
  });

  it.each(CLIENT_KINDS)('any more says so: %s', async (kind) => {
    const { client, close } = await openClient(kind, server.port);
    const log = createLog(client);
    const writer = await beginTurn(log);
    close();
    await everyoneIsTold(log, unavailable);
    await expect(writer.append(OPENING)).rejects.toMatchObject(unavailable);
  });

  it('but connects when it is needed is taken at its word', async () => {
    const client = new Redis(server.port, host, { lazyConnect: true });
    closing.push(() => client.disconnect());
    const log = createLog(client);
    const writer = await beginTurn(log);
    await writer.append(WHOLE_TURN);
    await writer.close(FINISHED);
    expect(await readAll(log, writer.turnId)).toHaveLength(5);
  });

  it.each([
    ['keyPrefix', { keyPrefix: 'mine:' }],
    ['enableOfflineQueue', { enableOfflineQueue: false }],
    ['maxRetriesPerRequest', { maxRetriesPerRequest: 0 }],
    ['enableAutoPipelining', { enableAutoPipelining: true }],
    ['db', { db: 3 }],
    ['stringNumbers', { stringNumbers: true }],
  ])('as usual but by options of its own is fine: %s', async (_name, options) => {
    const client = new Redis(server.port, host, options);
    closing.push(() => client.disconnect());
    await new Promise((resolve) => client.once('ready', resolve));
    await works(createLog(client, { leaseMs: 60_000 }));
  });

  it.each([
    ['RESP 2', { RESP: 2 as const }],
    ['RESP 3', { RESP: 3 as const }],
    ['no offline queue', { disableOfflineQueue: true }],
    ['database', { database: 3 }],
  ])('as usual but by options of its own is fine: %s', async (_name, options) => {
    const client = createClient({ socket: { host, port: server.port }, ...options });
    await client.connect();
    closing.push(() => client.destroy());
    await works(createLog(client, { leaseMs: 60_000 }));
  });

  async function works(log: TurnLog): Promise<void> {
    const writer = await beginTurn(log);
    const reading = readAll(log, writer.turnId);
    const [answer, other] = [1, 2].map((at) => ({
      type: 'answer' as const,
      questionId: 'q',
      answer: at,
    }));
    await writer.append(OPENING);
    expect(await log.command(writer.turnId, answer as never)).toBe(true);
    expect(await log.command(writer.turnId, other as never)).toBe(false);
    for await (const command of writer.commands()) {
      expect(command).toEqual(answer);
      break;
    }
    await writer.renew();
    expect(await log.latest('s', 'c')).toMatchObject({ lastSeq: 2, turnId: writer.turnId });
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    expect(chunksOf(await reading)).toEqual([...OPENING, ...CLOSING]);
    expect(await log.get(writer.turnId)).toMatchObject({ outcome: FINISHED });
  }
});

const kinds = describe.skipIf(!hasRedis).each(CLIENT_KINDS);
kinds(`a Redis that refuses, by %s${IF_REDIS}`, (kind) => {
  let server: RedisServer;
  const gateways = useGateways(kind, () => server.port);
  const stopping: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterEach(async () => {
    for (const stop of stopping.splice(0)) await stop();
  });
  afterAll(() => server?.stop());

  it('what this user may not do', async () => {
    const { client, log } = await gateways.open(SOON);
    const [name, password] = ['limited', 'pw'];
    await send(
      client,
      'ACL',
      'SETUSER',
      name,
      'on',
      `>${password}`,
      '~*',
      '&*',
      '+@connection',
      '+info',
    );
    const limited =
      kind === 'ioredis'
        ? new Redis(server.port, host, { username: name, password })
        : await createClient({
            username: name,
            password,
            socket: { host, port: server.port },
          }).connect();
    const close = () => ('destroy' in limited ? limited.destroy() : limited.disconnect());
    if ('status' in limited) await new Promise((resolve) => limited.once('ready', resolve));
    const refused = redisTurnLog({ client: limited, ...SOON }) as TurnLog;
    await everyoneIsTold(refused, refuses('NOPERM'));
    await refused.close();
    close();
    // One whose rights are taken away in the middle of a turn.
    const writer = await beginTurn(log);
    await send(client, 'ACL', 'SETUSER', 'default', '-evalsha', '-eval');
    await expect(writer.append(OPENING)).rejects.toMatchObject(refuses('NOPERM'));
    await send(client, 'ACL', 'SETUSER', 'default', '+@all');
    expect(await writer.append(OPENING)).toBe(2);
  });

  it('whoever does not know its password', async () => {
    const secret = await startRedis();
    stopping.push(secret.stop);
    const { client, close } = await openClient(kind, secret.port);
    await send(client, 'CONFIG', 'SET', 'requirepass', 'right');
    close();
    const password = 'wrong';
    const wrong =
      kind === 'ioredis'
        ? new Redis(secret.port, host, { password, retryStrategy: () => 50 })
        : createClient({ password, socket: { host, port: secret.port } });
    const log = redisTurnLog({ client: wrong, ...SOON }) as TurnLog;
    // It goes on trying for ever.
    if (!('status' in wrong)) wrong.connect().catch(() => undefined);
    await everyoneIsTold(log, unavailable);
    await log.close();
    if ('status' in wrong) wrong.disconnect();
    else wrong.destroy();
  });

  it('what it has no memory for, until it has', async () => {
    const full = await startRedis({ settings: ['--maxmemory-policy', 'noeviction'] });
    stopping.push(full.stop);
    const { log, client } = await gateways.open({ ...SOON, leaseMs: 10_000 }, full.port);
    const { log: patient } = await gateways.open({ answerMs: 300, leaseMs: 10_000 }, full.port);
    const writer = await beginTurn(log);
    const waiting = await beginTurn(patient);
    await send(client, 'CONFIG', 'SET', 'maxmemory', '1');
    await expect(log.begin(request())).rejects.toMatchObject(refuses('OOM'));
    await expect(writer.append([delta('a')])).rejects.toMatchObject(refuses('OOM'));
    const appending = waiting.append([delta('b')]);
    await send(client, 'CONFIG', 'SET', 'maxmemory', '0');
    expect(await appending).toBe(1);
    expect(await writer.append([delta('a')])).toBe(1);
    await writer.close(FINISHED);
    expect(chunksOf(await readAll(patient, writer.turnId))).toEqual([delta('a')]);
  });

  it('to write, because it is a replica', async () => {
    const replica = await startRedis();
    stopping.push(replica.stop);
    const { log, client } = await gateways.open({ ...SOON, leaseMs: 10_000 }, replica.port);
    const writer = await beginTurn(log);
    await send(client, 'REPLICAOF', host, '1');
    await expect(log.begin(request())).rejects.toMatchObject(unavailable);
    await expect(writer.append(OPENING)).rejects.toMatchObject(unavailable);
    await send(client, 'REPLICAOF', 'NO', 'ONE');
    expect(await writer.append(OPENING)).toBe(2);
    await beginTurn(log);
  });

  it('and says nothing of what was to be kept', async () => {
    const { log, client } = await gateways.open(SOON);
    const writer = await beginTurn(log);
    await send(client, 'ACL', 'SETUSER', 'default', '-evalsha', '-eval');
    const error = await writer.append([delta('a secret')]).catch((refusal: unknown) => refusal);
    await send(client, 'ACL', 'SETUSER', 'default', '+@all');
    const { inspect } = await import('node:util');
    expect(inspect(error, { depth: 9 })).not.toContain('a secret');
  });
});
