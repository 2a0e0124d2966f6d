/** The part of `turn-log-conformance.ts` that is about what is stored elsewhere when a turn ends. */
import { expect, it, vi } from 'vitest';
import {
  beginTurn,
  chunksOf,
  FINISHED,
  NEVER,
  readAll,
  type Suite,
  sleep,
  WHOLE_TURN,
} from './turn-log-helpers.ts';

export function describeStoring({ open, shortMs }: Suite): void {
  const fail = () => {
    throw new Error('the history cannot be written');
  };

  it('runs `store` once, before the turn counts as ended', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    await writer.append(WHOLE_TURN);
    const reader = log.read(writer.turnId, 5, NEVER)[Symbol.asyncIterator]();
    let hasEnded = false;
    const ending = reader.next().then(() => {
      hasEnded = true;
    });
    let looking: ReturnType<typeof log.get> | undefined;
    const store = vi.fn(() => {
      expect(hasEnded).toBe(false);
      looking = log.get(writer.turnId);
    });
    await writer.close(FINISHED, store);
    await ending;
    expect(await looking).toMatchObject({ status: 'running' });
    await writer.close(FINISHED, store);
    await writer.close({ status: 'stopped' }, store);
    expect(store).toHaveBeenCalledOnce();
    expect(await log.get(writer.turnId)).toMatchObject({ status: 'ended', outcome: FINISHED });
  });

  it('runs one `store` when the turn is closed twice at once', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    await writer.append(WHOLE_TURN);
    const store = vi.fn();
    await Promise.all([writer.close(FINISHED, store), writer.close({ status: 'stopped' }, store)]);
    expect(store).toHaveBeenCalledOnce();
    expect(await log.get(writer.turnId)).toMatchObject({ outcome: FINISHED });
  });

  it('rejects when `store` throws, and the turn stays live and writable', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    await writer.append(WHOLE_TURN.slice(0, 3));
    await expect(writer.close(FINISHED, fail)).rejects.toThrow();
    expect(await log.get(writer.turnId)).not.toHaveProperty('outcome');
    expect(await log.live('s', 'c')).toHaveLength(1);
    expect(await log.command(writer.turnId, { type: 'stop' })).toBe(true);
    expect(await writer.append(WHOLE_TURN.slice(3))).toBe(5);
    expect(writer.isHeld).toBe(true);
  });

  it('ends the turn with a second close whose `store` works, for readers too', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    await writer.append(WHOLE_TURN);
    const reading = readAll(log, writer.turnId);
    await expect(writer.close({ status: 'stopped' }, fail)).rejects.toThrow();
    await expect(writer.close({ status: 'stopped' }, fail)).rejects.toThrow();
    const store = vi.fn();
    await writer.close(FINISHED, store);
    expect(store).toHaveBeenCalledOnce();
    expect(chunksOf(await reading)).toEqual(WHOLE_TURN);
    expect(await log.get(writer.turnId)).toMatchObject({ outcome: FINISHED });
  });

  it('does not run `store` for a writer that has lost its lease', async () => {
    const log = await open({ leaseMs: shortMs });
    const writer = await beginTurn(log);
    await writer.append(WHOLE_TURN);
    await sleep(2 * shortMs);
    expect(await log.get(writer.turnId)).toMatchObject({ outcome: { status: 'lost' } });
    const store = vi.fn();
    await expect(writer.close(FINISHED, store)).rejects.toMatchObject({ code: 'turn-fenced' });
    expect(store).not.toHaveBeenCalled();
  });
}
