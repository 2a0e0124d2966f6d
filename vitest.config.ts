import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: ['packages/sabir', 'apps/demo', 'examples'],
  },
});
