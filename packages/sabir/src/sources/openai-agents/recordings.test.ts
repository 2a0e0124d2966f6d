/**
 * The recordings that the translator is held to are what the SDK streams. With `UPDATE_FIXTURES` they
 * are made anew.
 */
import { describe, expect, it } from 'vitest';
import { readOrWriteJsonl } from '../../../test/jsonl.ts';
import { record } from '../../../test/openai-agents/record.ts';
import { SCENARIOS } from '../../../test/openai-agents/scenarios.ts';
import { SDKS } from '../../../test/openai-agents/sdks.ts';

const FIXTURES = new URL('../../../test/fixtures/openai-agents/', import.meta.url);

describe.each(SDKS)('the recordings of the Agents SDK $version', ({ version, sdk }) => {
  const cases = SCENARIOS.filter(({ since }) => since === undefined || since === version);

  it.each(cases)('have what it streams: $name', async (scenario) => {
    const file = `recorded-${scenario.name}-${version.replace('.', '-')}.events.jsonl`;
    const steps = await record(sdk, scenario);
    expect(steps).toEqual(readOrWriteJsonl(new URL(file, FIXTURES), steps));
  });
});
