/**
 * A lockfile that npm writes on one platform can lack the packages of the others, and `npm ci` then
 * refuses it. Adds what is missing: the optional, platform-bound packages that a locked package
 * names with an exact version. Which platform one is for stands in its name.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './run-command.ts';

type Entry = {
  version?: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
};

const OS = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
];
const CPU = [
  'arm',
  'arm64',
  'ia32',
  'loong64',
  'mips64el',
  'ppc64',
  'riscv64',
  's390x',
  'wasm32',
  'x64',
];

const path = join(ROOT, 'package-lock.json');
const lock = JSON.parse(readFileSync(path, 'utf8')) as { packages: Record<string, Entry> };
const { packages } = lock;

function platformOf(name: string): Pick<Entry, 'os' | 'cpu' | 'libc'> {
  const words = name.split(/[/-]/);
  const os = OS.filter((word) => words.includes(word));
  const cpu = CPU.filter((word) => words.includes(word));
  const libc = words.some((word) => word.startsWith('musl')) ? ['musl'] : [];
  return {
    ...(os.length > 0 ? { os } : undefined),
    ...(cpu.length > 0 ? { cpu } : undefined),
    ...(libc.length > 0 ? { libc } : undefined),
  };
}

let added = 0;
for (const [parent, { optionalDependencies = {}, dev }] of Object.entries(packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    const platform = platformOf(name);
    if (!/^\d/.test(version) || Object.keys(platform).length === 0) continue;
    const places = [`${parent}/node_modules/${name}`, `node_modules/${name}`];
    if (places.some((place) => packages[place]?.version === version)) continue;
    const place = packages[`node_modules/${name}`] ? places[0] : places[1];
    packages[place as string] = {
      version,
      ...(dev ? { dev } : undefined),
      optional: true,
      ...platform,
    };
    added++;
  }
}

const sorted = Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(
  path,
  `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`,
);
console.log(`${added} platform packages added to the lockfile`);
