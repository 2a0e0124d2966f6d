import { defineConfig } from 'vitest/config';

/** What is measured in them is time, or there is much of everything: one at a time, by themselves. */
export const TIMED = ['test/load.test.ts', 'test/session-load.test.ts', 'test/chaos/chaos.test.ts'];

export default defineConfig({
  test: {
    name: 'sabir',
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: TIMED,
    setupFiles: ['test/seed-properties.ts'],
    testTimeout: 60_000,
    typecheck: { enabled: true, include: ['test/**/*.test-d.ts'], tsconfig: './tsconfig.json' },
    pool: 'forks',
    execArgv: ['--expose-gc'],
  },
});
