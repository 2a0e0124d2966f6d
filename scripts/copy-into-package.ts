/** The tarball carries the repository's README and LICENSE; they live in one place only. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './run-command.ts';

for (const name of ['README.md', 'LICENSE']) {
  copyFileSync(join(ROOT, name), join(ROOT, 'packages/sabir', name));
}
