import { accessSync, constants, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path';

const INSTALL = 'npm install opencode-ai';
const isWindows = process.platform === 'win32';
const PROGRAM = isWindows ? 'opencode.exe' : 'opencode';

/**
 * Where OpenCode is: what was given, `OPENCODE_BIN`, the first on the PATH, or the npm package
 * `opencode-ai` as `directory` would import it.
 */
export function findOpenCode(options: {
  command?: string | undefined;
  directory: string;
  env: NodeJS.ProcessEnv;
}): string {
  const { directory, env } = options;
  const given = options.command ?? env.OPENCODE_BIN;
  if (given) {
    const found = isNamedByPath(given) ? resolve(directory, given) : findOnPath(given, env);
    if (found && isExecutable(found)) return found;
    throw new Error(`There is no OpenCode at ${given}. Install it with: ${INSTALL}`);
  }
  const found = findOnPath(PROGRAM, env) ?? findInPackages(directory);
  if (found) return found;
  throw new Error(
    `OpenCode is not installed. Install it with: ${INSTALL}, or set OPENCODE_BIN to its path.`,
  );
}

function isNamedByPath(command: string): boolean {
  return isAbsolute(command) || dirname(command) !== '.';
}

function findOnPath(program: string, env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  const found = folders.map((folder) => join(folder, program)).find(isExecutable);
  return found && (findBeside(realpathSync(found)) ?? found);
}

/**
 * The npm package's own command is made by a script that npm may not be allowed to run; the program
 * is in a package for the platform in any case.
 */
function findBeside(command: string): string | undefined {
  return basename(dirname(dirname(command))) === 'opencode-ai'
    ? findPlatformBinary(createRequire(command))
    : undefined;
}

function findInPackages(directory: string): string | undefined {
  try {
    const main = createRequire(join(directory, 'package.json')).resolve('opencode-ai/package.json');
    return findPlatformBinary(createRequire(main));
  } catch {
    // Not installed there.
    return undefined;
  }
}

/** The program for this machine, as one of the packages that `require` can see. */
function findPlatformBinary(require: NodeJS.Require): string | undefined {
  for (const name of platformPackages()) {
    try {
      const program = join(dirname(require.resolve(`${name}/package.json`)), 'bin', PROGRAM);
      if (isExecutable(program)) return program;
    } catch {
      // For another kind of machine.
    }
  }
  return undefined;
}

/** What runs here, the best first. */
function platformPackages(): string[] {
  const base = `opencode-${isWindows ? 'windows' : process.platform}-${process.arch}`;
  const libc = isMusl() ? '-musl' : '';
  const plain = [`${base}${libc}`, `${base}-baseline${libc}`];
  return hasModernProcessor() ? plain : plain.reverse();
}

function isMusl(): boolean {
  if (process.platform !== 'linux') return false;
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime === undefined;
}

/** The plain build uses instructions that older processors do not have. */
function hasModernProcessor(): boolean {
  if (process.platform !== 'linux' || process.arch !== 'x64') return true;
  try {
    return readFileSync('/proc/cpuinfo', 'utf8').includes('avx2');
  } catch {
    return true;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
