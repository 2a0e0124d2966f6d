import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  AI_SDK_6,
  AI_SDK_6_0_9,
  AI_SDK_7,
  callTool,
  type ScriptedStep,
  say,
} from '../../../test/ai-sdk-models.ts';
import { type PromptRun, runPrompt, until } from '../../../test/run-prompt.ts';
import { aiSdkAgent } from './agent.ts';

describe.each([AI_SDK_6_0_9, AI_SDK_6, AI_SDK_7])('a tool of $name that needs approval', (sdk) => {
  function play(steps: ScriptedStep[], isAgent = false) {
    const paid: number[] = [];
    const { model, calls } = sdk.model(steps);
    const tools = {
      pay: {
        inputSchema: z.object({ eur: z.number() }),
        needsApproval: true,
        execute({ eur }: { eur: number }) {
          paid.push(eur);
          return `paid ${eur}`;
        },
      },
      lookup: { inputSchema: z.object({}), execute: () => 'found' },
    };
    const options = isAgent ? { agent: new sdk.Agent({ model, tools }) } : { model, tools };
    return { turn: runPrompt(aiSdkAgent({ ai: sdk.ai, ...options }), 'Pay'), paid, calls };
  }

  const pay = (callId: string, eur: number) => callTool(callId, 'pay', { eur });
  const endOf = (turn: PromptRun, callId: string) =>
    turn.tools.find(({ toolCallId }) => toolCallId === callId);

  it.each([false, true])(
    'runs once when it is approved, in the same turn (agent: %s)',
    async (isAgent) => {
      const { turn, paid, calls } = play([pay('c1', 5), say('Paid.')], isAgent);
      await until(() => turn.questions.length === 1);
      expect(turn.questions).toEqual([
        {
          questionId: expect.any(String),
          text: 'Use the tool “pay” with {"eur":5}?',
          options: ['Approve', 'Deny'],
          toolCallId: 'c1',
          status: 'open',
        },
      ]);
      expect(paid).toEqual([]);
      turn.answer('Approve');
      await turn.done;
      expect(paid).toEqual([5]);
      expect(endOf(turn, 'c1')).toMatchObject({ state: 'output-available', output: 'paid 5' });
      expect(turn.text).toBe('Paid.');
      expect(JSON.stringify(calls[1]?.prompt.at(-1))).toContain('paid 5');
      const types = turn.chunks.map(({ type }) => type);
      expect(types.filter((type) => type !== 'message-metadata')).toEqual([
        ...['start', 'start-step', 'tool-input-start', 'tool-input-delta', 'tool-input-delta'],
        ...['tool-input-available', 'finish-step', 'data-question', 'tool-approval-request'],
        ...[
          'finish-step',
          'data-question',
          'tool-output-available',
          'start-step',
          'text-start',
          'text-delta',
        ],
        ...['text-end', 'finish-step', 'finish'],
      ]);
      expect(turn.metadata.usage).toMatchObject({ inputTokens: 6 });
    },
  );

  it.each([
    ['Deny', 'It was not approved.'],
    ['Too much', 'Too much'],
    ['expired', 'Nobody answered in time.'],
  ])('does not run with %j, and the model goes on', async (answer, errorText) => {
    const { turn, paid, calls } = play([pay('c1', 5), say('As you wish.')]);
    await until(() => turn.questions.length === 1);
    if (answer === 'expired') turn.expire();
    else turn.answer(answer);
    await turn.done;
    expect(paid).toEqual([]);
    expect(endOf(turn, 'c1')).toMatchObject({ state: 'output-error', errorText });
    expect(turn.text).toBe('As you wish.');
    const told = JSON.stringify(calls[1]?.prompt.at(-1));
    expect(told).toContain('c1');
    expect(told).toContain('denied');
    if (answer === 'Too much') expect(told).toContain('Too much');
  });

  it('is asked for beside one that needs none, each by itself, and again in the next step', async () => {
    const { turn, paid, calls } = play([
      [...pay('c1', 5), ...callTool('c2', 'lookup', {}), ...pay('c3', 6)],
      pay('c4', 7),
      say('Done.'),
    ]);
    await until(() => turn.questions.length === 2);
    expect(turn.questions.map(({ toolCallId }) => toolCallId)).toEqual(['c1', 'c3']);
    turn.answer(true);
    turn.answer(false);
    await until(() => turn.questions.length === 3);
    turn.answer(true);
    await turn.done;
    expect(paid).toEqual([5, 7]);
    const ends = ['c1', 'c2', 'c3', 'c4'].map((callId) => endOf(turn, callId)?.state);
    const [done, refused] = ['output-available', 'output-error'];
    expect(ends).toEqual([done, done, refused, done]);
    expect(turn.text).toBe('Done.');
    const last = JSON.stringify(calls[2]?.prompt);
    for (const result of ['paid 5', 'found', 'denied', 'paid 7']) expect(last).toContain(result);
    expect(last.match(/"tool-call"/g)).toHaveLength(4);
    expect(last.match(/"tool-result"/g)).toHaveLength(4);
  });

  it('does not run when the turn is stopped while people are asked', async () => {
    const { turn, paid, calls } = play([pay('c1', 5), say('Paid.')]);
    await until(() => turn.questions.length === 1);
    turn.abort();
    await turn.done;
    expect(paid).toEqual([]);
    expect(calls).toHaveLength(1);
  });
});
