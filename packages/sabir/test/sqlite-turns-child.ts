/**
 * A process that writes one turn in SQLite until it is killed: `node sqlite-turns-child.ts FILE`. It begins the turn or takes
 * it over, says each number that was acknowledged, and writes each number as its own chunk.
 */
import { writeSync } from 'node:fs';
import { sqliteTurnLog } from '../src/platforms/node/sqlite-turns.ts';
import type { TurnWriter } from '../src/turns/log.ts';
import { delta, request } from './turn-log-helpers.ts';

const log = sqliteTurnLog({ database: process.argv[2] ?? '' });
const adopted = Promise.withResolvers<{ writer: TurnWriter; lastSeq: number }>();
log.onOrphan(async ({ writer, turn }) => {
  adopted.resolve({ writer, lastSeq: turn.lastSeq });
  return true;
});
const begun = await log.begin(request({ requestId: 'r' }));
const { writer, lastSeq } =
  'writer' in begun ? { writer: begun.writer, lastSeq: 0 } : await adopted.promise;
for (let seq = lastSeq; ; ) {
  const size = 1 + (seq % 3);
  const chunks = Array.from({ length: size }, (_, at) => delta(`${seq + at + 1} `));
  seq = await writer.append(chunks, seq);
  writeSync(1, `${seq}\n`);
}
