import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'demo latency',
    environment: 'node',
    include: ['test/latency.test.ts'],
    globalSetup: './test/build-if-stale.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    sequence: { groupOrder: 2 },
  },
});
