/** The part of `turn-log-conformance.ts` that is about readers. */
import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { LoggedChunk, TurnLog } from '../src/turns/log.ts';
import {
  beginTurn,
  CLOSING,
  chunksOf,
  delta,
  NEVER,
  numbersOf,
  OPENING,
  readAll,
  type Suite,
  sleep,
} from './turn-log-helpers.ts';

const NUM_RUNS = Number(process.env.TURN_LOG_RUNS ?? 100);
const listenersOf = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;

/** A reader that dawdles, and perhaps leaves after some batches. */
type Reader = { after: number; startsAt: number; pause: number; leavesAfter: number };

async function readSlowly(log: TurnLog, turnId: string, reader: Reader) {
  const leaving = new AbortController();
  const read: LoggedChunk[] = [];
  let batches = 0;
  for await (const batch of log.read(turnId, reader.after, leaving.signal)) {
    expect(batch.length).toBeGreaterThan(0);
    read.push(...batch);
    if (++batches > reader.leavesAfter) leaving.abort();
    for (let tick = 0; tick < reader.pause; tick++) await Promise.resolve();
  }
  expect(listenersOf(leaving.signal)).toBe(0);
  return { reader, read };
}

export function describeTurnLogReading({ open, shortMs }: Suite): void {
  it('in the numbers it was written in, from 1 and without gaps', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    expect(await writer.append(OPENING)).toBe(2);
    expect(await writer.append([])).toBe(2);
    expect(await writer.append([delta('a'), delta('b'), delta('c')])).toBe(5);
    expect(await writer.append(CLOSING)).toBe(7);
    await writer.close({ status: 'finished' });
    const read = await readAll(log, writer.turnId);
    expect(numbersOf(read)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    // Nothing is merged in the log itself.
    expect(chunksOf(read)).toEqual([...OPENING, delta('a'), delta('b'), delta('c'), ...CLOSING]);
  });

  it('as soon as an append is acknowledged', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    for (let at = 1; at <= 20; at++) {
      const seq = await writer.append([delta(`${at}`)]);
      expect(seq).toBe(at);
      const reader = log.read(writer.turnId, at - 1, NEVER)[Symbol.asyncIterator]();
      expect((await reader.next()).value).toEqual([{ seq, chunk: delta(`${at}`) }]);
      await reader.return?.();
    }
  });

  it('in one batch of what is there, then as it comes', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    for (let at = 1; at <= 10; at++) await writer.append([delta(`${at}`)]);
    const reader = log.read(writer.turnId, 0, NEVER)[Symbol.asyncIterator]();
    const { value: first } = await reader.next();
    expect(first).toHaveLength(10);
    const next = reader.next();
    await writer.append([delta('11'), delta('12')]);
    expect(numbersOf((await next).value ?? [])).toEqual([11, 12]);
    // What was handed out is the reader's own.
    expect(first).toHaveLength(10);
    await reader.return?.();
  });

  it('from anywhere', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    await writer.append([...OPENING, delta('a')]);
    const live = [0, 1, 3, 4, 99].map((after) => readAll(log, writer.turnId, after));
    await writer.append(CLOSING);
    await writer.close({ status: 'finished' });
    const ended = [0, 1, 3, 4, 99].map((after) => readAll(log, writer.turnId, after));
    for (const reads of [live, ended]) {
      expect((await Promise.all(reads)).map(numbersOf)).toEqual([
        [1, 2, 3, 4, 5],
        [2, 3, 4, 5],
        [4, 5],
        [5],
        [],
      ]);
    }
  });

  it('at once to the end, in a turn that is unknown', async () => {
    const log = await open();
    expect(await readAll(log, 'unknown')).toEqual([]);
  });

  it('completely by every reader, whenever each comes and however slow it is', async () => {
    const log = await open({ retentionMs: 0 });
    const reader = fc.record({
      after: fc.nat({ max: 12 }),
      startsAt: fc.nat({ max: 10 }),
      pause: fc.nat({ max: 6 }),
      leavesAfter: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.nat({ max: 4 })),
    });
    const write = fc.record({ count: fc.nat({ max: 5 }), pause: fc.nat({ max: 4 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(write, { maxLength: 10 }),
        fc.array(reader, { maxLength: 6 }),
        async (writes, readers) => {
          const writer = await beginTurn(log);
          const reading: ReturnType<typeof readSlowly>[] = [];
          let last = 0;
          for (const [at, { count, pause }] of [...writes, { count: 1, pause: 0 }].entries()) {
            const isLast = at === writes.length;
            for (const one of readers) {
              const comesNow = one.startsAt === at || (isLast && one.startsAt > at);
              if (comesNow) reading.push(readSlowly(log, writer.turnId, one));
            }
            const chunks = Array.from({ length: count }, (_, of) => delta(`${last + of + 1}`));
            last += count;
            expect(await writer.append(chunks)).toBe(last);
            for (let tick = 0; tick < pause; tick++) await Promise.resolve();
          }
          await writer.close({ status: 'finished' });
          for (const { reader, read } of await Promise.all(reading)) {
            const { after, leavesAfter } = reader;
            const expected = Array.from({ length: Math.max(0, last - after) }, (_, of) => ({
              seq: after + of + 1,
              chunk: delta(`${after + of + 1}`),
            }));
            const hasLeft = leavesAfter < Number.POSITIVE_INFINITY;
            expect(read).toEqual(hasLeft ? expected.slice(0, read.length) : expected);
          }
        },
      ),
      { numRuns: NUM_RUNS },
    );
  });

  it('until the reader leaves, which does not disturb others', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    const leaving = new AbortController();
    const left = readAll(log, writer.turnId, 0, leaving.signal);
    const staying = readAll(log, writer.turnId);
    await sleep(shortMs / 4);
    leaving.abort();
    expect(numbersOf(await left)).toEqual([1, 2]);
    expect(listenersOf(leaving.signal)).toBe(0);
    await writer.append(CLOSING);
    await writer.close({ status: 'finished' });
    expect(numbersOf(await staying)).toEqual([1, 2, 3, 4]);
  });

  it('not at all by one that has left already, though there is something', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    expect(await readAll(log, writer.turnId, 0, AbortSignal.abort())).toEqual([]);
    const leaving = new AbortController();
    const reader = log.read(writer.turnId, 0, leaving.signal)[Symbol.asyncIterator]();
    await reader.next();
    await writer.append(CLOSING);
    leaving.abort();
    expect((await reader.next()).done).toBe(true);
  });

  it('by one that leaves while it waits, without its signal', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const { signal } = new AbortController();
    const reader = log.read(writer.turnId, 0, signal)[Symbol.asyncIterator]();
    const next = reader.next();
    await sleep(shortMs / 4);
    await reader.return?.();
    expect((await next).done).toBe(true);
    expect(listenersOf(signal)).toBe(0);
    expect((await reader.next()).done).toBe(true);
  });

  it('to the end of a turn that is forgotten meanwhile', async () => {
    const log = await open({ retentionMs: 0 });
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    const { signal } = new AbortController();
    const reader = log.read(writer.turnId, 0, signal)[Symbol.asyncIterator]();
    expect(numbersOf((await reader.next()).value ?? [])).toEqual([1, 2]);
    await writer.append(CLOSING);
    await writer.close({ status: 'finished' });
    expect(numbersOf((await reader.next()).value ?? [])).toEqual([3, 4]);
    expect((await reader.next()).done).toBe(true);
    expect(listenersOf(signal)).toBe(0);
  });

  it('no longer when the log is closed', async () => {
    const log = await open();
    if (!log.close) return;
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    const { signal } = new AbortController();
    const reading = readAll(log, writer.turnId, 0, signal);
    const behind = log.read(writer.turnId, 0, signal)[Symbol.asyncIterator]();
    const commands = writer.commands()[Symbol.asyncIterator]().next();
    await sleep(shortMs / 4);
    await log.close();
    expect((await behind.next()).done).toBe(true);
    expect(numbersOf(await reading)).toEqual([1, 2]);
    expect((await commands).done).toBe(true);
    expect(listenersOf(signal)).toBe(0);
  });
}
