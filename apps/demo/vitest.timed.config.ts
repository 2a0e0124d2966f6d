import { defineConfig } from 'vitest/config';
import demo, { TIMED } from './vitest.config.ts';

export default defineConfig({
  test: {
    ...demo.test,
    name: 'demo, timed',
    include: TIMED,
    exclude: [],
    fileParallelism: false,
    sequence: { groupOrder: 2 },
  },
});
