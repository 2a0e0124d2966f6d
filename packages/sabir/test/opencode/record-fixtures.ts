/**
 * Makes the recordings anew that the translator is held to: what the real OpenCode says. No two are
 * alike, since they have ids and times. `node packages/sabir/test/opencode/record-fixtures.ts`, then
 * `UPDATE_FIXTURES=1 npm test -- opencode` for what becomes of them.
 */
import { writeFileSync } from 'node:fs';
import { record } from './record.ts';
import { SCENARIOS } from './scenarios.ts';

const FIXTURES = new URL('../fixtures/opencode/', import.meta.url);

for (const [name, events] of await record(SCENARIOS)) {
  const file = new URL(`recorded-${name}.events.jsonl`, FIXTURES);
  writeFileSync(file, events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  console.log(`${name}: ${events.length} events`);
}
