import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: [
    'src/index.ts',
    'src/sources/open-harness/index.ts',
    'src/sources/open-harness/runtime.ts',
    'src/sources/agent-ops/index.ts',
    'src/sources/openai-agents/index.ts',
    'src/gateway/index.ts',
    'src/contract/index.ts',
    'src/client/index.ts',
    'src/react/index.ts',
    'src/runtimes/node.ts',
  ],
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  // One file a module: with `sideEffects: false` a bundler leaves out whole rooms nobody entered.
  unbundle: true,
  // Only sabir/node knows Node.
  deps: { neverBundle: [/^node:/] },
  dts: true,
  sourcemap: true,
  clean: true,
  inputOptions: { checks: { bundlerTimings: false } },
});
