import { describe, expect, it } from 'vitest';
import { describeTurnLog } from '../../test/turn-log-conformance.ts';
import {
  beginTurn,
  CLOSING,
  delta,
  FINISHED,
  NEVER,
  numbersOf,
  OPENING,
  readAll,
  request,
  sleep,
} from '../../test/turn-log-helpers.ts';
import type { LoggedChunk } from './log.ts';
import { memoryTurnLog } from './memory.ts';

describeTurnLog('memory', memoryTurnLog);

const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

function collectGarbage(): number {
  for (let round = 0; round < 3; round++) globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

describe('memory', () => {
  it('does not keep the process alive, live turn or retained', async () => {
    const before = timers();
    const log = memoryTurnLog();
    await beginTurn(log);
    const ended = await beginTurn(log);
    await ended.close(FINISHED);
    expect(timers()).toBe(before);
    await log.close();
  });

  it('is free after retention', async () => {
    const log = memoryTurnLog({ retentionMs: 0, maxTurnBytes: Number.POSITIVE_INFINITY });
    const fill = async () => {
      for (let turn = 0; turn < 20; turn++) {
        const writer = await beginTurn(log);
        const reading = readAll(log, writer.turnId);
        await writer.append(OPENING);
        for (let at = 0; at < 200; at++) {
          await writer.append(Array.from({ length: 50 }, () => delta(`${at}`)));
        }
        await writer.append(CLOSING);
        await writer.close(FINISHED);
        await reading;
      }
    };
    await fill();
    // What else happens in this process may grow the heap once; what is kept grows it every time.
    let grown = Infinity;
    for (let tries = 0; tries < 4 && grown >= 1_000_000; tries++) {
      const before = collectGarbage();
      await fill();
      await fill();
      grown = collectGarbage() - before;
    }
    expect(grown).toBeLessThan(1_000_000);
  });

  it('lets go of what a turn said when it is forgotten, though a reader is still around', async () => {
    const log = memoryTurnLog({ retentionMs: 10 });
    const reader = await (async () => {
      const writer = await beginTurn(log);
      await writer.append([delta('x')]);
      await writer.close(FINISHED);
      return log.read(writer.turnId, 0, NEVER)[Symbol.asyncIterator]();
    })();
    const said = await (async () => {
      const [logged] = (await reader.next()).value as [LoggedChunk];
      return new WeakRef(logged);
    })();
    expect((await reader.next()).done).toBe(true);
    await sleep(40);
    collectGarbage();
    expect(said.deref()).toBeUndefined();
    expect((await reader.next()).done).toBe(true);
  });

  it('hands the same batch to all who wait at the same place', async () => {
    const log = memoryTurnLog();
    const writer = await beginTurn(log);
    const readers = [1, 2, 3].map(() => log.read(writer.turnId, 0, NEVER)[Symbol.asyncIterator]());
    const nexts = readers.map((reader) => reader.next());
    await writer.append(OPENING);
    const [first, ...others] = await Promise.all(nexts);
    for (const other of others) expect(other.value).toBe(first?.value);
    await writer.append(CLOSING);
    expect(first?.value).toHaveLength(2);
    await log.close();
  });

  it('gives two who ask one reader at once what follows each other', async () => {
    const log = memoryTurnLog();
    const writer = await beginTurn(log);
    const reader = log.read(writer.turnId, 0, NEVER)[Symbol.asyncIterator]();
    const nexts = [reader.next(), reader.next(), reader.next()];
    await writer.append([delta('a')]);
    await writer.append([delta('b')]);
    await writer.close(FINISHED);
    const results = await Promise.all(nexts);
    expect(results.map(({ value = [] }) => numbersOf(value))).toEqual([[1], [2], []]);
  });

  it('sets one timer a turn, however often it is written to', async () => {
    const set = globalThis.setTimeout;
    let count = 0;
    globalThis.setTimeout = ((...args: Parameters<typeof set>) => {
      count++;
      return set(...args);
    }) as typeof set;
    try {
      const log = memoryTurnLog();
      const writer = await beginTurn(log);
      for (let at = 0; at < 1_000; at++) await writer.append([delta('x')]);
      expect(count).toBe(1);
      await writer.close(FINISHED);
      expect(count).toBe(2);
      await log.close();
    } finally {
      globalThis.setTimeout = set;
    }
  });

  it('goes by the clocks it is given, whenever its timers run', async () => {
    let time = 1_000;
    const log = memoryTurnLog({ now: () => time, elapsed: () => time });
    const writer = await beginTurn(log);
    const lost = await beginTurn(log);
    time += 20_000;
    await writer.renew();
    time += 20_000;
    expect(await log.get(lost.turnId)).toMatchObject({
      outcome: { status: 'lost' },
      endedAt: time,
    });
    const same = await log.get(writer.turnId);
    expect(same).toMatchObject({ startedAt: 1_000 });
    await writer.close(FINISHED);
    time += 59_999;
    expect(await log.get(writer.turnId)).toBeDefined();
    time += 1;
    expect(await log.get(writer.turnId)).toBeUndefined();
    await log.close();
  });

  it('forgets for good: what a forgotten request asks is asked anew', async () => {
    const log = memoryTurnLog({ retentionMs: 0 });
    const same = request();
    await (await beginTurn(log, same)).close(FINISHED);
    expect(await log.begin(same)).toHaveProperty('writer');
    await log.close();
  });

  it('goes back to an older turn of the chat when the latest is forgotten first', async () => {
    const log = memoryTurnLog({ retentionMs: 0 });
    const older = await beginTurn(log);
    const newer = await beginTurn(log);
    await newer.close(FINISHED);
    expect((await log.latest('s', 'c'))?.turnId).toBe(older.turnId);
    await log.close();
  });

  it('takes no turn once it is closed', async () => {
    const log = memoryTurnLog();
    const writer = await beginTurn(log);
    await log.close();
    await expect(log.begin(request())).rejects.toMatchObject({ code: 'shutting-down' });
    await expect(writer.append(OPENING)).rejects.toMatchObject({ code: 'turn-fenced' });
    expect(await log.get(writer.turnId)).toBeUndefined();
  });

  it('stores nothing of an append that cannot be written as JSON', async () => {
    const log = memoryTurnLog();
    const writer = await beginTurn(log);
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    await expect(writer.append([delta('a'), { type: 'data-x', data: cycle }])).rejects.toThrow();
    expect(await writer.append([delta('b')])).toBe(1);
    await log.close();
  });
});
