import { spawn } from 'node:child_process';
import { once } from 'node:events';
import Redis from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_KINDS, type OpenClient, openClient } from '../../../test/redis-clients.ts';
import { IF_REDIS, keepRenewing, send, until, useGateways } from '../../../test/redis-gateways.ts';
import { freePort, hasRedis, type RedisServer, startRedis } from '../../../test/redis-server.ts';
import { startSocketProxy } from '../../../test/socket-proxy.ts';
import {
  beginTurn,
  chunksOf,
  delta,
  FINISHED,
  NEVER,
  OPENING,
  readAll,
  sleep,
  WHOLE_TURN,
} from '../../../test/turn-log-helpers.ts';
import type { TurnLog } from '../log.ts';
import { createSubscriber } from './client.ts';
import { redisTurnLog } from './index.ts';
import { createKeys } from './keys.ts';

const kinds = describe.skipIf(!hasRedis).each(CLIENT_KINDS);
kinds(`nothing is held for those who have left, by %s${IF_REDIS}`, (kind) => {
  let server: RedisServer;
  const gateways = useGateways(kind, () => server.port);
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  const channelsOf = (client: OpenClient['client'], name: string) =>
    send(client, 'PUBSUB', 'CHANNELS', `${gateways.prefix}:*${name}*`) as Promise<string[]>;

  const connectionsOf = async (client: OpenClient['client']) =>
    String(await send(client, 'CLIENT', 'LIST'))
      .trim()
      .split('\n').length;

  it('no subscription, when readers have left, when a turn has ended, when the log is closed', async () => {
    const { log, client } = await gateways.open();
    const { log: other, client: otherClient } = await gateways.open();
    const before = await connectionsOf(client);
    const live = await beginTurn(log);
    const ended = await beginTurn(log);
    await live.append(OPENING);
    const leaving = new AbortController();
    const reads = Array.from({ length: 20 }, () => readAll(other, live.turnId, 0, leaving.signal));
    const endedRead = readAll(other, ended.turnId);
    await until('both are listened to', async () => {
      return (await channelsOf(client, ':news:')).length === 2;
    });
    const renewal = keepRenewing(live);
    // However many read, one connection listens.
    expect(await connectionsOf(client)).toBeLessThanOrEqual(before + 2);
    await ended.append(WHOLE_TURN);
    await ended.close(FINISHED);
    await endedRead;
    await until('the ended one is not', async () => {
      return (await channelsOf(client, ended.turnId)).length === 0;
    });
    leaving.abort();
    await Promise.all(reads);
    await until('the live one is not', async () => {
      return (await channelsOf(client, live.turnId)).length === 0;
    });
    const { readers } = createKeys(gateways.prefix).ofTurn(live.turnId);
    expect(Number(await send(client, 'EXISTS', readers))).toBe(0);
    renewal.stop();
    await other.close();
    await log.close();
    await until('nobody listens', async () => (await channelsOf(client, '')).length === 0);
    await until('its connections are gone', async () => (await connectionsOf(client)) <= before);
    // They are whoever's who gave them.
    expect(String(await send(client, 'PING'))).toBe('PONG');
    expect(String(await send(otherClient, 'PING'))).toBe('PONG');
  });

  it('but whoever comes back at once hears everything', async () => {
    const [log, other] = await gateways.openMany(2, { leaseMs: 60_000 });
    if (!log || !other) throw new Error('unreachable');
    const writer = await beginTurn(log);
    for (let at = 1; at <= 20; at++) {
      const leaving = new AbortController();
      const reader = other.read(writer.turnId, at - 1, leaving.signal)[Symbol.asyncIterator]();
      const next = reader.next();
      await writer.append([delta(`${at}`)]);
      expect((await next).value).toEqual([{ seq: at, chunk: delta(`${at}`) }]);
      leaving.abort();
    }
  });

  it('and a subscription that is taken back and wanted again is there', async () => {
    const { client } = await gateways.open();
    const heard: string[] = [];
    const subscriber = createSubscriber(client, (_channel, message) => heard.push(message));
    await subscriber.subscribe('again');
    for (let at = 0; at < 10; at++) {
      const leaving = subscriber.unsubscribe('again');
      await subscriber.subscribe('again');
      await leaving;
      await send(client, 'PUBLISH', 'again', `${at}`);
      await until(`${at} is heard`, () => heard.includes(`${at}`), 3_000);
    }
    expect(heard).toHaveLength(10);
    subscriber.close();
  });

  it('no listener on the client but one, however many logs there were', async () => {
    const { client, close } = await openClient(kind, server.port);
    const emitter = client as unknown as { listenerCount(event: string): number };
    const before = ['ready', 'error'].map((event) => emitter.listenerCount(event));
    for (let at = 0; at < 15; at++) await redisTurnLog({ client }).close();
    const after = ['ready', 'error'].map((event) => emitter.listenerCount(event));
    expect(after).toEqual([before[0], Number(before[1]) + 1]);
    close();
  });

  it('no turn’s content, when all who read it have left', async () => {
    const { gc } = globalThis;
    if (!gc) throw new Error('run with --expose-gc');
    const [log, other] = await gateways.openMany(2, { leaseMs: 20_000 });
    if (!log || !other) throw new Error('unreachable');
    const chunkOf = async () => {
      const writer = await beginTurn(log);
      const reading = readAll(other, writer.turnId);
      await writer.append([delta('x'.repeat(1_000))]);
      await writer.close(FINISHED);
      const [chunk] = chunksOf(await reading);
      return new WeakRef(chunk as object);
    };
    const chunks = await Promise.all(Array.from({ length: 20 }, chunkOf));
    await until('they are collected', async () => {
      await sleep(20);
      gc();
      return chunks.every((chunk) => chunk.deref() === undefined);
    });
  });

  /** A process that uses a log, then closes it: it ends by itself, or is ended and fails the test. */
  async function ends(
    port: number,
    where: 'there' | 'away' | 'never there',
    leaving?: RedisServer,
  ): Promise<void> {
    const script = `
      import { redisTurnLog } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)};
      import { createClient } from 'redis';
      import Redis from 'ioredis';
      const [kind, port, where] = process.argv.slice(1);
      const client = kind === 'redis'
        ? createClient({ socket: { host: '127.0.0.1', port: Number(port) } })
        : new Redis(Number(port), '127.0.0.1');
      const log = redisTurnLog({ client, answerMs: 300, leaseMs: 500 });
      if (kind === 'redis') client.connect().catch(() => undefined);
      log.onOrphan(async () => false);
      const reading = log.read('turn', 0, new AbortController().signal).next();
      reading.catch(() => undefined);
      const begun = await log.begin({
        sessionId: 's', chatId: 'c', requestId: crypto.randomUUID(), messageId: 'm',
      }).catch((error) => error.code);
      if (begun.writer) {
        await begun.writer.append([{ type: 'start' }]);
        log.read(begun.writer.turnId, 0, new AbortController().signal).next().catch(() => undefined);
      }
      console.log(begun.writer ? 'begun' : begun);
      if (where === 'away') await new Promise((resolve) => process.stdin.once('data', resolve));
      process.stdin.unref?.();
      await log.close();
      if (kind === 'redis') client.destroy();
      else client.disconnect();
    `;
    const args = ['--input-type=module', '-e', script, kind, `${port}`, where];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const exit = once(child, 'exit');
    const [line] = await once(child.stdout, 'data');
    expect(String(line).trim()).toBe(where === 'never there' ? 'log-unavailable' : 'begun');
    if (where === 'away') {
      await leaving?.kill();
      child.stdin.end('go\n');
    }
    const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
    const [code, signal] = await exit;
    clearTimeout(late);
    expect({ code, signal }).toEqual({ code: 0, signal: null });
  }

  it('no process, wherever Redis is', async () => {
    const nobody = await freePort();
    const leaving = await startRedis();
    try {
      await Promise.all([
        ends(server.port, 'there'),
        ends(nobody, 'never there'),
        ends(leaving.port, 'away', leaving),
      ]);
    } finally {
      await leaving.stop();
    }
  });
});

