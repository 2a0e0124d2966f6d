import { describe } from 'vitest';
import { z } from 'zod';
import { describeAgent } from '../../../test/agent-conformance.ts';
import type { ScriptedResponse } from '../../../test/openai-agents/responses-script.ts';
import { scriptedModel } from '../../../test/openai-agents/scripted-model.ts';
import { SDKS } from '../../../test/openai-agents/sdks.ts';
import { agentsSdkAgent } from './index.ts';

type Item = { type?: string; role?: string; content?: unknown; output?: { text?: string } };

const call = (name: string, q: string) => ({
  outputs: [{ call: name, input: { q }, callId: 'c' }],
});
const say = (text: string): ScriptedResponse => ({ outputs: [{ text }] });

/** What the model says to a prompt, and then to the result of its tool. */
function respond(input: readonly Item[]): ScriptedResponse | Error {
  const result = input.findLast(({ type }) => type === 'function_call_result')?.output?.text;
  const asked = JSON.stringify(input.find(({ role }) => role === 'user')?.content);
  const [, word] = /\b(ask|tool|toolerror|fail|slow)\b/.exec(asked) ?? [];
  if (word === 'ask')
    return result === undefined ? call('approve', '') : say(`Answered: ${result}`);
  if (word === 'tool' || word === 'toolerror') {
    return result === undefined ? call('lookup', word) : say(`It is ${result}.`);
  }
  if (word === 'fail') return new Error('It broke.');
  return say(word === 'slow' ? 'Half ' : 'Hello, world!');
}

describe.each(SDKS)('Agents SDK $version', ({ sdk }) => {
  const parameters = z.object({ q: z.string() });
  const lookup = sdk.tool({
    name: 'lookup',
    description: 'Looks something up.',
    parameters,
    execute({ q }) {
      if (q === 'toolerror') throw new Error('Not found.');
      return '42';
    },
  });
  const approve = sdk.tool({
    name: 'approve',
    description: 'Says what people chose.',
    parameters,
    needsApproval: true,
    execute: () => 'Approve',
  });
  const model = scriptedModel(sdk, []);
  model.getStreamedResponse = (request) => {
    const response = respond(request.input as Item[]);
    const isSlow = JSON.stringify(response).includes('Half ');
    const stuck = scriptedModel(sdk, [response], undefined, {
      beforeEvent: ({ type }) =>
        isSlow && type === 'response.output_text.done' ? untilAborted(request.signal) : undefined,
    });
    return stuck.getStreamedResponse(request);
  };
  const { run, RunState } = sdk;
  const agent = new sdk.Agent({ name: 'A', tools: [lookup, approve], model });

  describeAgent(
    'of the Agents SDK',
    async () => ({
      agent: agentsSdkAgent({ agent, run, RunState }),
    }),
    ['Approve', 'Deny'],
  );
});

function untilAborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason));
  });
}
