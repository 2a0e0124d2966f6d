import { describe, expect, it } from 'vitest';
import { type DriverRun, findToolFaults, runPrompt, until } from '../../../test/driver-run.ts';
import type { Chunk } from '../../core/chunks.ts';
import { type Approval, type ChunkDriverOptions, chunkDriver } from './chunk-driver.ts';

async function* giving(chunks: unknown[]): AsyncGenerator<Chunk> {
  for (const chunk of chunks) yield chunk as Chunk;
}

const delta = (id: string, said: string) => ({ type: 'text-delta', id, delta: said });
const input = { eur: 5 };
const called = { type: 'tool-input-available', toolCallId: 'c', toolName: 'pay', input };

describe('approval', () => {
  const request = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' };

  function ask(more: Partial<ChunkDriverOptions> = {}) {
    const decided: Approval[][] = [];
    const driver = chunkDriver({
      answer: () => giving([called, request]),
      proceed(approvals) {
        decided.push(approvals);
        const isApproved = approvals.every(({ approved }) => approved);
        const output = { type: 'tool-output-available', toolCallId: 'c', output: 'paid' };
        const denied = { type: 'tool-output-denied', toolCallId: 'c' };
        return giving([isApproved ? output : denied, { type: 'start-step' }, delta('t', 'Done')]);
      },
      ...more,
    });
    return { turn: runPrompt(driver, 'pay'), decided };
  }

  async function answered(turn: DriverRun, answer: Parameters<DriverRun['answer']>[0]) {
    await until(() => turn.questions.length === 1);
    turn.answer(answer);
    await turn.done;
    expect(findToolFaults(turn.events)).toEqual([]);
    return turn.tools.at(-1);
  }

  it('is asked for with the tool and its input', async () => {
    const { turn, decided } = ask();
    expect(await answered(turn, 'Approve')).toMatchObject({ status: 'completed', result: 'paid' });
    expect(turn.questions).toEqual([
      {
        text: 'Use the tool “pay” with {"eur":5}?',
        options: ['Approve', 'Deny'],
        callId: 'c',
      },
    ]);
    const about = { approvalId: 'a', callId: 'c', toolName: 'pay', input: { eur: 5 } };
    expect(decided).toEqual([[{ ...about, providerExecuted: false, approved: true }]]);
    expect(turn.text).toBe('Done');
  });

  it.each([
    ['Deny', 'It was not approved.', undefined],
    [false, 'It was not approved.', undefined],
    ['Too much for today', 'Too much for today', 'Too much for today'],
    [{ status: 'expired' }, 'Nobody answered in time.', 'Nobody answered in time.'],
  ] as const)('is not given with %j', async (answer, error, reason) => {
    const { turn, decided } = ask();
    expect(await answered(turn, answer)).toMatchObject({ status: 'error', error });
    expect(decided[0]?.[0]).toMatchObject({ approved: false });
    expect(decided[0]?.[0]?.reason).toBe(reason);
    expect(turn.text).toBe('Done');
  });

  it('of a long input is asked for with its beginning', async () => {
    const input = { text: 'x'.repeat(5_000) };
    const { turn } = ask({ answer: () => giving([{ ...called, input }, request]) });
    await answered(turn, true);
    expect(turn.questions[0]?.text.length).toBeLessThan(1_100);
  });

  it('is asked for each call at once', async () => {
    const second = [
      { ...called, toolCallId: 'd' },
      { ...request, toolCallId: 'd', approvalId: 'b' },
    ];
    const { turn, decided } = ask({ answer: () => giving([called, request, ...second]) });
    await until(() => turn.questions.length === 2);
    turn.answer(true);
    turn.answer(false);
    await turn.done;
    expect(decided[0]?.map(({ callId, approved }) => [callId, approved])).toEqual([
      ['c', true],
      ['d', false],
    ]);
  });

  it('is not asked for twice by an answer that asks itself, nor if it is automatic', async () => {
    const own = runPrompt(chunkDriver({ answer: () => giving([called, request]) }), 'pay');
    await own.done;
    expect(own.questions).toEqual([]);
    expect(own.tools.at(-1)?.status).toBe('error');
    const automatic = { ...request, isAutomatic: true };
    const { turn } = ask({ answer: () => giving([called, automatic]) });
    await turn.done;
    expect(turn.questions).toEqual([]);
  });

  it('is not waited for when the agent has stopped', async () => {
    const { turn, decided } = ask({ answer: () => giving([called, request, { type: 'abort' }]) });
    await turn.done;
    expect(decided).toEqual([]);
    expect(turn.tools.at(-1)?.status).toBe('error');
  });

  it('does not outlive an answer that fails', async () => {
    const failing = [called, request, { type: 'error', errorText: 'It broke.' }];
    const { turn, decided } = ask({ answer: () => giving(failing) });
    await expect(turn.done).rejects.toThrow('It broke.');
    expect(decided).toEqual([]);
  });
});
