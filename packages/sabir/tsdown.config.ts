import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    'open-harness': 'src/sources/open-harness/index.ts',
    'open-harness-runtime': 'src/sources/open-harness/runtime.ts',
  },
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  dts: true,
  sourcemap: true,
  clean: true,
});
