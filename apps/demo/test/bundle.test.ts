import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const KEYS = {
  OPENAI_API_KEY: 'sk-fake-openai-0123456789',
  ANTHROPIC_API_KEY: 'sk-ant-fake-0123456789',
  SABIR_MODEL_API_KEY: 'fake-compatible-0123456789',
  SABIR_MODEL_BASE_URL: 'https://fake-provider.invalid/v1',
  VITE_OPENAI_API_KEY: 'sk-fake-vite-0123456789',
};

describe.each([
  {
    name: 'the built page',
    config: 'vite.config.ts',
    title: 'Three agents, one conversation.',
    limit: 270_000,
  },
  {
    name: 'the page of sabir serve',
    config: 'vite.serve.config.ts',
    title: 'What can I do for you?',
    limit: 255_000,
  },
])('$name', ({ config, title, limit }) => {
  let directory: string;
  const files = () =>
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'sabir-demo-'));
    execFileSync(
      'npx',
      ['vite', 'build', '--config', config, '--outDir', directory, '--emptyOutDir'],
      {
        cwd: fileURLToPath(new URL('..', import.meta.url)),
        env: { ...process.env, ...KEYS, NODE_ENV: 'production' },
        stdio: 'ignore',
      },
    );
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test('holds neither the names nor the values of keys in the environment it was built in', () => {
    const everything = files()
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    expect(everything).toContain(title);
    for (const [name, value] of Object.entries(KEYS)) {
      expect(everything).not.toContain(name);
      expect(everything).not.toContain(value);
    }
  });

  test('holds no server code', () => {
    const everything = files()
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    expect(everything).not.toMatch(/chat\/completions|node:http|Sabir demo on/);
    // The desk's agents, and the SDK they are made with.
    expect(everything).not.toMatch(/search_guide|cancel_booking|raw_model_stream_event/);
  });

  test(`stays below ${limit / 1_000} kB compressed, all scripts and styles together`, () => {
    const bytes = files()
      .filter((file) => /\.(js|css)$/.test(file))
      .reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0);
    console.log(`page: ${Math.round(bytes / 1000)} kB compressed`);
    expect(bytes).toBeLessThan(limit);
  });
});
