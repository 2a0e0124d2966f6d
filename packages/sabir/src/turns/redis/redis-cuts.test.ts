import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_KINDS } from '../../../test/redis-clients.ts';
import { IF_REDIS, useGateways } from '../../../test/redis-gateways.ts';
import { hasRedis, type RedisServer, startRedis } from '../../../test/redis-server.ts';
import { type SocketProxy, startSocketProxy } from '../../../test/socket-proxy.ts';
import {
  beginTurn,
  CLOSING,
  chunksOf,
  delta,
  FINISHED,
  OPENING,
  readAll,
  sleep,
} from '../../../test/turn-log-helpers.ts';
import type { TurnCommand } from '../log.ts';

/** Random by a seed: what fails can be run again. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const SEED = Number(process.env.REDIS_CUTS_SEED ?? 7);
/** A connection that is cut before it has said hello is of little interest: most get further. */
const FURTHEST_CUT = 24_000;
const TURNS = 4;
const DELTAS = 60;

const kinds = describe.skipIf(!hasRedis).each(CLIENT_KINDS);
kinds(`connections to Redis that are cut, by %s${IF_REDIS}`, (kind) => {
  const random = seededRandom(SEED);
  let isCutting = false;
  let server: RedisServer;
  let proxy: SocketProxy;
  const gateways = useGateways(kind, () => Number(new URL(proxy.url).port));
  beforeAll(async () => {
    server = await startRedis();
    proxy = await startSocketProxy(server.port, () =>
      isCutting ? Math.ceil(random() * FURTHEST_CUT) : undefined,
    );
  });
  afterAll(async () => {
    await proxy?.close();
    await server?.stop();
  });

  it(`lose nothing and double nothing, wherever they are cut (seed ${SEED}) [RED-08]`, async () => {
    const [one, other] = await gateways.openMany(2, { leaseMs: 10_000 });
    if (!one || !other) throw new Error('unreachable');
    isCutting = true;
    proxy.cutAll();
    const turns = Array.from({ length: TURNS }, async (_, turn) => {
      const writer = await beginTurn(turn % 2 ? one : other, { chatId: `cut ${turn}` });
      const reads = [one, other].map((log) => readAll(log, writer.turnId));
      const heard: string[] = [];
      const listening = (async () => {
        for await (const command of writer.commands()) heard.push(nameOf(command));
      })();
      const taken: string[] = [];
      await writer.append(OPENING);
      for (let at = 0; at < DELTAS; at++) {
        expect(await writer.append([delta(`${at} ${'x'.repeat(random() * 200)}`)])).toBe(at + 3);
        if (at % 4 === 0) {
          const stop = { type: 'stop', reason: `${at}` } as const;
          if (await (turn % 2 ? other : one).command(writer.turnId, stop)) taken.push(nameOf(stop));
        }
        if (at % 20 === 0) await writer.renew();
        await sleep(random() * 4);
      }
      await writer.append(CLOSING);
      await writer.close(FINISHED);
      await listening;
      expect(heard).toEqual(taken);
      expect(taken.length).toBe(DELTAS / 4);
      const [first, second] = await Promise.all(reads);
      expect(second).toEqual(first);
      return { turnId: writer.turnId, read: chunksOf(first ?? []) };
    });
    const done = await Promise.all(turns);
    isCutting = false;
    proxy.cutAll();
    const { log: direct } = await gateways.open({}, server.port);
    for (const { turnId, read } of done) {
      expect(read).toEqual(chunksOf(await readAll(direct, turnId)));
      const places = read
        .slice(2, -2)
        .map((chunk) =>
          chunk.type === 'text-delta' ? Number.parseInt(chunk.delta, 10) : Number.NaN,
        );
      expect(places).toEqual(Array.from({ length: DELTAS }, (_, at) => at));
    }
    expect(proxy.cuts).toBeGreaterThan(10);
  });

  it('are caught up with by those who read, without waiting for a look', async () => {
    const [one, other] = await gateways.openMany(2, { leaseMs: 60_000 });
    if (!one || !other) throw new Error('unreachable');
    const writer = await beginTurn(one);
    const reading = readAll(other, writer.turnId);
    await writer.append(OPENING);
    for (let at = 0; at < 10; at++) {
      await sleep(10);
      proxy.cutAll();
      // What is said while nobody listens is read when somebody does again.
      await writer.append([delta(`${at}`)]);
    }
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    expect(await reading).toHaveLength(14);
  });
});

function nameOf(command: TurnCommand): string {
  if (command.type === 'steer') return `steer ${command.id}`;
  return command.type === 'stop' ? `stop ${command.reason}` : `answer ${command.questionId}`;
}
