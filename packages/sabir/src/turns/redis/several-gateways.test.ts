import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_KINDS } from '../../../test/redis-clients.ts';
import { IF_REDIS, until, useGateways } from '../../../test/redis-gateways.ts';
import { hasRedis, type RedisServer, startRedis } from '../../../test/redis-server.ts';
import {
  beginTurn,
  CLOSING,
  chunksOf,
  delta,
  FINISHED,
  numbersOf,
  OPENING,
  readAll,
  request,
  sleep,
  WHOLE_TURN,
} from '../../../test/turn-log-helpers.ts';
import type { TurnCommand, TurnWriter } from '../log.ts';

const stop: TurnCommand = { type: 'stop', reason: 'asked' };
const answer = (questionId: string, given: unknown): TurnCommand => ({
  type: 'answer',
  questionId,
  answer: given,
});

describe.skipIf(!hasRedis).each(CLIENT_KINDS)(
  `gateways that share a Redis, by %s${IF_REDIS}`,
  (kind) => {
    let server: RedisServer;
    const gateways = useGateways(kind, () => server.port);
    beforeAll(async () => {
      server = await startRedis();
    });
    afterAll(() => server?.stop());

    async function receive(writer: TurnWriter, count: number): Promise<TurnCommand[]> {
      const received: TurnCommand[] = [];
      for await (const command of writer.commands()) {
        received.push(command);
        if (received.length === count) break;
      }
      return received;
    }

    it('read each other’s turns, live and late and from anywhere', async () => {
      const [writing, reading, late] = await gateways.openMany(3);
      if (!writing || !reading || !late) throw new Error('unreachable');
      const writer = await beginTurn(writing);
      const live = [0, 1, 2].map((after) => readAll(reading, writer.turnId, after));
      await writer.append(OPENING);
      for (let at = 0; at < 50; at++) await writer.append([delta(`${at}`)]);
      const joined = [0, 25, 52].map((after) => readAll(late, writer.turnId, after));
      await writer.append(CLOSING);
      await writer.close(FINISHED);
      const after = [0, 53].map((from) => readAll(late, writer.turnId, from));
      const all = Array.from({ length: 54 }, (_, at) => at + 1);
      const starts = [0, 1, 2, 0, 25, 52, 0, 53];
      const reads = await Promise.all([...live, ...joined, ...after]);
      expect(reads.map(numbersOf)).toEqual(starts.map((from) => all.slice(from)));
      const text = chunksOf(reads[0] ?? []).flatMap((chunk) =>
        chunk.type === 'text-delta' ? [chunk.delta] : [],
      );
      expect(text).toEqual(Array.from({ length: 50 }, (_, at) => `${at}`));
    });

    it('hear of what is new at once, not only when they look', async () => {
      // They would look again when the lease runs out.
      const [writing, reading] = await gateways.openMany(2, { leaseMs: 60_000 });
      if (!writing || !reading) throw new Error('unreachable');
      const writer = await beginTurn(writing);
      await writer.append(OPENING);
      const reader = reading.read(writer.turnId, 0, new AbortController().signal);
      const batches = reader[Symbol.asyncIterator]();
      await batches.next();
      for (let at = 0; at < 20; at++) {
        const next = batches.next();
        await writer.append([delta(`${at}`)]);
        expect((await next).value).toEqual([{ seq: at + 3, chunk: delta(`${at}`) }]);
      }
      const end = batches.next();
      await writer.close(FINISHED);
      expect((await end).done).toBe(true);
    });

    it('tell the writer what is asked of it anywhere, once and in order [RED-03]', async () => {
      const [writing, ...others] = await gateways.openMany(3, { leaseMs: 60_000 });
      if (!writing) throw new Error('unreachable');
      const writer = await beginTurn(writing);
      const received = receive(writer, 6);
      const given: TurnCommand[] = [];
      for (let at = 0; at < 5; at++) {
        const command = answer(`q${at}`, at);
        expect(await others[at % 2]?.command(writer.turnId, command)).toBe(true);
        given.push(command);
      }
      expect(await others[1]?.command(writer.turnId, stop)).toBe(true);
      expect(await received).toEqual([...given, stop]);
    });

    it('tell a writer that ends what was said yes to, and nobody anything after that', async () => {
      const [writing, other] = await gateways.openMany(2);
      if (!writing || !other) throw new Error('unreachable');
      for (let round = 0; round < 10; round++) {
        const writer = await beginTurn(writing);
        await writer.append(WHOLE_TURN);
        const [isTaken] = await Promise.all([
          other.command(writer.turnId, stop),
          writer.close(FINISHED),
        ]);
        const received: TurnCommand[] = [];
        for await (const command of writer.commands()) received.push(command);
        expect(received).toEqual(isTaken ? [stop] : []);
        expect(await other.command(writer.turnId, stop)).toBe(false);
      }
    });

    it('take the first answer, wherever it is given [RED-03]', async () => {
      const logs = await gateways.openMany(4);
      const [writing] = logs;
      if (!writing) throw new Error('unreachable');
      const writer = await beginTurn(writing);
      for (const question of ['q', '', 'ü "q" {x}']) {
        const taken = await Promise.all(
          logs.map((log, at) => log.command(writer.turnId, answer(question, at))),
        );
        expect(taken.filter(Boolean)).toHaveLength(1);
        const [received] = await receive(writer, 1);
        expect(received).toEqual(answer(question, taken.indexOf(true)));
        expect(await writing.command(writer.turnId, answer(question, 'late'))).toBe(false);
      }
    });

    it('begin a turn once, however many are asked at once', async () => {
      const logs = await gateways.openMany(5);
      for (let round = 0; round < 5; round++) {
        const same = request();
        const begun = await Promise.all([...logs, ...logs].map((log) => log.begin(same)));
        const ids = begun.map((one) => ('writer' in one ? one.writer.turnId : one.existing.turnId));
        expect(new Set(ids).size).toBe(1);
        expect(begun.filter((one) => 'writer' in one)).toHaveLength(1);
      }
    });

    it('begin it anew once, when the first one’s writer has gone', async () => {
      const logs = await gateways.openMany(4, { leaseMs: 100 });
      const [first] = logs;
      if (!first) throw new Error('unreachable');
      const same = request();
      const gone = await beginTurn(first, same);
      await gone.append(OPENING);
      await sleep(250);
      const begun = await Promise.all(logs.map((log) => log.begin(same)));
      const writers = begun.flatMap((one) => ('writer' in one ? [one.writer.turnId] : []));
      // Some may still see the old one being ended by somebody else.
      expect(writers.length).toBeLessThanOrEqual(1);
      await until(
        'the lost one is ended',
        async () => (await first.get(gone.turnId))?.outcome !== undefined,
      );
      expect(await first.get(gone.turnId)).toMatchObject({ outcome: { status: 'lost' } });
    });

    it('know each other’s turns: the latest, and all that are live', async () => {
      const [one, other] = await gateways.openMany(2);
      if (!one || !other) throw new Error('unreachable');
      const first = await beginTurn(one, { chatId: 'known' });
      const second = await beginTurn(other, { chatId: 'known' });
      const third = await beginTurn(one, { chatId: 'known' });
      expect(await other.latest('s', 'known')).toMatchObject({ turnId: third.turnId });
      const idsOf = async () => (await other.live('s', 'known')).map(({ turnId }) => turnId);
      expect(await idsOf()).toEqual([first.turnId, second.turnId, third.turnId]);
      await third.append(WHOLE_TURN);
      await third.close(FINISHED);
      expect(await idsOf()).toEqual([first.turnId, second.turnId]);
      expect(await other.latest('s', 'known')).toMatchObject({ outcome: FINISHED, lastSeq: 5 });
      expect(await other.get(first.turnId)).toMatchObject({ lastSeq: 0, chatId: 'known' });
    });

    it('know whether another one reads', async () => {
      const [one, other] = await gateways.openMany(2, { leaseMs: 600 });
      if (!one || !other) throw new Error('unreachable');
      const writer = await beginTurn(one);
      await writer.append(OPENING);
      const own = new AbortController();
      const ownReading = readAll(one, writer.turnId, 0, own.signal);
      const leaving = new AbortController();
      const reading = readAll(other, writer.turnId, 0, leaving.signal);
      await until('the other is seen', () => one.isReadElsewhere(writer.turnId));
      expect(await other.isReadElsewhere(writer.turnId)).toBe(true);
      // It is seen for as long as it reads, though nothing is written for longer than its entry lasts: two leases.
      for (let beat = 0; beat < 28; beat++) {
        await sleep(50);
        await writer.renew();
        expect(await one.isReadElsewhere(writer.turnId)).toBe(true);
      }
      leaving.abort();
      await reading;
      const renewing = setInterval(() => void writer.renew().catch(() => undefined), 50);
      try {
        await until('the other has left', async () => !(await one.isReadElsewhere(writer.turnId)));
        expect(await other.isReadElsewhere(writer.turnId)).toBe(true);
      } finally {
        clearInterval(renewing);
      }
      own.abort();
      await ownReading;
    });
  },
);
