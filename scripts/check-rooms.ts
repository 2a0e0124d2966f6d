/**
 * Imports point one way: a file may import what stands above it in this list, and files of its own
 * room. `ls src` is the architecture; this keeps it true.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ROOT } from './run-command.ts';

const SRC = join(ROOT, 'packages/sabir/src');

/** From the top down. Rooms on one line do not know each other. Within `core/` the files have an order of their own. */
const ROOMS = [
  [
    'core/chunks.ts',
    'core/byte-source.ts',
    'core/forget.ts',
    'core/hash.ts',
    'core/loose.ts',
    'core/json-limits.ts',
    'core/metrics.ts',
    'core/no-longer-needed.ts',
    'core/quietly.ts',
    'core/timers.ts',
    'core/token-bucket.ts',
    'core/within.ts',
  ],
  [
    'core/chunk-shapes.ts',
    'core/outcome.ts',
    'core/message.ts',
    'core/json.ts',
    'core/merge-metadata.ts',
    'core/id.ts',
    'core/errors.ts',
    'core/until-aborted.ts',
  ],
  [
    'core/roles.ts',
    'core/translator.ts',
    'core/accumulator-core.ts',
    'core/compact.ts',
    'core/decision.ts',
    'core/downgrade.ts',
    'core/file-urls.ts',
    'core/sse.ts',
    'core/steering.ts',
    'core/chat-request.ts',
    'core/partial-json.ts',
    'core/without-content.ts',
  ],
  ['core/accumulator.ts', 'core/audit.ts', 'core/verify-shape.ts', 'core/message-writer.ts'],
  [
    'core/verify.ts',
    'core/fold-tools.ts',
    'core/live-log.ts',
    'core/safe-logger.ts',
    'core/sse-response.ts',
  ],
  ['core/fold.ts'],
  // The contracts that sources keep to; the rest of the room stands below them.
  ['turns/log.ts'],
  ['turns/upstream.ts'],
  ['turns/agent.ts'],
  ['sources/'],
  ['turns/'],
  ['wires/'],
  ['sessions/'],
  ['gateway/', 'clients/'],
  ['platforms/'],
  ['cli/', 'index.ts'],
];
/** Only these may know a platform. */
const PLATFORM_ROOMS = ['platforms/', 'cli/'];

const problems: string[] = [];
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && !/\.test(-d)?\.ts$/.test(file),
);

/** Sources are rooms of their own, and so are files of the core: one source does not know another. */
function roomOf(file: string): string {
  const [top = '', name = ''] = file.split('/');
  if (top === 'sources' || top === 'core') return `${top}/${name}`;
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
