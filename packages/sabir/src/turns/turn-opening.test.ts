import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { SessionLease } from './session-pool.ts';
import { createTurnOpening } from './turn-opening.ts';

const LEASE = {} as SessionLease;
const timing = { connectMs: 10_000, idleMs: 1, toolLimitMs: 1, hookMs: 1 };
const takenOver = { lastSeq: 3, mark: 3, canAttach: true };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

function setUp(options: Partial<Parameters<typeof createTurnOpening>[0]> = {}) {
  const onLate = vi.fn();
  const onAway = vi.fn();
  const open = vi.fn(async (): Promise<SessionLease> => {
    throw new Error('away');
  });
  return {
    onLate,
    onAway,
    open,
    opening: createTurnOpening({ open, timing, onLate, onAway, ...options }),
  };
}

describe('the opening of a new turn', () => {
  it('rejects with the first failure', async () => {
    const { opening, open } = setUp();
    await expect(opening.open()).rejects.toThrow('away');
    expect(open).toHaveBeenCalledOnce();
  });

  it('is late after `connectMs`', async () => {
    const { opening, onLate, onAway } = setUp({ open: () => new Promise(() => undefined) });
    void opening.open();
    await vi.advanceTimersByTimeAsync(9_999);
    expect(onLate).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(onLate).toHaveBeenCalledOnce();
    expect(onAway).not.toHaveBeenCalled();
  });
});

describe('the opening of a turn that was taken over', () => {
  it('connects again until the agent is back', async () => {
    const { opening, open, onAway, onLate } = setUp({ takenOver });
    const opened = opening.open();
    await vi.advanceTimersByTimeAsync(25_000);
    open.mockResolvedValueOnce(LEASE);
    await vi.advanceTimersByTimeAsync(200);
    expect(await opened).toBe(LEASE);
    expect(onAway).toHaveBeenCalledTimes(2);
    expect(onLate).not.toHaveBeenCalled();
  });

  it('is late after ten minutes', async () => {
    const { opening, onLate } = setUp({ takenOver });
    const opened = opening.open().catch((error: Error) => error.message);
    await vi.advanceTimersByTimeAsync(599_999);
    expect(onLate).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(onLate).toHaveBeenCalledOnce();
    opening.end();
    await vi.advanceTimersByTimeAsync(200);
    expect(await opened).toBe('away');
  });

  it('is not retried where the agent cannot attach', async () => {
    const { opening } = setUp({ takenOver: { ...takenOver, canAttach: false } });
    await expect(opening.open()).rejects.toThrow('away');
  });
});
