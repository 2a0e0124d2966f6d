import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_KINDS } from '../../../test/redis-clients.ts';
import { IF_REDIS, send, until, useGateways } from '../../../test/redis-gateways.ts';
import { hasRedis, type RedisServer, startRedis } from '../../../test/redis-server.ts';
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
import { verifyChunks } from '../../core/verify.ts';
import type { OrphanedTurn, TurnCommand, TurnLog, TurnWriter } from '../log.ts';

const LEASE_MS = 150;
const answer: TurnCommand = { type: 'answer', questionId: 'q', answer: { deep: [1] } };
const stop: TurnCommand = { type: 'stop' };

const fenced = (doing: Promise<unknown>) =>
  expect(doing).rejects.toMatchObject({ code: 'turn-fenced', status: 409 });

async function isFencedForGood(writer: TurnWriter): Promise<void> {
  await fenced(writer.append([delta('late')], 99));
  await fenced(writer.append([]));
  await fenced(writer.renew());
  await fenced(writer.close(FINISHED));
  await fenced(writer.release?.() as Promise<void>);
  for await (const _ of writer.commands()) break;
}

/** Takes whatever comes, and tells of it. */
function adoptAll(log: TurnLog) {
  const adopted: OrphanedTurn[] = [];
  const forget = log.onOrphan(async (orphan) => {
    adopted.push(orphan);
    return true;
  });
  return { adopted, forget };
}

