import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'demo',
    environment: 'node',
    include: ['test/**/*.test.ts'],
    globalSetup: './test/build-if-stale.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Latency and layout are measured here: one browser at a time, after everybody else.
    fileParallelism: false,
    sequence: { groupOrder: 1 },
  },
});
