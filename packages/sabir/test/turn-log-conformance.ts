/**
 * What every `TurnLog` is held to: each MUST and MUST NOT above the interface in
 * `src/turns/log.ts`. Runs in real time, with leases and retention times that are short.
 */
import { afterEach, describe, expect, it } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import type { TurnOutcome } from '../src/core/outcome.ts';
import { verifyChunks } from '../src/core/verify.ts';
import type { TurnInfo, TurnLog } from '../src/turns/log.ts';
import { describeBeginnings } from './turn-log-beginnings.ts';
import { describeTurnLogCommands } from './turn-log-commands.ts';
import {
  beginTurn,
  CLOSING,
  type CreateTurnLog,
  chunksOf,
  delta,
  FINISHED,
  numbersOf,
  OPENING,
  readAll,
  request,
  type Suite,
  sleep,
  type TurnLogOptions,
  WHOLE_TURN,
} from './turn-log-helpers.ts';
import { describeNamedTurns } from './turn-log-named.ts';
import { describeTurnLogProgress } from './turn-log-progress.ts';
import { describeTurnLogReading } from './turn-log-reading.ts';
import { describeStoring } from './turn-log-storing.ts';

const fenced = (doing: Promise<unknown>) =>
  expect(doing).rejects.toMatchObject({ code: 'turn-fenced' });

export function describeTurnLog(
  name: string,
  create: CreateTurnLog,
  { shortMs = 100 }: { shortMs?: number } = {},
): void {
  const opened: TurnLog[] = [];
  const open = async (options: TurnLogOptions = {}) => {
    const log = await create(options);
    opened.push(log);
    return log;
  };
  const suite: Suite = { open, shortMs };

  describe(`${name} as a turn log`, () => {
    afterEach(async () => {
      for (const log of opened.splice(0)) await log.close();
    });
    describe('begins turns', () => describeBeginning(suite));
    describe('tells that a turn has begun', () => describeBeginnings(suite));
    describe('names a turn before it begins', () => describeNamedTurns(suite));
    describe('is read', () => describeTurnLogReading(suite));
    describe('holds a turn to one writer', () => describeLease(suite));
    describe('carries commands', () => describeTurnLogCommands(suite));
    describe('tells where a turn stands', () => describeTurnLogProgress(suite));
    describe('stores what follows from a turn', () => describeStoring(suite));
    describe('has bounds', () => describeBounds(suite));
  });
}

