/** The sources there are, behind a session. */
import * as sdk from '@openai/agents';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { findToolFaults, runPrompt, until } from '../../../test/driver-run.ts';
import { echo, send } from '../../../test/harness-runtime.ts';
import { type Script, scriptedModel } from '../../../test/openai-agents/scripted-model.ts';
import { OpenHarnessChatTransport } from '../open-harness/index.ts';
import { toChunks } from '../openai-agents/index.ts';
import { chunkDriver } from './chunk-driver.ts';

sdk.setTracingDisabled(true);

it('a transport of Open Harness', async () => {
  const driver = chunkDriver({
    answer: ({ content, signal }) =>
      new OpenHarnessChatTransport(echo).sendMessages(send(content, { abortSignal: signal })),
  });
  const turn = runPrompt(driver, 'hi');
  await turn.done;
  expect(turn.text).toBe('You said hi');
});

function payingAgent(paid: number[]) {
  const script: Script = [
    { outputs: [{ reasoning: 'Hm.' }, { call: 'pay', input: { eur: 5 }, callId: 'c1' }] },
    { outputs: [{ text: 'All done.' }] },
  ];
  const pay = sdk.tool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({ eur: z.number() }),
    needsApproval: true,
    execute({ eur }) {
      paid.push(eur);
      return 'paid';
    },
  });
  return new sdk.Agent({ name: 'A', model: scriptedModel(sdk, script), tools: [pay] });
}

it.each([true, false])('a run of the OpenAI Agents SDK, approved: %s', async (approved) => {
  const paid: number[] = [];
  const agent = payingAgent(paid);
  type Run = Awaited<ReturnType<typeof start>>;
  const start = (input: string, signal: AbortSignal) =>
    sdk.run(agent, input, { stream: true, signal });
  let run: Run | undefined;
  const driver = chunkDriver({
    async answer({ content, signal }) {
      run = await start(content, signal);
      return toChunks(run, { approvals: true });
    },
    async proceed(approvals, { signal }, message) {
      const { state, interruptions } = run as Run;
      for (const interruption of interruptions) {
        const { callId } = interruption.rawItem as { callId: string };
        const isApproved = approvals.some((one) => one.callId === callId && one.approved);
        if (isApproved) state.approve(interruption);
        else state.reject(interruption);
      }
      const running = sdk.run(agent, state, { stream: true, signal });
      return toChunks(running, { approvals: true, message });
    },
  });
  const turn = runPrompt(driver, 'Pay 5 euros');
  await until(() => turn.questions.length === 1);
  expect(turn.questions[0]?.text).toBe('Use the tool “pay” with {"eur":5}?');
  expect(turn.tools.at(-1)?.status).toBe('running');
  turn.answer(approved);
  await turn.done;
  expect(paid).toEqual(approved ? [5] : []);
  expect(findToolFaults(turn.events)).toEqual([]);
  expect(turn.tools.at(-1)?.status).toBe(approved ? 'completed' : 'error');
  // Nobody is shown the same question twice.
  const data = turn.events.flatMap((event) => (event.type === 'data' ? event.name : []));
  expect(data).toEqual(['agent', 'agent']);
  expect(turn.reasoning).toBe('Hm.');
  expect(turn.text).toBe('All done.');
  expect(turn.events.some(({ type }) => type === 'usage')).toBe(true);
});
