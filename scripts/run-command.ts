import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Runs a command in the repository with its output shown; true if it succeeded. */
export function run(command: string, args: string[], options: { cwd?: string } = {}): boolean {
  const { status } = spawnSync(command, args, { cwd: options.cwd ?? ROOT, stdio: 'inherit' });
  return status === 0;
}

/** Runs a command quietly; what it printed, or undefined if it failed. */
export function read(command: string, args: string[]): string | undefined {
  const { status, stdout } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' });
  return status === 0 ? stdout : undefined;
}