function describeBeginning({ open, shortMs }: Suite): void {
  it('once for fifty requests at once that are the same', async () => {
    const log = await open();
    const same = request();
    const begun = await Promise.all(Array.from({ length: 50 }, () => log.begin(same)));
    const writers = begun.flatMap((one) => ('writer' in one ? [one.writer] : []));
    expect(writers).toHaveLength(1);
    const ids = begun.map((one) => ('writer' in one ? one.writer.turnId : one.existing.turnId));
    expect(new Set(ids).size).toBe(1);
  });

  it('and tells of one that is live', async () => {
    const log = await open();
    const same = request();
    const before = Date.now();
    const writer = await beginTurn(log, same);
    const { turnId } = writer;
    await writer.append(OPENING);
    const expected: TurnInfo = {
      ...same,
      turnId,
      lastSeq: 2,
      startedAt: expect.any(Number),
      status: 'running',
      questions: [],
      sourceMessageId: 'm',
    };
    const again = (await log.begin(same)) as { existing: TurnInfo };
    expect(again.existing).toEqual(expected);
    expect(await log.get(turnId)).toEqual(expected);
    expect(await log.latest('s', 'c')).toEqual(expected);
    expect(Math.abs(again.existing.startedAt - before)).toBeLessThan(10_000);
  });

  it.each<TurnOutcome>([
    { status: 'finished', finishReason: 'stop', usage: { inputTokens: 1 } },
    { status: 'paused' },
  ])('and gives one that was $status a moment ago', async (outcome) => {
    const log = await open();
    const same = request();
    const writer = await beginTurn(log, same);
    await writer.append(WHOLE_TURN);
    await writer.close(outcome);
    const again = (await log.begin(same)) as { existing: TurnInfo };
    expect(again.existing).toMatchObject({ turnId: writer.turnId, lastSeq: 5, outcome });
    expect(again.existing.endedAt).toBeGreaterThanOrEqual(again.existing.startedAt);
  });

  it('anew when the moment is over', async () => {
    const log = await open({ dedupeMs: shortMs });
    const same = request();
    const writer = await beginTurn(log, same);
    await writer.append(WHOLE_TURN);
    await writer.close(FINISHED);
    await sleep(2 * shortMs);
    const { turnId } = await beginTurn(log, same);
    expect(turnId).not.toBe(writer.turnId);
    expect((await log.latest('s', 'c'))?.turnId).toBe(turnId);
    expect(await readAll(log, writer.turnId)).toHaveLength(5);
  });

  it.each<TurnOutcome>([
    { status: 'failed', code: 'run-failed' },
    { status: 'stopped', reason: 'asked' },
  ])('anew after one that $status', async (outcome) => {
    const log = await open();
    const same = request();
    const writer = await beginTurn(log, same);
    await writer.append(WHOLE_TURN);
    await writer.close(outcome);
    expect(await log.get(writer.turnId)).toMatchObject({ outcome });
    expect((await beginTurn(log, same)).turnId).not.toBe(writer.turnId);
  });

  it.each<TurnOutcome>([
    { status: 'failed', code: 'run-failed' },
    { status: 'stopped', reason: 'asked' },
  ])('not anew after one that $status, if the client only repeats itself', async (outcome) => {
    const log = await open({ dedupeMs: 1 });
    const same = request();
    const writer = await beginTurn(log, same);
    await writer.append(WHOLE_TURN);
    await writer.close(outcome);
    await sleep(5);
    const again = (await log.begin({ ...same, isRepeat: true })) as { existing: TurnInfo };
    expect(again.existing).toMatchObject({ turnId: writer.turnId, outcome });
    expect(await log.begin({ ...request(), isRepeat: true })).toHaveProperty('writer');
    expect(await log.begin(same)).toHaveProperty('writer');
  });

  it('anew after one that was lost', async () => {
    const log = await open({ leaseMs: shortMs });
    const same = request();
    const writer = await beginTurn(log, same);
    await sleep(2 * shortMs);
    expect((await beginTurn(log, same)).turnId).not.toBe(writer.turnId);
  });

  it('beside one that is live, which can still be read', async () => {
    const log = await open();
    const first = await beginTurn(log);
    const second = await beginTurn(log);
    expect((await log.latest('s', 'c'))?.turnId).toBe(second.turnId);
    const reading = readAll(log, first.turnId);
    await second.append(OPENING);
    await first.append(WHOLE_TURN);
    await first.close(FINISHED);
    expect(chunksOf(await reading)).toEqual(WHOLE_TURN);
    expect((await log.latest('s', 'c'))?.turnId).toBe(second.turnId);
  });

  it('under session and chat, never under one of them', async () => {
    const log = await open();
    const places = [
      ['a', 'b'],
      ['a', 'c'],
      ['c', 'b'],
      ['', 'ab'],
      ['a:b', 'c'],
      ['a', 'b:c'],
      ['a","b', 'c'],
      ['a\0b', 'c'],
      ['a', 'b\0c'],
    ] as const;
    const ids = new Set<string>();
    for (const [sessionId, chatId] of places) {
      expect(await log.latest(sessionId, chatId)).toBeUndefined();
      const { turnId } = await beginTurn(log, { sessionId, chatId, requestId: 'same' });
      expect(await log.latest(sessionId, chatId)).toMatchObject({ turnId, sessionId, chatId });
      ids.add(turnId);
    }
    expect(ids.size).toBe(places.length);
    expect(await log.latest('elsewhere', 'b')).toBeUndefined();
  });

  it('and tells who asked for it', async () => {
    const log = await open();
    const { turnId } = await beginTurn(log, { userId: 'carl' });
    expect((await log.get(turnId))?.userId).toBe('carl');
    const other = await beginTurn(log);
    expect(await log.get(other.turnId)).not.toHaveProperty('userId');
  });

  it('and tells which of a chat have ended and are retained, in the order they began', async () => {
    const log = await open();
    const [first, second, live] = [
      await beginTurn(log),
      await beginTurn(log),
      await beginTurn(log),
    ];
    const elsewhere = await beginTurn(log, { chatId: 'other' });
    expect(await log.ended('s', 'c', 9)).toEqual([]);
    for (const writer of [second, elsewhere, first]) {
      await writer.append(WHOLE_TURN);
      await writer.close(FINISHED);
    }
    const ended = await log.ended('s', 'c', 9);
    expect(ended.map(({ turnId }) => turnId)).toEqual([first.turnId, second.turnId]);
    // Redis tells the end by how long ago it was: it may differ by a millisecond.
    const endedAt = expect.any(Number);
    expect(ended[0]).toEqual({ ...(await log.get(first.turnId)), endedAt });
    const [last, ...others] = await log.ended('s', 'c', 2);
    expect([last?.turnId, others]).toEqual([second.turnId, []]);
    expect((await log.live('s', 'c')).map(({ turnId }) => turnId)).toEqual([live.turnId]);
    expect(await log.ended('s', 'unknown', 9)).toEqual([]);
  });

  it('and tells which of a chat are live, the oldest first', async () => {
    const log = await open();
    if (!log.live) return;
    const [first, second, third] = [
      await beginTurn(log),
      await beginTurn(log),
      await beginTurn(log),
    ];
    await beginTurn(log, { chatId: 'other' });
    await second.append(WHOLE_TURN);
    await second.close(FINISHED);
    const live = await log.live('s', 'c');
    expect(live.map(({ turnId }) => turnId)).toEqual([first.turnId, third.turnId]);
    expect(await log.live('elsewhere', 'c')).toEqual([]);
  });

  it('under ids that nobody guesses', async () => {
    const log = await open();
    const writers = await Promise.all(Array.from({ length: 20 }, () => beginTurn(log)));
    expect(new Set(writers.map(({ turnId }) => turnId)).size).toBe(20);
    for (const { turnId } of writers) expect(turnId).toMatch(/^[\w-]{16,}$/);
  });
}

