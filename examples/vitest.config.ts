import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'examples',
    environment: 'node',
    include: ['*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 180_000,
    // Each file starts a server, and one of them a whole build: one at a time, after everybody else.
    fileParallelism: false,
    sequence: { groupOrder: 4 },
  },
});
