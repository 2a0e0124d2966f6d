import { defineConfig } from 'vitest/config';
import { TIMED } from './vitest.config.ts';

export default defineConfig({
  test: {
    name: 'sabir, timed',
    include: TIMED,
    testTimeout: 60_000,
    pool: 'forks',
    execArgv: ['--expose-gc'],
    fileParallelism: false,
    sequence: { groupOrder: 3 },
  },
});
