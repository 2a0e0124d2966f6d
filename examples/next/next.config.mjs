import { fileURLToPath } from 'node:url';

// In a workspace the packages are linked from above this folder: Next has to be told how far up.
const root = fileURLToPath(new URL('../..', import.meta.url));

// To run an example should not edit the workspace's lockfile, as Next does where it misses a
// platform's compiler. Next reads this once it has read its configuration.
process.env.NEXT_IGNORE_INCORRECT_LOCKFILE ??= '1';

/** @type {import('next').NextConfig} */
export default {
  turbopack: { root },
  outputFileTracingRoot: root,
};
