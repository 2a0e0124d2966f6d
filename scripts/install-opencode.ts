/**
 * Tests of the OpenCode agent run the real program. It is too large for a dependency, so it is
 * installed beside the repository, once a machine: a third of a gigabyte, in about ten seconds.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findOpenCode } from '../packages/sabir/src/platforms/node/opencode-binary.ts';

const OPENCODE_VERSION = '1.18.33';

const FOLDER = join(tmpdir(), 'sabir-tools', `opencode-${OPENCODE_VERSION}`);

/** The path of the program: `OPENCODE_BIN`, or the one installed here. */
export function installOpenCode(): string {
  if (process.env.OPENCODE_BIN) return process.env.OPENCODE_BIN;
  if (!existsSync(FOLDER)) install();
  return findOpenCode({ directory: FOLDER, env: {} });
}

/** Elsewhere first, then moved: who comes at the same time finds all of it or nothing. */
function install(): void {
  mkdirSync(dirname(FOLDER), { recursive: true });
  const building = mkdtempSync(`${FOLDER}-`);
  console.log(`Installing OpenCode ${OPENCODE_VERSION} for the tests of its agent …`);
  writeFileSync(join(building, 'package.json'), '{ "private": true }\n');
  // The package's own script only links the program that a package for the platform brings.
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-save'];
  const { status, stderr } = spawnSync('npm', [...args, `opencode-ai@${OPENCODE_VERSION}`], {
    cwd: building,
    encoding: 'utf8',
  });
  if (status !== 0) {
    rmSync(building, { recursive: true, force: true });
    throw new Error(`OpenCode could not be installed: ${stderr}`);
  }
  try {
    renameSync(building, FOLDER);
  } catch (error) {
    // Somebody else was faster.
    rmSync(building, { recursive: true, force: true });
    if (!existsSync(FOLDER)) throw error;
  }
}

if (import.meta.main) console.log(installOpenCode());
