/** The part of `turn-log-conformance.ts` that is about turns that have an id before they begin. */
import { expect, it } from 'vitest';
import type { TurnOutcome } from '../src/core/outcome.ts';
import type { TurnInfo } from '../src/turns/log.ts';
import {
  beginTurn,
  chunksOf,
  FINISHED,
  readAll,
  request,
  type Suite,
  sleep,
  WHOLE_TURN,
} from './turn-log-helpers.ts';

export function describeNamedTurns({ open, shortMs }: Suite): void {
  it('gives a new id that nobody guesses each time, for any session and chat', async () => {
    const log = await open();
    const places = [
      ['s', 'c'],
      ['', ''],
      ['a\0', '"\\'],
    ] as const;
    const ids = places.flatMap(([sessionId, chatId]) =>
      Array.from({ length: 20 }, () => log.createTurnId(sessionId, chatId)),
    );
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[\w-]{16,}$/);
  });

  it('begins a turn under the id it was given, which is unknown until then', async () => {
    const log = await open();
    const turnId = log.createTurnId('s', 'c');
    expect(await log.get(turnId)).toBeUndefined();
    expect(await readAll(log, turnId)).toEqual([]);
    const writer = await beginTurn(log, { turnId });
    expect(writer.turnId).toBe(turnId);
    expect(await log.command(turnId, { type: 'stop' })).toBe(true);
    await writer.append(WHOLE_TURN);
    expect(await log.get(turnId)).toMatchObject({ turnId, sessionId: 's', chatId: 'c' });
    expect((await log.latest('s', 'c'))?.turnId).toBe(turnId);
    await writer.close(FINISHED);
    expect(chunksOf(await readAll(log, turnId))).toEqual(WHOLE_TURN);
  });

  it('begins it once, also for ten at once and under another request', async () => {
    const log = await open();
    const same = request({ turnId: log.createTurnId('s', 'c') });
    const begun = await Promise.all(Array.from({ length: 10 }, () => log.begin(same)));
    const writers = begun.flatMap((one) => ('writer' in one ? [one.writer] : []));
    expect(writers).toHaveLength(1);
    expect(await log.begin(same)).toMatchObject({ existing: { turnId: same.turnId } });
    // The one writer still has its lease.
    expect(await writers[0]?.append(WHOLE_TURN)).toBe(5);
  });

  it.each<TurnOutcome>([FINISHED, { status: 'failed', code: 'run-failed' }, { status: 'stopped' }])(
    'gives it back after it ended as $status, and never begins it anew',
    async (outcome) => {
      const log = await open({ dedupeMs: 1 });
      const same = request({ turnId: log.createTurnId('s', 'c') });
      const writer = await beginTurn(log, same);
      await writer.append(WHOLE_TURN);
      await writer.close(outcome);
      await sleep(5);
      const again = (await log.begin(same)) as { existing: TurnInfo };
      expect(again.existing).toMatchObject({ turnId: same.turnId, lastSeq: 5, outcome });
    },
  );

  it('gives it back after it was lost', async () => {
    const log = await open({ leaseMs: shortMs });
    const same = request({ turnId: log.createTurnId('s', 'c') });
    await beginTurn(log, same);
    await sleep(2 * shortMs);
    const again = (await log.begin(same)) as { existing: TurnInfo };
    expect(again.existing).toMatchObject({ turnId: same.turnId, outcome: { status: 'lost' } });
  });

  it('refuses an id that a turn of another chat has, and leaves that turn as it is', async () => {
    const log = await open();
    const turnId = log.createTurnId('s', 'c');
    const writer = await beginTurn(log, { turnId, requestId: 'r' });
    await writer.append(WHOLE_TURN);
    const elsewhere = { turnId, sessionId: 's', chatId: 'other' };
    await expect(log.begin(request(elsewhere))).rejects.toThrow();
    expect(await log.get(turnId)).toMatchObject({ chatId: 'c', requestId: 'r', lastSeq: 5 });
    await writer.close(FINISHED);
  });
}
