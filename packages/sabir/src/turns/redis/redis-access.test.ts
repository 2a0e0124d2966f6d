import { readFileSync } from 'node:fs';
import Redis from 'ioredis';
import { createClient } from 'redis';
import { describe, expect, it } from 'vitest';
import { CLIENT_KINDS, openClient } from '../../../test/redis-clients.ts';
import { IF_REDIS, send, until } from '../../../test/redis-gateways.ts';
import { hasRedis, startRedis } from '../../../test/redis-server.ts';
import {
  beginTurn,
  CLOSING,
  chunksOf,
  FINISHED,
  OPENING,
  readAll,
} from '../../../test/turn-log-helpers.ts';
import type { TurnLog } from '../log.ts';
import { redisTurnLog } from './index.ts';

const GUIDE = new URL('../../../../../docs/DEPLOYING.md', import.meta.url);
const [, RULES = ''] = /ACL (SETUSER sabir .*)/.exec(readFileSync(GUIDE, 'utf8')) ?? [];

const kinds = describe.skipIf(!hasRedis).each(CLIENT_KINDS);
kinds(`a user of Redis as the guide has it, by %s${IF_REDIS}`, (kind) => {
  it('may do all that is needed, and nothing is refused', async () => {
    const server = await startRedis();
    const admin = await openClient('redis', server.port);
    await send(admin.client, 'ACL', ...RULES.split(' '));
    const login = { username: 'sabir', password: 'password' };
    const [host, { port }] = ['127.0.0.1', server];
    const opened = await Promise.all(
      [1, 2].map(async () => {
        if (kind === 'ioredis') return new Redis(port, host, login);
        return createClient({ ...login, socket: { host, port } }).connect();
      }),
    );
    const [log, other] = opened.map((client) =>
      redisTurnLog({ client, leaseMs: 500, retainedBytes: 1 }),
    ) as [TurnLog, TurnLog];
    try {
      const orphan = await beginTurn(log, { chatId: 'orphan' });
      const writer = await beginTurn(log);
      const reading = readAll(other, writer.turnId);
      await writer.append(OPENING);
      expect(await other.command(writer.turnId, { type: 'stop' })).toBe(true);
      for await (const command of writer.commands()) {
        expect(command).toEqual({ type: 'stop' });
        break;
      }
      await writer.renew();
      expect(await log.isReadElsewhere(writer.turnId)).toBe(true);
      expect(await other.live('s')).toHaveLength(2);
      await other.notes.add('note', 1_000);
      expect(await log.notes.take('note')).toBe(true);
      await log.notes.clear(['note']);
      await writer.append(CLOSING);
      await writer.close(FINISHED);
      expect(chunksOf(await reading)).toEqual([...OPENING, ...CLOSING]);
      const taken: string[] = [];
      other.onOrphan(async (lost) => {
        taken.push(lost.turn.turnId);
        await lost.writer.release?.();
        return true;
      });
      await until('it is taken', () => taken.includes(orphan.turnId));
    } finally {
      await Promise.all([log.close(), other.close()]);
      for (const client of opened) 'destroy' in client ? client.destroy() : client.disconnect();
    }
    expect(await send(admin.client, 'ACL', 'LOG')).toEqual([]);
    admin.close();
    await server.stop();
  });
});
