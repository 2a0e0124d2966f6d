import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'examples',
    environment: 'node',
    include: ['*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 180_000,
    // After the timed tests: each file starts servers, and two of them a build.
    sequence: { groupOrder: 4 },
  },
});
