import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: [
    'src/index.ts',
    'src/sources/open-harness/index.ts',
    'src/sources/open-harness/runtime.ts',
    'src/sources/agent-ops/index.ts',
    'src/sources/openai-agents/index.ts',
    'src/sources/opencode/index.ts',
    'src/gateway/index.ts',
    'src/turns/redis/index.ts',
    'src/sessions/index.ts',
    'src/sources/ai-sdk/agent.ts',
    'src/wires/contract/index.ts',
    'src/clients/index.ts',
    'src/clients/react/index.ts',
    'src/gateway/otel.ts',
    'src/platforms/node/serve.ts',
    'src/platforms/node/opencode.ts',
    'src/platforms/node/sqlite-turns.ts',
    'src/platforms/node/sessions.ts',
    'src/cli/index.ts',
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
  // The page of `sabir serve` is served as it is.
  copy: { from: 'src/cli/page', to: 'dist/cli' },
  clean: true,
  inputOptions: { checks: { bundlerTimings: false } },
});
