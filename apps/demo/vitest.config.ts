import { defineConfig } from 'vitest/config';

/** What is measured in them is time: one browser at a time, after everybody else. */
export const TIMED = ['test/latency.test.ts', 'test/contract-tab.test.ts'];

export default defineConfig({
  test: {
    name: 'demo',
    environment: 'node',
    include: ['test/**/*.test.ts'],
    exclude: TIMED,
    globalSetup: './test/build-if-stale.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    sequence: { groupOrder: 1 },
  },
});
