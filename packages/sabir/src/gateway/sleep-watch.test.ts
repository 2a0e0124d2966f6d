import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createSleepWatch, type SleepWatch } from './sleep-watch.ts';

describe('a process that was suspended', () => {
  let watch: SleepWatch;
  beforeEach(() => {
    vi.useFakeTimers();
    watch = createSleepWatch();
  });
  afterEach(() => {
    watch.close();
    vi.useRealTimers();
  });

  it('knows it for as long as it may take to read what has come', () => {
    vi.advanceTimersByTime(10_000);
    expect(watch.isWaking).toBe(false);
    // The clock goes on, and no timer does.
    vi.setSystemTime(Date.now() + 3_000);
    expect(watch.isWaking).toBe(true);
    vi.advanceTimersByTime(1_900);
    expect(watch.isWaking).toBe(true);
    vi.advanceTimersByTime(300);
    expect(watch.isWaking).toBe(false);
  });

  it('is not taken for one that is only busy', () => {
    vi.setSystemTime(Date.now() + 1_000);
    expect(watch.isWaking).toBe(false);
  });
});
