import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const demo = fileURLToPath(new URL('..', import.meta.url));
const library = fileURLToPath(new URL('../../../packages/sabir', import.meta.url));

/** The tests run against what people get: the built library and the built page. */
export default function buildIfStale(): void {
  const libraryInputs = ['src', 'package.json', 'tsdown.config.ts'].map((name) =>
    join(library, name),
  );
  const libraryOutput = join(library, 'dist');
  if (newest(libraryInputs) > newest([libraryOutput])) build('sabir');

  const sources = ['src', 'flow', 'desk', 'public'];
  const pageInputs = [...sources, 'index.html', 'vite.config.ts', 'package.json'];
  const inputs = [...pageInputs.map((name) => join(demo, name)), libraryOutput];
  if (newest(inputs) > newest([join(demo, 'dist')])) build('demo');
}

function build(workspace: string): void {
  execFileSync('npm', ['run', 'build', '-w', workspace], {
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
    // The test runner's own value would give people's page React's development build.
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

function newest(paths: string[]): number {
  let latest = 0;
  for (const path of paths) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat) continue;
    const children = stat.isDirectory() ? readdirSync(path).map((name) => join(path, name)) : [];
    latest = Math.max(latest, stat.isFile() ? stat.mtimeMs : newest(children));
  }
  return latest;
}
