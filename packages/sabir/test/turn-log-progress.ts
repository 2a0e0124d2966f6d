/** The part of `turn-log-conformance.ts` that is about what `TurnInfo` tells of a turn. */
import { expect, it } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import type { TurnInfo } from '../src/turns/log.ts';
import { beginTurn, CLOSING, delta, FINISHED, OPENING, type Suite } from './turn-log-helpers.ts';

export function describeTurnLogProgress({ open, shortMs }: Suite): void {
  const asks = (id: string, more: object = {}): Chunk => ({
    type: 'data-question',
    id,
    data: { questionId: id, text: 'Sure?', status: 'open', ...more },
  });
  const waits = (status: string): Chunk => ({ type: 'data-queue', id: 'queue', data: { status } });

  it('queued until it says something, and while it says that it waits', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const status = async () => (await log.get(writer.turnId))?.status;
    expect(await status()).toBe('queued');
    await writer.append([{ type: 'start', messageId: 'm' }, waits('waiting')]);
    expect(await status()).toBe('queued');
    await writer.append([waits('begun'), { type: 'text-start', id: 't' }]);
    expect(await status()).toBe('running');
    await writer.append(CLOSING);
    await writer.close(FINISHED);
    expect(await status()).toBe('ended');
  });

  it('with the questions that it asked, and what came of them', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const questions = async () => (await log.get(writer.turnId))?.questions;
    await writer.append([...OPENING, asks('q1'), asks('q2', { answerBy: 'owner', expiresAt: 7 })]);
    expect(await questions()).toMatchObject([
      { questionId: 'q1', status: 'open' },
      { questionId: 'q2', status: 'open', answerBy: 'owner', expiresAt: 7 },
    ]);
    await writer.append([delta('a'), asks('q1', { status: 'answered', answer: 'Yes' })]);
    expect(await questions()).toMatchObject([
      { questionId: 'q1', status: 'answered', answer: 'Yes' },
      { questionId: 'q2', status: 'open' },
    ]);
    expect((await log.live('s', 'c'))[0]?.questions).toEqual(await questions());
    expect((await log.latest('s', 'c'))?.questions).toEqual(await questions());
  });

  it('with an answer that the agent has not confirmed', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    // Whatever an agent calls its questions.
    const ids = ['q', '__proto__', 'a "quoted"\nid'];
    await writer.append([...OPENING, ...ids.map((id) => asks(id))]);
    for (const questionId of ids) {
      expect(await log.command(writer.turnId, { type: 'answer', questionId, answer: 1 })).toBe(
        true,
      );
    }
    const { questions } = (await log.get(writer.turnId)) as TurnInfo;
    expect(questions.map(({ questionId }) => questionId)).toEqual(ids);
    expect(questions.every(({ isAnswered, status }) => isAnswered && status === 'open')).toBe(true);
  });

  it('with the tool calls that ask to be approved, and where their step ended', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    await writer.append([
      ...OPENING,
      { type: 'tool-approval-request', approvalId: 'a1', toolCallId: 'c1' },
    ]);
    const request = { questionId: 'a1', call: { toolCallId: 'c1', seq: 3 } };
    const asked = async () => (await log.get(writer.turnId))?.questions;
    expect(await asked()).toMatchObject([{ ...request, status: 'requested' }]);
    await writer.append([asks('a1'), { type: 'finish-step' }]);
    expect(await asked()).toMatchObject([{ status: 'open', call: { seq: 3, stepEnd: 5 } }]);
    await writer.append([{ type: 'tool-output-denied', toolCallId: 'c1' }]);
    expect(await asked()).toMatchObject([{ call: { isSettled: true } }]);
  });

  it('with the tool calls that a client is to run, until it has', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const waits = (status: string): Chunk => {
      return { type: 'data-client-tool', id: 'c1', data: { toolCallId: 'c1', status } };
    };
    const asked = async () => (await log.get(writer.turnId))?.questions;
    await writer.append([...OPENING, waits('waiting'), { type: 'finish-step' }]);
    const call = { toolCallId: 'c1', seq: 3, stepEnd: 4 };
    const waiting = { questionId: 'c1', status: 'open', isClientTool: true, call };
    expect(await asked()).toMatchObject([waiting]);
    await writer.append([
      waits('done'),
      { type: 'tool-output-available', toolCallId: 'c1', output: 1 },
    ]);
    expect(await asked()).toMatchObject([{ status: 'answered', call: { isSettled: true } }]);
  });

  it('also when a turn is lost', async () => {
    const log = await open({ leaseMs: shortMs });
    const writer = await beginTurn(log);
    await writer.append([...OPENING, asks('q')]);
    await expect.poll(async () => (await log.get(writer.turnId))?.status).toBe('ended');
    expect((await log.get(writer.turnId))?.questions).toMatchObject([{ questionId: 'q' }]);
  });
}
