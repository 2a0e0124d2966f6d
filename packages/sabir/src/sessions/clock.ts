import { startTimeout } from '../core/timers.ts';
import type { Clock } from './options.ts';

export const systemClock: Clock = {
  now: Date.now,
  after: (ms, run) => startTimeout(ms, run).clear,
};
