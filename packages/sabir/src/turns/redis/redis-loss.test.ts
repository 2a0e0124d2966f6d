import { globSync, statSync, truncateSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_KINDS } from '../../../test/redis-clients.ts';
import {
  type Gateway,
  IF_REDIS,
  keepRenewing,
  send,
  until,
  useGateways,
} from '../../../test/redis-gateways.ts';
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
  request,
  sleep,
} from '../../../test/turn-log-helpers.ts';
import { createKeys } from './keys.ts';

const failed = { code: 'log-failed', status: 503 };
const fenced = { code: 'turn-fenced' };
const deltas = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => delta(`${from + at}`));

const kinds = describe.skipIf(!hasRedis).each(CLIENT_KINDS);
kinds(`a Redis that has less than it acknowledged, by %s${IF_REDIS}`, (kind) => {
  let server: RedisServer;
  const gateways = useGateways(kind, () => server.port);
  beforeAll(async () => {
    server = await startRedis({ appendfsync: 'everysec' });
  });
  afterAll(() => server?.stop());

  /** Keeps what a turn is now; what is given brings it back to that. */
  async function remember({ client }: Gateway, turnId: string): Promise<() => Promise<void>> {
    const { turn, chunks } = createKeys(gateways.prefix).ofTurn(turnId);
    for (const key of [turn, chunks]) await send(client, 'COPY', key, `${key} before`);
    const back = `
      for _, key in ipairs(KEYS) do redis.call('COPY', key .. ' before', key, 'REPLACE') end`;
    return async () => {
      await send(client, 'EVAL', back, '2', turn, chunks);
    };
  }

  it('is given the tail again, when more is written [RED-09]', async () => {
    const one = await gateways.open();
    const { log: other } = await gateways.open();
    const writer = await beginTurn(one.log);
    const reading = readAll(other, writer.turnId);
    await writer.append([...OPENING, ...deltas(0, 3)], 3);
    const goBack = await remember(one, writer.turnId);
    for (const chunk of deltas(3, 10)) await writer.append([chunk, chunk]);
    await goBack();
    expect(await other.get(writer.turnId)).toMatchObject({ lastSeq: 5 });
    expect(await writer.append([delta('next')])).toBe(20);
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    const twice = deltas(3, 10).flatMap((chunk) => [chunk, chunk]);
    const whole = [...OPENING, ...deltas(0, 3), ...twice, delta('next'), ...CLOSING];
    expect(chunksOf(await reading)).toEqual(whole);
    expect(chunksOf(await readAll(other, writer.turnId))).toEqual(whole);
    const { log: late } = await gateways.open();
    expect(chunksOf(await readAll(late, writer.turnId))).toEqual(whole);
  });

  it('begins a named turn again of which it has only the request', async () => {
    const { log, client } = await gateways.open();
    const same = request({ turnId: log.createTurnId('s', 'c') });
    const before = await beginTurn(log, same);
    const { turn } = createKeys(gateways.prefix).ofTurn(before.turnId);
    // As when a gateway does not know whether it has begun the turn, and calls it off.
    await send(client, 'DEL', turn);
    const writer = await beginTurn(log, same);
    expect(await writer.append(OPENING)).toBe(2);
    await expect(before.append([delta('late')])).rejects.toMatchObject(fenced);
    expect(await log.get(before.turnId)).toMatchObject({ lastSeq: 2 });
  });

  it('is given the tail again, when the turn ends', async () => {
    const one = await gateways.open();
    const writer = await beginTurn(one.log);
    await writer.append(OPENING);
    const goBack = await remember(one, writer.turnId);
    await writer.append(deltas(0, 5));
    await writer.append(CLOSING);
    await goBack();
    await writer.close(FINISHED);
    const { log: late } = await gateways.open();
    const whole = [...OPENING, ...deltas(0, 5), ...CLOSING];
    expect(chunksOf(await readAll(late, writer.turnId))).toEqual(whole);
    expect(await late.get(writer.turnId)).toMatchObject({ lastSeq: 9, outcome: FINISHED });
  });

  it('fails the turn clearly when the tail is gone here too [RED-09]', async () => {
    const one = await gateways.open({ leaseMs: 500 });
    const { log: other } = await gateways.open({ leaseMs: 500 });
    const writer = await beginTurn(one.log);
    await writer.append(OPENING);
    const goBack = await remember(one, writer.turnId);
    for (let at = 0; at < 4; at++) await writer.append([delta('x'.repeat(400_000))]);
    await goBack();
    await expect(writer.append([delta('next')])).rejects.toMatchObject(failed);
    await expect(writer.append(CLOSING)).rejects.toMatchObject(failed);
    await expect(writer.close(FINISHED)).rejects.toMatchObject(failed);
    // Nobody waits for ever: it is ended when its lease runs out.
    const read = chunksOf(await readAll(other, writer.turnId));
    expect(read.slice(0, 2)).toEqual(OPENING);
    expect(await other.get(writer.turnId)).toMatchObject({ outcome: { status: 'lost' } });
  });

  it('fails the writer when the turn itself is gone, and whoever reads is told', async () => {
    const one = await gateways.open({ leaseMs: 1_000 });
    const { log: other } = await gateways.open({ leaseMs: 1_000 });
    for (const first of ['append', 'renew', 'close'] as const) {
      const writer = await beginTurn(one.log);
      const reader = other.read(writer.turnId, 0, NEVER)[Symbol.asyncIterator]();
      await writer.append(OPENING);
      await reader.next();
      const waiting = reader.next();
      waiting.catch(() => undefined);
      await send(one.client, 'FLUSHALL');
      if (first === 'append') await expect(writer.append(CLOSING)).rejects.toMatchObject(failed);
      if (first === 'renew') await expect(writer.renew()).rejects.toMatchObject(failed);
      await expect(writer.close(FINISHED)).rejects.toMatchObject(failed);
      await expect(waiting).rejects.toMatchObject(failed);
      expect(await readAll(other, writer.turnId)).toEqual([]);
      expect(await other.command(writer.turnId, { type: 'stop' })).toBe(false);
      const { turnId } = await beginTurn(one.log);
      expect(turnId).not.toBe(writer.turnId);
    }
  });

  it('fences a writer that slept past its lease: somebody may have had it meanwhile', async () => {
    const one = await gateways.open({ leaseMs: 250 });
    const writer = await beginTurn(one.log);
    await writer.append(OPENING);
    await send(one.client, 'FLUSHALL');
    await sleep(300);
    await expect(writer.append(CLOSING)).rejects.toMatchObject(fenced);
  });

  it('tells whoever reads when what was written is gone', async () => {
    const one = await gateways.open();
    const { log: other } = await gateways.open();
    const writer = await beginTurn(one.log);
    await writer.append(OPENING);
    await send(one.client, 'DEL', createKeys(gateways.prefix).ofTurn(writer.turnId).chunks);
    await expect(readAll(other, writer.turnId)).rejects.toMatchObject(failed);
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    await expect(readAll(other, writer.turnId)).rejects.toMatchObject(failed);
  });

  it('has commands in the place of those it has lost, and they are heard', async () => {
    const one = await gateways.open();
    const { log: other } = await gateways.open();
    const writer = await beginTurn(one.log);
    const heard: string[] = [];
    const listening = (async () => {
      for await (const { reason } of writer.commands() as AsyncIterable<{ reason?: string }>) {
        heard.push(`${reason}`);
      }
    })();
    const say = (reason: string) => other.command(writer.turnId, { type: 'stop', reason });
    await say('first');
    await say('second');
    await until('both are heard', () => heard.length === 2);
    const { commands } = createKeys(gateways.prefix).ofTurn(writer.turnId);
    await send(one.client, 'RPOP', commands);
    await say('third');
    await until('the third is heard', () => heard.length === 3);
    await send(one.client, 'RPOP', commands);
    await writer.close(FINISHED);
    await listening;
    expect(heard).toEqual(['first', 'second', 'third']);
  });

  it('gets it back after a crash that cost it the end of its file', async () => {
    const [log, other] = await gateways.openMany(2, { leaseMs: 5_000 });
    if (!log || !other) throw new Error('unreachable');
    const writer = await beginTurn(log);
    const renewal = keepRenewing(writer);
    const reading = readAll(other, writer.turnId);
    await writer.append(OPENING);
    for (const chunk of deltas(0, 40)) await writer.append([chunk]);
    await server.kill();
    const [file] = globSync(`${server.folder}/appendonlydir/*.incr.aof`);
    if (!file) throw new Error('there is no append-only file');
    truncateSync(file, statSync(file).size - 3_001);
    await server.start();
    await until('it is back', () => log.get(writer.turnId).then(Boolean, () => false));
    expect((await log.get(writer.turnId))?.lastSeq).toBeLessThan(42);
    for (const chunk of deltas(40, 50)) await writer.append([chunk]);
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    renewal.stop();
    const whole = [...OPENING, ...deltas(0, 50), ...CLOSING];
    expect(chunksOf(await reading)).toEqual(whole);
    const { log: late } = await gateways.open();
    expect(chunksOf(await readAll(late, writer.turnId))).toEqual(whole);
  });
});
