import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'sabir',
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: 60_000,
    pool: 'forks',
    execArgv: ['--expose-gc'],
  },
});