function describeLease({ open, shortMs }: Suite): void {
  it('for as long as it writes, or says that it is there', async () => {
    const log = await open({ leaseMs: 3 * shortMs });
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    for (let beat = 0; beat < 8; beat++) {
      await sleep(shortMs);
      if (beat % 2) await writer.renew();
      else await writer.append([delta(`${beat}`)]);
    }
    expect(await log.get(writer.turnId)).not.toHaveProperty('outcome');
    await writer.close(FINISHED);
  });

  it('and ends one whose writer has gone, for those who wait', async () => {
    const log = await open({ leaseMs: shortMs });
    const writer = await beginTurn(log);
    const call = { toolCallId: 'c', toolName: 'x' };
    await writer.append([...OPENING, { type: 'tool-input-available', ...call, input: 1 }]);
    const read = await readAll(log, writer.turnId);
    expect(chunksOf(read).slice(3)).toEqual([
      { type: 'text-end', id: 't' },
      { type: 'tool-output-error', toolCallId: 'c', errorText: expect.any(String) },
      { type: 'message-metadata', messageMetadata: { outcome: 'lost' } },
      { type: 'error', errorText: expect.any(String) },
      { type: 'finish', finishReason: 'error' },
    ]);
    expect(verifyChunks(chunksOf(read))).toEqual([]);
    expect(numbersOf(read)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await log.get(writer.turnId)).toMatchObject({
      lastSeq: 8,
      outcome: { status: 'lost' },
      endedAt: expect.any(Number),
    });
  });

  it.each<[string, (log: TurnLog, turnId: string) => Promise<unknown>]>([
    ['looks for the turn', (log, turnId) => log.get(turnId)],
    ['looks for the chat', (log) => log.latest('s', 'c')],
    ['reads', (log, turnId) => readAll(log, turnId)],
    ['sends a command', (log, turnId) => log.command(turnId, { type: 'stop' })],
    ['begins another', (log) => log.begin(request())],
  ])('and ends one whose writer has gone, for whoever %s', async (_who, look) => {
    const log = await open({ leaseMs: shortMs });
    const { turnId } = await beginTurn(log);
    await sleep(2 * shortMs);
    await look(log, turnId);
    expect(await log.get(turnId)).toMatchObject({ outcome: { status: 'lost' } });
    const read = chunksOf(await readAll(log, turnId));
    expect(read[0]).toEqual({ type: 'start', messageId: 'm' });
    expect(verifyChunks(read)).toEqual([]);
  });

  it('and adds nothing to a lost turn that had said all', async () => {
    const log = await open({ leaseMs: shortMs });
    const writer = await beginTurn(log);
    await writer.append(WHOLE_TURN);
    expect(chunksOf(await readAll(log, writer.turnId))).toEqual(WHOLE_TURN);
  });

  it('and keeps nothing of one that has lost it', async () => {
    const log = await open({ leaseMs: shortMs });
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    await sleep(2 * shortMs);
    await fenced(writer.append([delta('late')]));
    await fenced(writer.renew());
    await fenced(writer.close(FINISHED));
    await fenced(writer.append(CLOSING));
    expect(await log.get(writer.turnId)).toMatchObject({ outcome: { status: 'lost' } });
    const read = await readAll(log, writer.turnId);
    expect(chunksOf(read)).not.toContainEqual(delta('late'));
    expect(verifyChunks(chunksOf(read))).toEqual([]);
  });

  it('until it closes it, once', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    await writer.append(WHOLE_TURN);
    await writer.close(FINISHED);
    await writer.close({ status: 'stopped' });
    await fenced(writer.append([delta('late')]));
    expect(await log.get(writer.turnId)).toMatchObject({ lastSeq: 5, outcome: FINISHED });
    expect(await readAll(log, writer.turnId)).toHaveLength(5);
  });
}

