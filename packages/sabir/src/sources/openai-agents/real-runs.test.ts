/** Runs of the real SDK, read while they run, in each release of it. */
import { describe, expect, it } from 'vitest';
import { expectedMessages, type Seen } from '../../../test/openai-agents/expected-messages.ts';
import { outline } from '../../../test/openai-agents/outline.ts';
import { playLive } from '../../../test/openai-agents/play-scenario.ts';
import { SCENARIOS } from '../../../test/openai-agents/scenarios.ts';
import { SDKS } from '../../../test/openai-agents/sdks.ts';
import { watchRejections } from '../../../test/openai-agents/watch-rejections.ts';
import type { Chunk } from '../../core/chunks.ts';
import { createDowngrade } from '../../core/downgrade.ts';
import { verifyChunks } from '../../core/verify.ts';
import type { OpenAIAgentsUIMessage } from './events.ts';

watchRejections();

/** How the last stream ended: the code of a failure, else why the answer stopped. */
function endOf(chunks: Chunk[], message: OpenAIAgentsUIMessage): string | undefined {
  const last = chunks.at(-1);
  if (message.metadata?.code) return message.metadata.code;
  return last?.type === 'finish' ? last.finishReason : undefined;
}

describe.each(SDKS)('a run of the Agents SDK $version', ({ version, sdk }) => {
  const cases = SCENARIOS.filter(({ since }) => since === undefined || since === version);

  it.each(cases)('is shown whole: $name', async (scenario) => {
    const { streams, message } = await playLive(sdk, scenario);
    for (const { chunks, before } of streams) {
      const options = before ? { message: before } : {};
      expect(verifyChunks(chunks, { aiSdk: 7, ...options })).toEqual([]);
      const older = chunks.flatMap(createDowngrade(6));
      expect(verifyChunks(older, { aiSdk: 6, ...options })).toEqual([]);
    }
    const { parts, end = 'stop' } = expectedMessages(version)[scenario.name] as Seen;
    expect(outline(message)).toEqual(parts);
    const last = streams.at(-1)?.chunks ?? [];
    expect(endOf(last, message as OpenAIAgentsUIMessage)).toBe(end);
  });

  it.each(cases.filter(({ options }) => !options?.approvals))(
    'says nothing that the oldest client does not know: $name',
    async (scenario) => {
      const { streams } = await playLive(sdk, scenario);
      for (const { chunks, before } of streams) {
        expect(verifyChunks(chunks, before ? { message: before } : {})).toEqual([]);
      }
    },
  );

  it('sums what all responses cost, those of a run that goes on included', async () => {
    const usageOf = async (name: string) => {
      const scenario = cases.find((one) => one.name === name) as (typeof cases)[number];
      const { message } = await playLive(sdk, scenario);
      return (message as OpenAIAgentsUIMessage).metadata?.usage?.totalTokens;
    };
    expect(await usageOf('text')).toBe(15);
    expect(await usageOf('tools')).toBe(7 * 15);
    expect(await usageOf('approval-as-question')).toBe(3 * 15);
    // The SDK throws at a response that was cut short; it was paid for all the same.
    expect(await usageOf('length')).toBe(15);
  });
});
