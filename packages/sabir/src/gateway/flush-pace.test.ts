import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createFlushPace } from './flush-pace.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

describe('createFlushPace', () => {
  it('makes nothing wait while flushes are short and rare', () => {
    const pace = createFlushPace();
    for (let n = 0; n < 100; n++) {
      expect(pace.wait()).toBeUndefined();
      pace.add(0.1);
      vi.advanceTimersByTime(1);
    }
  });

  it('waits longer after a long flush, and never for longer than 30 ms', async () => {
    const waitedAfter = async (ms: number) => {
      const pace = createFlushPace();
      pace.add(ms);
      let isOver = false;
      void pace.wait()?.then(() => {
        isOver = true;
      });
      let waited = 0;
      for (; !isOver && waited < 100; waited++) await vi.advanceTimersByTimeAsync(1);
      return waited;
    };
    expect(createFlushPace().wait()).toBeUndefined();
    const [short, long, longest] = [
      await waitedAfter(4),
      await waitedAfter(10),
      await waitedAfter(1_000),
    ];
    expect(short).toBeGreaterThan(2);
    expect(long).toBeGreaterThan(short);
    expect(longest).toBe(30);
  });

  it('counts the flushes of all turns together', () => {
    const pace = createFlushPace();
    for (let n = 0; n < 30; n++) pace.add(0.2);
    expect(pace.wait()).toBeDefined();
  });

  it('forgets what was flushed a while ago', () => {
    const pace = createFlushPace();
    pace.add(10);
    vi.advanceTimersByTime(30);
    expect(pace.wait()).toBeUndefined();
  });
});
