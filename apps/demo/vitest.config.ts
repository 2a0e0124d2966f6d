import { defineConfig } from 'vitest/config';

// Most of a page's time is spent waiting for words: two at a time do not disturb each other. Where
// time itself is measured nothing else may run: vitest.latency.config.ts.
export default defineConfig({
  test: {
    name: 'demo',
    environment: 'node',
    include: ['test/**/*.test.ts'],
    exclude: ['test/latency.test.ts'],
    globalSetup: './test/build-if-stale.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    sequence: { groupOrder: 1 },
  },
});
