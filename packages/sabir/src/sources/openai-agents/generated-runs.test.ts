/** Whatever agents do, in whichever order: every part is there, and every client shows it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { comparable } from '../../../test/comparable.ts';
import {
  AGENTS,
  answersOf,
  expectedOf,
  type GeneratedRun,
  generatedRun,
  scriptOf,
} from '../../../test/openai-agents/arbitrary-runs.ts';
import { outline } from '../../../test/openai-agents/outline.ts';
import { decide } from '../../../test/openai-agents/play-scenario.ts';
import { toolsOf } from '../../../test/openai-agents/scenario-tools.ts';
import { scriptedModel } from '../../../test/openai-agents/scripted-model.ts';
import { SDKS, type Sdk } from '../../../test/openai-agents/sdks.ts';
import { watchRejections } from '../../../test/openai-agents/watch-rejections.ts';
import { CLIENTS, runClient } from '../../../test/real-clients.ts';
import type { Chunk } from '../../core/chunks.ts';
import { createDowngrade } from '../../core/downgrade.ts';
import { foldChunks } from '../../core/fold.ts';
import { verifyChunks } from '../../core/verify.ts';
import { openRun } from './to-chunks.ts';
import { createOpenAIAgentsTranslator } from './translate.ts';

watchRejections();

const PLANS = [
  { version: '0.20', runs: 500 },
  { version: '0.8', runs: 100 },
];

/**
 * Without what the older release does otherwise: it takes a refusal for no answer at all and asks
 * again, and it hands over before anybody has answered about the calls beside.
 */
function asOlderReleasesTakeIt({ responses, last, ...rest }: GeneratedRun): GeneratedRun {
  const { acts, ending } = last;
  const waits = (response: GeneratedRun['responses'][number]) =>
    response.acts.some(({ kind }) => kind === 'remove');
  return {
    ...rest,
    responses: responses.map((one) => (waits(one) ? { acts: one.acts } : one)),
    last: { acts, ending: 'refusal' in ending ? { text: ending.refusal } : ending },
  };
}

/** Three agents that have the same tools and may each hand over to both others. */
function createAgents(sdk: Sdk, run: GeneratedRun) {
  const model = scriptedModel(sdk, scriptOf(run));
  const tools = Object.values(toolsOf(sdk));
  const agents = AGENTS.map((name) => new sdk.Agent({ name, model, tools }));
  for (const agent of agents) agent.handoffs = agents.filter((other) => other !== agent);
  return agents[0] as (typeof agents)[number];
}

/** The chunks of the whole turn: a run that is interrupted goes on in it. */
async function play(sdk: Sdk, generated: GeneratedRun): Promise<Chunk[]> {
  const agent = createAgents(sdk, generated);
  const answers = answersOf(generated);
  const { approvals } = generated;
  const translator = createOpenAIAgentsTranslator({ messageId: 'm', agent: agent.name, approvals });
  const chunks: Chunk[] = [];
  try {
    for (let state: unknown; ; ) {
      const run = await sdk.run(agent, (state ?? 'Hi') as string, { stream: true });
      const { next } = openRun(run, translator);
      for (let said = await next(); said; said = await next()) chunks.push(...said);
      const { interruptions } = run;
      if (interruptions.length === 0) break;
      state = run.state;
      chunks.push(...translator.push({ type: 'run_interrupted', interruptions }));
      for (const { item, answer } of decide(state, answers)) {
        const approvalId = translator.approvalIdsOf([item])[0] as string;
        chunks.push(
          ...translator.push({ type: 'approval_answered', approvalId, ...Object(answer) }),
        );
      }
    }
    chunks.push(...translator.end({ status: 'finished' }));
  } catch (error) {
    chunks.push(...translator.end(undefined, error));
  }
  expect({ ...translator.stats.malformed, ...translator.stats.unknown }).toEqual({});
  return chunks;
}

describe.each(PLANS)('$runs generated runs of the Agents SDK $version', ({ version, runs }) => {
  const { sdk } = SDKS.find((one) => one.version === version) as (typeof SDKS)[number];
  const isNew = version === '0.20';
  const failedText = `An error occurred while running the tool. Please try again.${isNew ? '' : ' Error: Error: no disk'}`;
  const arbitrary = isNew ? generatedRun : generatedRun.map(asOlderReleasesTakeIt);

  it('are shown whole, in their order, by every client', async () => {
    await fc.assert(
      fc.asyncProperty(arbitrary, async (generated) => {
        const chunks = await play(sdk, generated);
        expect(outline(foldChunks(chunks))).toEqual(expectedOf(generated, failedText));
        const { ending } = generated.last;
        for (const { name, major } of CLIENTS) {
          const sent = chunks.flatMap(createDowngrade(major));
          expect(verifyChunks(sent, { aiSdk: major })).toEqual([]);
          const { status, error, message } = await runClient(name, sent, { via: 'in-process' });
          expect(status).toBe('failure' in ending ? 'error' : 'ready');
          expect(error?.message).toBe('failure' in ending ? ending.failure : undefined);
          expect(comparable(message)).toEqual(comparable(foldChunks(sent)));
        }
      }),
      { numRuns: runs },
    );
  }, 120_000);
});
