import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_KINDS, type OpenClient, openCluster } from '../../../test/redis-clients.ts';
import { atNode, type RedisCluster, startRedisCluster } from '../../../test/redis-cluster.ts';
import { IF_REDIS, keepRenewing, until } from '../../../test/redis-gateways.ts';
import { hasRedis } from '../../../test/redis-server.ts';
import { describeTurnLog } from '../../../test/turn-log-conformance.ts';
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
import type { TurnLog } from '../log.ts';
import { type RedisTurnLogOptions, redisTurnLog } from './index.ts';

describe.skipIf(!hasRedis)(`in a cluster of Redis${IF_REDIS}`, () => {
  let cluster: RedisCluster;
  let logs = 0;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster?.stop());

  describe.each(CLIENT_KINDS)('with %s', (kind) => {
    let opened: OpenClient;
    let second: OpenClient;
    beforeAll(async () => {
      opened = await openCluster(kind, cluster.port);
      second = await openCluster(kind, cluster.port);
    });
    afterAll(() => {
      opened?.close();
      second?.close();
    });

    // It takes long, and what the two differ in is tested below.
    if (kind === 'redis') {
      describeTurnLog(
        kind,
        (options) =>
          redisTurnLog({ client: opened.client, prefix: `cluster ${++logs}`, ...options }),
        { shortMs: 200 },
      );
    }

    async function withTwo(
      options: Partial<RedisTurnLogOptions>,
      run: (one: TurnLog, other: TurnLog, prefix: string) => Promise<void>,
    ): Promise<void> {
      const prefix = `two ${++logs}`;
      const [one, other] = [opened, second].map(
        ({ client }) => redisTurnLog({ client, prefix, ...options }) as TurnLog,
      ) as [TurnLog, TurnLog];
      try {
        await run(one, other, prefix);
      } finally {
        await Promise.all([one.close(), other.close()]);
      }
    }

    it('keeps a turn’s keys together, and turns on all nodes [RED-04]', async () => {
      await withTwo({}, async (log, other, prefix) => {
        const turns = await Promise.all(
          Array.from({ length: 40 }, async (_, chat) => {
            const writer = await beginTurn(log, { chatId: `chat ${chat}` });
            const reading = readAll(other, writer.turnId);
            await writer.append(OPENING);
            expect(await other.command(writer.turnId, { type: 'stop' })).toBe(true);
            for await (const { type } of writer.commands()) {
              expect(type).toBe('stop');
              break;
            }
            return { writer, reading };
          }),
        );
        const counts = cluster.nodes.map((node) => {
          const keys = atNode(node, 'KEYS', `${prefix}:{*`).split('\n');
          const ids = keys.flatMap((key) => /:turn:(.+)$/.exec(key)?.[1] ?? []);
          for (const id of ids) {
            // The turn, its chunks, its commands and its readers.
            expect(keys.filter((key) => key.endsWith(`:${id}`))).toHaveLength(4);
          }
          const own = keys.filter((key) => key.endsWith(`:${ids[0]}`));
          const slots = own.map((key) => atNode(node, 'CLUSTER', 'KEYSLOT', key));
          expect(new Set(slots).size).toBe(1);
          return ids.length;
        });
        expect(counts.reduce((sum, count) => sum + count)).toBe(40);
        for (const count of counts) expect(count).toBeGreaterThan(3);
        for (const { writer, reading } of turns) {
          await writer.append(CLOSING);
          await writer.close(FINISHED);
          expect(await reading).toHaveLength(4);
        }
      });
    });

    it('goes on when a node was away for longer than a lease', async () => {
      await withTwo({ leaseMs: 500 }, async (one, other) => {
        const adopted: string[] = [];
        other.onOrphan(async ({ turn }) => adopted.push(turn.turnId) > 0);
        const turns = await Promise.all(
          Array.from({ length: 12 }, async (_, chat) => {
            const writer = await beginTurn(one, { chatId: `chat ${chat}` });
            const renewal = keepRenewing(writer);
            await writer.append(OPENING);
            return { writer, renewal, reading: readAll(other, writer.turnId) };
          }),
        );
        const [, node] = cluster.nodes;
        node?.suspend();
        const writing = turns.map(async ({ writer, renewal, reading }) => {
          for (let at = 0; at < 20; at++) {
            await writer.append([delta(`${at}`)]);
            await sleep(30);
          }
          await writer.append(CLOSING);
          renewal.stop();
          await writer.close(FINISHED);
          expect(renewal.failures).toEqual([]);
          return chunksOf(await reading);
        });
        await sleep(1_200);
        node?.resume();
        const words = Array.from({ length: 20 }, (_, at) => delta(`${at}`));
        for (const read of await Promise.all(writing)) {
          expect(read).toEqual([...OPENING, ...words, ...CLOSING]);
        }
        expect(adopted).toEqual([]);
      });
    });

    it('takes a turn over that was given up', async () => {
      await withTwo({ leaseMs: 20_000 }, async (one, other) => {
        const adopted: string[] = [];
        other.onOrphan(async ({ turn }) => adopted.push(turn.turnId) > 0);
        const writer = await beginTurn(one);
        await sleep(200);
        await writer.release?.();
        await until('it is taken', () => adopted.includes(writer.turnId), 5_000);
      });
    });
  });
});