function describeBounds({ open, shortMs }: Suite): void {
  it('and refuses what makes a turn too large, but takes what closes it', async () => {
    const log = await open({ maxTurnBytes: 2_000 });
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    const large = [delta('a'), delta('b'.repeat(2_000))];
    await expect(writer.append(large)).rejects.toMatchObject({ code: 'turn-too-large' });
    const closings: Chunk[] = [
      { type: 'text-end', id: 't' },
      { type: 'message-metadata', messageMetadata: { outcome: 'failed', note: 'x'.repeat(2_000) } },
      { type: 'error', errorText: 'too large' },
      { type: 'finish', finishReason: 'error' },
    ];
    expect(await writer.append(closings)).toBe(6);
    await writer.close({ status: 'failed', code: 'turn-too-large' });
    // Nothing of the refused append is there, not even what would have fitted.
    expect(chunksOf(await readAll(log, writer.turnId))).toEqual([...OPENING, ...closings]);
  });

  it('and refuses by the sum of what was written', async () => {
    const log = await open({ maxTurnBytes: 10_000 });
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    const write = async () => {
      for (let at = 0; at < 100; at++) await writer.append([delta('x'.repeat(500))]);
    };
    await expect(write()).rejects.toMatchObject({ code: 'turn-too-large' });
    const { lastSeq = 0 } = (await log.get(writer.turnId)) ?? {};
    expect(lastSeq).toBeGreaterThan(8);
    expect(lastSeq).toBeLessThan(23);
  });

  it('and forgets an ended turn when its time is over', async () => {
    const log = await open({ retentionMs: 2 * shortMs });
    const live = await beginTurn(log);
    const ended = await beginTurn(log, { chatId: 'other' });
    await ended.append(WHOLE_TURN);
    await ended.close(FINISHED);
    expect(await readAll(log, ended.turnId)).toHaveLength(5);
    await sleep(4 * shortMs);
    expect(await log.get(ended.turnId)).toBeUndefined();
    expect(await log.latest('s', 'other')).toBeUndefined();
    expect(await log.ended('s', 'other', 9)).toEqual([]);
    expect(await readAll(log, ended.turnId)).toEqual([]);
    expect(await log.get(live.turnId)).toBeDefined();
  });

  it('and forgets the oldest when ended turns are too many bytes', async () => {
    // Large, because a log may count something for each turn beside its chunks.
    const log = await open({ retainedBytes: 200_000 });
    const live = await beginTurn(log, { chatId: 'live' });
    await live.append([...OPENING, delta('x'.repeat(190_000))]);
    const ids: string[] = [];
    for (let at = 0; at < 6; at++) {
      const writer = await beginTurn(log, { chatId: `${at}` });
      await writer.append([...OPENING, delta('x'.repeat(50_000)), ...CLOSING]);
      await writer.close(FINISHED);
      ids.push(writer.turnId);
    }
    const known = await Promise.all(ids.map(async (id) => (await log.get(id)) !== undefined));
    expect(known).toEqual([false, false, false, true, true, true]);
    expect(await log.get(live.turnId)).toBeDefined();
  });
}
