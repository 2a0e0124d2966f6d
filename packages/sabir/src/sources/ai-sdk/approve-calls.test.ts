import { describe, expect, it } from 'vitest';
import { type PromptRun, runPrompt, until } from '../../../test/run-prompt.ts';
import type { Chunk } from '../../core/chunks.ts';
import { type Approval, approveCalls } from './approve-calls.ts';

async function* giving(chunks: unknown[]): AsyncGenerator<Chunk> {
  for (const chunk of chunks) yield chunk as Chunk;
}

const input = { eur: 5 };
const start = { type: 'start' };
const finish = { type: 'finish', finishReason: 'stop' };
const called = { type: 'tool-input-available', toolCallId: 'c', toolName: 'pay', input };
const request = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' };
const output = { type: 'tool-output-available', toolCallId: 'c', output: 'paid' };
const denied = { type: 'tool-output-denied', toolCallId: 'c' };

function run(first: unknown[], isStubborn = false) {
  const decided: Approval[][] = [];
  const turn = runPrompt(
    (prompt) =>
      approveCalls(prompt, ({ approvals }) => {
        if (approvals.length === 0) return giving([start, ...first, finish]);
        decided.push(approvals);
        const isApproved = isStubborn || approvals.every(({ approved }) => approved);
        const said = [{ type: 'start-step' }, { type: 'text-delta', delta: 'Done' }];
        return giving([start, isApproved ? output : denied, ...said, finish]);
      }),
    'pay',
  );
  return { turn, decided };
}

async function answered(turn: PromptRun, answer: unknown) {
  await until(() => turn.questions.length === 1);
  if (answer === 'expired') turn.expire();
  else turn.answer(answer);
  await turn.done;
  return turn.tools.at(-1);
}

describe('the approval of a call', () => {
  it('is asked for with the tool and its input, and goes on in the same message', async () => {
    const { turn, decided } = run([called, request]);
    expect(await answered(turn, 'Approve')).toMatchObject({
      state: 'output-available',
      output: 'paid',
    });
    expect(turn.questions).toEqual([
      {
        questionId: expect.any(String),
        text: 'Use the tool “pay” with {"eur":5}?',
        options: ['Approve', 'Deny'],
        toolCallId: 'c',
        status: 'open',
      },
    ]);
    const about = { approvalId: 'a', callId: 'c', providerExecuted: false };
    expect(decided).toEqual([[{ ...about, approved: true }]]);
    expect(turn.text).toBe('Done');
    const types = turn.chunks.map(({ type }) => type);
    expect(types.filter((type) => /^(start|finish|tool-approval-.*)$/.test(type))).toEqual([
      ...['start', 'tool-approval-request', 'finish'],
    ]);
  });

  it.each([
    ['Deny', 'It was not approved.', undefined],
    [false, 'It was not approved.', undefined],
    ['Too much for today', 'Too much for today', 'Too much for today'],
    [{ approved: false, reason: 'No.' }, 'No.', 'No.'],
    ['expired', 'Nobody answered in time.', 'Nobody answered in time.'],
  ])('is not given with %j', async (answer, errorText, reason) => {
    const { turn, decided } = run([called, request]);
    expect(await answered(turn, answer)).toMatchObject({ state: 'output-error', errorText });
    expect(decided[0]?.[0]).toMatchObject({ approved: false });
    expect(decided[0]?.[0]?.reason).toBe(reason);
    expect(turn.text).toBe('Done');
  });

  it('that was refused ends the call with an error, also where an agent gives an output', async () => {
    const { turn } = run([called, request], true);
    expect(await answered(turn, 'Too much')).toMatchObject({
      state: 'output-error',
      errorText: 'Too much',
    });
  });

  it('of a long input is asked for with its beginning', async () => {
    const long = { ...called, input: { text: 'x'.repeat(5_000) } };
    const { turn } = run([long, request]);
    await answered(turn, true);
    expect(turn.questions[0]?.text.length).toBeLessThan(1_100);
  });

  it('is asked for each call at once', async () => {
    const second = [
      { ...called, toolCallId: 'd' },
      { ...request, toolCallId: 'd', approvalId: 'b' },
    ];
    const { turn, decided } = run([called, request, ...second]);
    await until(() => turn.questions.length === 2);
    turn.answer(true);
    turn.answer(false);
    await turn.done;
    expect(decided[0]?.map(({ callId, approved }) => [callId, approved])).toEqual([
      ['c', true],
      ['d', false],
    ]);
  });

  it.each([
    ['first', [called, 'question', request]],
    ['second', [called, request, 'question']],
  ])('is asked for on the terms of a question that comes %s, once', async (_, given) => {
    const answerBy = { role: 'owner' };
    const expiresAt = Date.now() + 60_000;
    const data = { questionId: 'q', text: 'Own?', toolCallId: 'c', answerBy, expiresAt };
    const question = { type: 'data-question', id: 'q', data };
    const { turn } = run(given.map((one) => (one === 'question' ? question : one)));
    await answered(turn, true);
    expect(turn.questions).toMatchObject([{ text: expect.stringContaining('pay'), answerBy }]);
    expect(Math.abs(Number(turn.questions[0]?.expiresAt) - expiresAt)).toBeLessThan(1_000);
  });

  it('is not asked for when the agent has decided by itself, and its reason is told', async () => {
    const { turn } = run([
      called,
      { ...request, isAutomatic: true },
      { type: 'tool-approval-response', approvalId: 'a', approved: false, reason: 'Too much.' },
      denied,
    ]);
    await turn.done;
    expect(turn.questions).toEqual([]);
    expect(turn.tools).toMatchObject([{ state: 'output-error', errorText: 'Too much.' }]);
  });

  it('is not waited for when the agent has stopped', async () => {
    const { turn, decided } = run([called, request, { type: 'abort' }]);
    await turn.done;
    expect(decided).toEqual([]);
    expect(turn.outcome).toMatchObject({ status: 'stopped' });
  });

  it('does not outlive an answer that fails', async () => {
    const failing = [called, request, { type: 'error', errorText: 'It broke.' }];
    const { turn, decided } = run(failing);
    await expect(turn.done).rejects.toThrow('It broke.');
    expect(decided).toEqual([]);
  });

  it('leaves what is no chunk to the translator', async () => {
    const { turn } = run([null, 5, { type: 7 }, called, request]);
    expect(await answered(turn, true)).toMatchObject({ state: 'output-available' });
  });
});