const kinds = describe.skipIf(!hasRedis).each(CLIENT_KINDS);
kinds(`a turn whose gateway is gone, by %s${IF_REDIS}`, (kind) => {
  let server: RedisServer;
  const gateways = useGateways(kind, () => server.port);
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  const openTwo = async () => {
    const [gone, other] = await gateways.openMany(2, { leaseMs: LEASE_MS });
    if (!gone || !other) throw new Error('unreachable');
    return { gone, other };
  };

  it('is not written any more by one that was paused, when another has ended it [RED-02]', async () => {
    const { gone, other } = await openTwo();
    const writer = await beginTurn(gone);
    await writer.append(OPENING);
    await sleep(2 * LEASE_MS);
    expect(await other.get(writer.turnId)).toMatchObject({ outcome: { status: 'lost' } });
    const before = await readAll(other, writer.turnId);
    await isFencedForGood(writer);
    expect(await readAll(other, writer.turnId)).toEqual(before);
    expect(verifyChunks(chunksOf(before))).toEqual([]);
  });

  it.each(['append', 'renew', 'close'] as const)(
    'is one writer’s whenever the paused one wakes up: %s',
    async (first) => {
      const { gone, other } = await openTwo();
      // From well before the lease ends to well after it, against one that notices all the time.
      const pauses = [0.5, 0.9, 0.98, 1, 1.02, 1.1, 1.5].map((part) => part * LEASE_MS);
      const rounds = pauses.map(async (pause) => {
        const writer = await beginTurn(gone, { chatId: `${first} ${pause}` });
        const reading = readAll(other, writer.turnId);
        await writer.append(OPENING);
        await sleep(pause);
        const doing = { append: [delta('x')], renew: [], close: [] as never[] }[first];
        const isKept = await (first === 'close'
          ? writer.close(FINISHED)
          : writer.append(doing)
        ).then(
          () => true,
          () => false,
        );
        if (!isKept) await isFencedForGood(writer);
        else if (first !== 'close') {
          await writer.append(CLOSING);
          await writer.close(FINISHED);
        }
        const read = chunksOf(await reading);
        const { outcome } = (await other.get(writer.turnId)) ?? {};
        return { isKept, outcome, read };
      });
      for (const { isKept, outcome, read } of await Promise.all(rounds)) {
        expect(outcome).toEqual(isKept ? FINISHED : { status: 'lost' });
        const own =
          first === 'append' ? [delta('x'), ...CLOSING] : first === 'renew' ? CLOSING : [];
        if (isKept) expect(read).toEqual([...OPENING, ...own]);
        else expect(verifyChunks(read)).toEqual([]);
      }
    },
  );

  it('is gone on with by one that adopts it, from where it was', async () => {
    const { gone, other } = await openTwo();
    const { adopted } = adoptAll(other);
    const origin = { prompt: 'secret ü', list: [1, { a: null }] };
    const paused = await beginTurn(gone, { origin });
    await paused.append(OPENING, 7);
    await paused.append([delta('a')], 8);
    await gone.command(paused.turnId, answer);
    await gone.command(paused.turnId, stop);
    for await (const command of paused.commands()) {
      expect(command).toEqual(answer);
      break;
    }
    const reading = readAll(other, paused.turnId);
    await until('it is adopted', () => adopted.length > 0);
    const [{ turn, writer, ...orphan }] = adopted as [OrphanedTurn];
    expect(orphan).toEqual({ origin, mark: 8 });
    expect(turn).toMatchObject({ turnId: paused.turnId, lastSeq: 3, chatId: 'c', sessionId: 's' });
    // All that were ever given, also those that the first had heard of.
    const commands: TurnCommand[] = [];
    for await (const command of writer.commands()) {
      if (commands.push(command) === 2) break;
    }
    expect(commands).toEqual([answer, stop]);
    await isFencedForGood(paused);
    expect(await writer.append([delta('b')], 9)).toBe(4);
    const next = { type: 'answer', questionId: 'later', answer: 1 } as const;
    expect(await gone.command(paused.turnId, next)).toBe(true);
    expect(await gone.command(paused.turnId, { ...answer, answer: 2 })).toBe(false);
    for await (const command of writer.commands()) {
      expect(command).toEqual(next);
      break;
    }
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    expect(chunksOf(await reading)).toEqual([...OPENING, delta('a'), delta('b'), ...CLOSING]);
    expect(adopted).toHaveLength(1);
  });

  it('is found without anybody who reads it, also when it never wrote', async () => {
    const { gone, other } = await openTwo();
    const silent = await beginTurn(gone);
    const { adopted } = adoptAll(other);
    await until('it is found', () => adopted.length > 0);
    expect(adopted[0]).toMatchObject({
      origin: null,
      mark: 0,
      turn: { turnId: silent.turnId, lastSeq: 0 },
    });
    await isFencedForGood(silent);
  });

  it('is adopted again when the one that adopted it is gone too', async () => {
    const { gone, other } = await openTwo();
    const { turnId } = await beginTurn(gone, { origin: 'first' });
    const { adopted } = adoptAll(other);
    await until('it is adopted twice', () => adopted.length > 1);
    expect(adopted.map(({ turn, origin }) => [turn.turnId, origin])).toEqual(
      adopted.map(() => [turnId, 'first']),
    );
    await isFencedForGood(adopted[0]?.writer as TurnWriter);
  });

  it('is adopted by one of several that notice at once', async () => {
    const [gone, ...others] = await gateways.openMany(4, { leaseMs: LEASE_MS });
    const all = others.map((log) => {
      const adopted: OrphanedTurn[] = [];
      log.onOrphan(async (orphan) => {
        adopted.push(orphan);
        await orphan.writer.append(CLOSING.slice(1));
        await orphan.writer.close(FINISHED);
        return true;
      });
      return adopted;
    });
    const writers = await Promise.all([1, 2, 3, 4, 5].map(() => beginTurn(gone as TurnLog)));
    const reads = writers.flatMap(({ turnId }) => others.map((log) => readAll(log, turnId)));
    for (const read of await Promise.all(reads)) expect(chunksOf(read)).toEqual(CLOSING.slice(1));
    const ids = all.flat().map(({ turn }) => turn.turnId);
    expect(ids.sort()).toEqual(writers.map(({ turnId }) => turnId).sort());
  });

  it('is taken at once when it is given up', async () => {
    const [gone, other] = await gateways.openMany(2, { leaseMs: 20_000 });
    if (!gone || !other) throw new Error('unreachable');
    const { adopted } = adoptAll(other);
    const writer = await beginTurn(gone, { origin: 1 });
    await writer.append(OPENING, 3);
    // It may not listen yet: then it would see it only when it looks.
    await sleep(100);
    await writer.release?.();
    await until('it is taken', () => adopted.length > 0, 5_000);
    expect(adopted[0]).toMatchObject({ origin: 1, mark: 3, turn: { lastSeq: 2 } });
    await isFencedForGood(writer);
    const closing = await beginTurn(gone, { origin: 2 });
    await gone.close();
    await until('it is taken when the log is closed', () => adopted.length > 1, 5_000);
    expect(adopted[1]?.turn.turnId).toBe(closing.turnId);
    await isFencedForGood(closing);
  });

  it.each<[string, () => Promise<boolean>]>([
    ['does not want it', async () => false],
    ['throws', () => Promise.reject(new Error('no'))],
  ])('is lost when whoever is asked %s', async (_why, adopt) => {
    const { gone, other } = await openTwo();
    let asked = 0;
    other.onOrphan(() => {
      asked++;
      return adopt();
    });
    const writer = await beginTurn(gone);
    await writer.append(OPENING);
    const read = chunksOf(await readAll(gone, writer.turnId));
    expect(read).toContainEqual({ type: 'message-metadata', messageMetadata: { outcome: 'lost' } });
    expect(verifyChunks(read)).toEqual([]);
    expect(await other.get(writer.turnId)).toMatchObject({ outcome: { status: 'lost' } });
    expect(asked).toBeLessThanOrEqual(1);
  });

  it('is left to others by one that takes its word back in that very moment', async () => {
    const { gone, other } = await openTwo();
    let hasLeft = false;
    const forget = other.onOrphan(async () => {
      forget();
      hasLeft = true;
      return false;
    });
    const { turnId } = await beginTurn(gone);
    await until('it is offered', () => hasLeft);
    const { log: third } = await gateways.open({ leaseMs: LEASE_MS });
    const { adopted } = adoptAll(third);
    await until('another takes it', () => adopted.some(({ turn }) => turn.turnId === turnId));
    expect((await third.get(turnId))?.outcome).toBeUndefined();
  });

  it('is left to others by one that has taken its word back', async () => {
    const { gone, other } = await openTwo();
    const { adopted, forget } = adoptAll(other);
    forget();
    const { turnId } = await beginTurn(gone);
    await sleep(2 * LEASE_MS);
    expect((await other.get(turnId))?.outcome).toBeUndefined();
    expect(adopted).toEqual([]);
    const { log: third } = await gateways.open({ leaseMs: LEASE_MS });
    const { adopted: there } = adoptAll(third);
    await until('another takes it', () => there.some(({ turn }) => turn.turnId === turnId));
    expect(adopted).toEqual([]);
  });

  it('is looked after though another cannot be', async () => {
    const { gone, other } = await openTwo();
    const broken = await beginTurn(gone);
    const { client } = await gateways.open();
    const key = `${gateways.prefix}:{${broken.turnId.slice(0, 2)}}:turn:${broken.turnId}`;
    await send(client, 'HSET', key, 'origin', 'not JSON');
    await sleep(20);
    const { turnId } = await beginTurn(gone);
    const { adopted } = adoptAll(other);
    await until('the sound one is adopted', () =>
      adopted.some(({ turn }) => turn.turnId === turnId),
    );
  });

  it('is looked after though whoever adopts another takes its time', async () => {
    const { gone, other } = await openTwo();
    const slow = await beginTurn(gone);
    const seen: string[] = [];
    other.onOrphan(async ({ turn }) => {
      seen.push(turn.turnId);
      if (turn.turnId === slow.turnId) await sleep(3_000);
      return true;
    });
    await until('the slow one is being adopted', () => seen.includes(slow.turnId));
    const { turnId } = await beginTurn(gone);
    await until('the other is adopted', () => seen.includes(turnId), 2_500);
  });
});
