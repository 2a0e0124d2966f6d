/**
 * Runs that are played with every release of the SDK: recorded as fixtures, and read as they run.
 * Each has an agent, what its model says, and what is said to calls that wait.
 */
import { z } from 'zod';
import { HOSTED_SCENARIOS } from './hosted-scenarios.ts';
import {
  type Agent,
  calls,
  type Model,
  type Scenario,
  says,
  toolsOf,
  withTools,
} from './scenario-tools.ts';
import type { Sdk } from './sdks.ts';

const withoutTools = withTools();

export const SCENARIOS: readonly Scenario[] = [
  { name: 'text', agent: withoutTools, script: [says('Hello, how are you?')] },
  {
    name: 'tools',
    agent: withTools('weather', 'find', 'broken', 'slow', 'chart', 'report'),
    script: [
      calls({ text: 'I look. ' }, { call: 'weather', input: { city: 'Paris' } }),
      calls({ call: 'find' }),
      calls({ call: 'broken' }),
      calls({ call: 'slow' }),
      calls({ call: 'chart' }),
      calls({ call: 'report' }),
      says('That is all.'),
    ],
  },
  {
    name: 'bad-arguments',
    agent: withTools('weather'),
    script: [calls({ call: 'weather', input: '{"city":' }), says('I could not ask.')],
  },
  {
    name: 'parallel-calls',
    agent: withTools('weather', 'find', 'broken'),
    script: [
      calls(
        { call: 'weather', input: { city: 'Paris' } },
        { call: 'find' },
        { call: 'broken' },
        { call: 'weather', input: { city: 'Rome' } },
      ),
      says('Done.'),
    ],
  },
  {
    name: 'same-call-id-twice',
    agent: withTools('weather'),
    script: [
      calls({ call: 'weather', input: { city: 'Paris' }, callId: 'call' }),
      calls({ call: 'weather', input: { city: 'Rome' }, callId: 'call' }),
      says('Done.'),
    ],
  },
  {
    name: 'reasoning',
    agent: withTools('find'),
    script: [
      calls({ reasoning: ['First I look.', 'Then I think.'] }, { call: 'find' }),
      calls({ reasoning: 'Two hits.' }, { text: 'There are two.' }),
    ],
  },
  {
    name: 'handoff',
    agent(sdk, model) {
      const math = new sdk.Agent({ name: 'Math', model, handoffDescription: 'Counts.' });
      return new sdk.Agent({ name: 'Triage', model, handoffs: [math] });
    },
    script: [
      calls({ text: 'Somebody else knows. ' }, { call: 'transfer_to_Math' }),
      says('It is 4.'),
    ],
  },
  {
    name: 'approval',
    options: { approvals: true },
    agent: withTools('remove', 'weather'),
    answers: [{ approved: true }, { approved: false, reason: 'Not that one.' }, 'expired'],
    script: [
      calls(
        { text: 'I remove them. ' },
        { call: 'remove', input: { path: '/a' } },
        { call: 'weather', input: { city: 'Paris' } },
        { call: 'remove', input: { path: '/b' } },
        { call: 'remove', input: { path: '/c' } },
      ),
      says('One is gone.'),
    ],
  },
  {
    name: 'approval-as-question',
    agent: withTools('remove'),
    answers: [{ approved: true }, { approved: false }],
    script: [
      calls({ call: 'remove', input: { path: '/a' } }),
      calls({ call: 'remove', input: { path: '/b' } }),
      says('One is gone.'),
    ],
  },
  {
    name: 'nested-approval',
    options: { approvals: true },
    agent: withExpert,
    answers: [{ approved: true }],
    script: [
      calls({ call: 'ask_expert', input: { input: 'Remove it.' } }),
      calls({ call: 'remove', input: { path: '/a' } }),
      says('Removed.'),
      says('The expert removed it.'),
    ],
  },
  {
    name: 'nested-denial',
    options: { approvals: true },
    agent: withExpert,
    answers: [{ approved: false, reason: 'No.' }],
    script: [
      calls({ call: 'ask_expert', input: { input: 'Remove it.' } }),
      calls({ call: 'remove', input: { path: '/a' } }),
      says('I may not.'),
      says('The expert may not.'),
    ],
  },
  {
    name: 'refusal',
    since: '0.20',
    agent: withoutTools,
    script: [calls({ refusal: 'I cannot help with that.' })],
  },
  {
    name: 'length',
    agent: withoutTools,
    script: [{ outputs: [{ text: 'Half a' }], incomplete: 'max_output_tokens' }],
  },
  {
    name: 'content-filter',
    agent: withoutTools,
    script: [{ outputs: [{ text: 'Half a' }], incomplete: 'content_filter' }],
  },
  {
    name: 'max-turns',
    agent: withTools('find'),
    runOptions: { maxTurns: 2 },
    script: [calls({ call: 'find' }), calls({ call: 'find' }), calls({ call: 'find' })],
  },
  {
    name: 'input-guardrail',
    agent: (sdk, model) =>
      new sdk.Agent({
        name: 'Helper',
        model,
        inputGuardrails: [
          {
            name: 'manners',
            runInParallel: false,
            execute: async () => ({ tripwireTriggered: true, outputInfo: 'secret' }),
          },
        ],
      }),
    script: [says('Hello.')],
  },
  {
    name: 'output-guardrail',
    agent: (sdk, model) =>
      new sdk.Agent({
        name: 'Helper',
        model,
        outputGuardrails: [
          {
            name: 'manners',
            execute: async () => ({ tripwireTriggered: true, outputInfo: 'secret' }),
          },
        ],
      }),
    script: [says('Hello.')],
  },
  {
    name: 'tool-guardrail',
    agent: (sdk, model) => new sdk.Agent({ name: 'Helper', model, tools: [guarded(sdk)] }),
    script: [calls({ call: 'guarded' }), says('Hello.')],
  },
  {
    name: 'model-error',
    agent: withoutTools,
    script: [Object.assign(new Error('529 overloaded'), { status: 529 })],
  },
  {
    name: 'model-error-after-a-tool',
    agent: withTools('find'),
    script: [calls({ text: 'I look. ' }, { call: 'find' }), new Error('boom')],
  },
  ...HOSTED_SCENARIOS,
];

/** An agent that asks another one, which has a tool that waits. */
function withExpert(sdk: Sdk, model: Model): Agent {
  const expert = new sdk.Agent({ name: 'Expert', model, tools: [toolsOf(sdk).remove] });
  const ask = expert.asTool({ toolName: 'ask_expert', toolDescription: 'Knows.' });
  return new sdk.Agent({ name: 'Helper', model, tools: [ask] });
}

function guarded(sdk: Sdk) {
  return sdk.tool({
    name: 'guarded',
    description: 'A tool.',
    parameters: z.object({}),
    inputGuardrails: [
      sdk.defineToolInputGuardrail({
        name: 'manners',
        run: async () => sdk.ToolGuardrailFunctionOutputFactory.throwException('secret'),
      }),
    ],
    execute: async () => 'never',
  });
}
