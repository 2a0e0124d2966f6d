import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'sabir',
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: 60_000,
    typecheck: { enabled: true, include: ['test/**/*.test-d.ts'], tsconfig: './tsconfig.json' },
    pool: 'forks',
    execArgv: ['--expose-gc'],
  },
});
