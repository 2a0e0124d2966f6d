/** `npm run check`: what a contributor runs before a push. All of it runs, then it tells. */
import { run } from './run-command.ts';

const sabir = ['-w', 'sabir'];
const CHECKS: Record<string, [command: string, ...args: string[]][]> = {
  build: [['npm', 'run', 'build', '--silent', ...sabir]],
  types: ['packages/sabir', 'apps/demo', 'bench', 'examples', 'scripts'].map((project) => [
    'tsc',
    '-p',
    project,
  ]),
  'lint and format': [['biome', 'ci', '--error-on-warnings', '.']],
  'import direction': [['node', 'scripts/check-rooms.ts']],
  'generated docs': [['node', 'scripts/write-docs.ts', '--check']],
  'unused code': [['knip']],
  'package shape': [
    ['publint', 'run', 'packages/sabir', '--strict'],
    ['attw', '--pack', 'packages/sabir', '--profile', 'esm-only'],
  ],
  'bundle size': [['npm', 'run', 'size', '--silent', ...sabir]],
};

const failed: string[] = [];
for (const [name, commands] of Object.entries(CHECKS)) {
  console.log(`\n— ${name}`);
  for (const [command, ...args] of commands) {
    if (!run(command, args)) failed.push(name);
  }
}
const failures = [...new Set(failed)];
console.log(
  failures.length === 0
    ? `\nAll ${Object.keys(CHECKS).length} checks passed.`
    : `\nFailed: ${failures.join(', ')}.`,
);
process.exit(failures.length === 0 ? 0 : 1);
