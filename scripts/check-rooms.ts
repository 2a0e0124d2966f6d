/**
 * Imports point one way: a file may import what stands above it in this list, and files of its own
 * room. `ls src` is the architecture; this keeps it true.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ROOT } from './run-command.ts';

const SRC = join(ROOT, 'packages/sabir/src');

/** From the top down. Rooms on one line do not know each other. */
const ROOMS = [
  [
    'chunks.ts',
    'byte-source.ts',
    'forget.ts',
    'hash.ts',
    'json-limits.ts',
    'metrics.ts',
    'no-longer-needed.ts',
    'quietly.ts',
    'within.ts',
  ],
  ['chunk-shapes.ts', 'outcome.ts', 'message.ts', 'json.ts', 'merge.ts', 'id.ts', 'errors.ts'],
  [
    'roles.ts',
    'translator.ts',
    'accumulator-core.ts',
    'compact.ts',
    'downgrade.ts',
    'sse.ts',
    'chat-request.ts',
    'partial-json.ts',
    'without-content.ts',
  ],
  ['accumulator.ts', 'audit.ts', 'verify-shape.ts', 'message-writer.ts'],
  ['verify.ts', 'fold-tools.ts', 'live-log.ts', 'safe-logger.ts', 'sse-response.ts'],
  ['fold.ts'],
  // What a source behind the gateway has to keep to; the rest of the room stands below.
  ['turns/log.ts'],
  ['turns/upstream.ts'],
  ['sources/'],
  ['contract/', 'turns/'],
  ['gateway/', 'session/', 'client/'],
  ['react/', 'otel/', 'runtimes/'],
  ['cli/', 'index.ts'],
];
/** Only these may know a platform. */
const PLATFORM_ROOMS = ['runtimes/', 'cli/'];

const problems: string[] = [];
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && !/\.test(-d)?\.ts$/.test(file),
);

/** Sources are rooms of their own: one does not know another. */
function roomOf(file: string): string {
  const [top = '', name = ''] = file.split('/');
  if (top === 'sources') return `sources/${name}`;
  return file.includes('/') ? `${top}/` : file;
}

function heightOf(file: string): number {
  const height = ROOMS.findIndex((level) => level.some((room) => file.startsWith(room)));
  if (height < 0) problems.push(`${file} is in no room: add it to scripts/check-rooms.ts`);
  return height;
}

for (const file of files) {
  const text = readFileSync(join(SRC, file), 'utf8');
  for (const [, specifier = ''] of text.matchAll(/(?:from|import\()\s*'([^']+)'/g)) {
    if (!specifier.startsWith('.')) {
      const isPlatform = specifier.startsWith('node:') || specifier === 'ws';
      if (isPlatform && !PLATFORM_ROOMS.some((room) => file.startsWith(room))) {
        problems.push(`${file} imports ${specifier}: only ${PLATFORM_ROOMS.join(' and ')} may`);
      }
      continue;
    }
    const target = relative(SRC, join(SRC, dirname(file), specifier));
    const isOwnRoom = roomOf(target) === roomOf(file);
    if (!isOwnRoom && heightOf(target) >= heightOf(file)) {
      problems.push(`${file} imports ${target}, which does not stand above it`);
    }
  }
}

for (const problem of new Set(problems)) console.error(problem);
console.log(`${files.length} files, ${problems.length} imports the wrong way`);
process.exit(problems.length > 0 ? 1 : 0);
