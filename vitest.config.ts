import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      'packages/sabir',
      'packages/sabir/vitest.timed.config.ts',
      'apps/demo',
      'apps/demo/vitest.timed.config.ts',
      'examples',
    ],
    // The default leaves a core to the watcher, of which there is none: on two it would be one.
    maxWorkers: '100%',
  },
});