describe.skipIf(!hasRedis)(
  `a connection of ioredis that is closed while it comes back${IF_REDIS}`,
  () => {
    it('leaves no rejection that nobody handles', async () => {
      const server = await startRedis();
      const proxy = await startSocketProxy(server.port, () => undefined);
      const unhandled: unknown[] = [];
      const onUnhandled = (error: unknown) => unhandled.push(error);
      process.on('unhandledRejection', onUnhandled);
      try {
        const client = new Redis(server.port, '127.0.0.1', { retryStrategy: () => 20 });
        const duplicates: Redis[] = [];
        const duplicate = client.duplicate.bind(client);
        client.duplicate = (override) => {
          const made = duplicate({ ...override, port: Number(new URL(proxy.url).port) });
          duplicates.push(made);
          return made;
        };
        const log = redisTurnLog({ client }) as TurnLog;
        const writer = await beginTurn(log);
        await writer.append(OPENING);
        const reader = log.read(writer.turnId, 0, NEVER)[Symbol.asyncIterator]();
        await reader.next();
        const waiting = reader.next();
        await until('somebody listens', () => duplicates[0]?.status === 'ready');
        await sleep(50);
        const [own] = duplicates as [Redis];
        // It subscribes again at this moment, and is closed before it hears of that.
        const isClosed = once(own, 'end');
        own.once('ready', () => {
          proxy.cutAll();
          own.disconnect();
        });
        own.disconnect(true);
        await isClosed;
        await log.close();
        await waiting;
        client.disconnect();
        await sleep(50);
        expect(unhandled).toEqual([]);
      } finally {
        process.off('unhandledRejection', onUnhandled);
        await proxy.close();
        await server.stop();
      }
    });
  },
);
