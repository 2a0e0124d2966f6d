import { describe, expect, it, vi } from 'vitest';
import { createSessionRig, type SessionRig, settled } from '../../test/session-rig.ts';
import type { Steer } from '../turns/log.ts';

const ASK = { type: 'prompt', content: 'Hi', promptId: 'p1', turnId: 't1' };

/** A turn that has said something. */
async function begin(rig: SessionRig) {
  const runner = rig.runner('r1');
  const ann = rig.client();
  ann.say(ASK);
  await settled();
  runner.text('t1', 'Half ');
  await settled();
  return { runner, ann, turnId: rig.turnIdOf('t1') };
}

describe('questions', () => {
  async function ask(rig: SessionRig, data: object = {}) {
    const begun = await begin(rig);
    const options = ['Yes', 'No'];
    begun.runner.ask('t1', 'q1', { options, expiresAt: Date.now() + 300_000, ...data });
    await settled();
    return begun;
  }

  it('are answered once, by the first who answers [RUN-03]', async () => {
    const rig = createSessionRig();
    const { runner, ann, turnId } = await ask(rig);
    const { expiresAt } = ann.last('question') as { expiresAt?: number };
    expect(ann.of('question')).toMatchObject([{ questionId: 'q1', turnId: 't1' }]);
    const bob = rig.client('bob');
    await settled();
    expect(bob.events[0]).toMatchObject({ data: { questions: [{ questionId: 'q1', expiresAt }] } });
    bob.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    ann.say({ type: 'answer', questionId: 'q1', answer: 'No' });
    await settled();
    expect(runner.of('answer')).toEqual([
      { type: 'answer', turnId, questionId: 'q1', answer: 'Yes' },
    ]);
    expect(ann.last('error')).toMatchObject({
      refused: 'answer',
      code: 'question-answered',
      questionId: 'q1',
    });
    // The agent shows how its question ended.
    runner.ask('t1', 'q1', { status: 'answered', answer: 'Yes' });
    await settled();
    expect(ann.last('status')).toMatchObject({
      turnId: 't1',
      promptId: 'p1',
      seq: 5,
      data: { questionAnswered: 'q1', answer: 'Yes' },
    });
    ann.say({ type: 'answer', questionId: 'nope', answer: 'No' });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'not-found' });
    runner.finish('t1');
    await settled();
    expect(rig.storage.messages().at(-1)?.parts).toContainEqual(
      expect.objectContaining({
        type: 'data-question',
        data: expect.objectContaining({ status: 'answered', answer: 'Yes' }),
      }),
    );
  });

  it('of a deployed runner get their time and their end from the session', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client();
    ann.say(ASK);
    await settled();
    runner.say({ type: 'message.create', turnId: 'x1' });
    const question = { type: 'question', questionId: 'q1', text: 'Deploy?', options: ['Yes'] };
    runner.say(question);
    runner.say(question);
    await settled();
    const [asked] = ann.of('question') as { expiresAt?: number }[];
    expect(ann.of('question')).toHaveLength(1);
    expect(Math.abs(Number(asked?.expiresAt) - Date.now() / 1_000 - 300)).toBeLessThan(5);
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    await settled();
    expect(runner.of('answer')).toEqual([{ type: 'answer', questionId: 'q1', answer: 'Yes' }]);
    expect(ann.last('status')).toMatchObject({ data: { questionAnswered: 'q1', answer: 'Yes' } });
  });

  it.each(['ours', 'deployed'])('expire, and the agent (%s) learns it [SES-08]', async (make) => {
    const timing = { questionMs: 50 };
    const rig = createSessionRig({ timing, turns: { leaseMs: 60 } });
    const isOurs = make === 'ours';
    const ann = rig.client();
    let runner = isOurs ? undefined : rig.foreignRunner();
    if (runner) {
      ann.say(ASK);
      await settled();
      runner.say({ type: 'message.create', turnId: 'x1' });
      runner.say({ type: 'question', questionId: 'q1', text: 'Deploy?' });
    } else ({ runner } = await ask(rig, { expiresAt: Date.now() + 50 }));
    await vi.waitFor(() => expect(runner.of(isOurs ? 'expire' : 'answer')).toHaveLength(1));
    if (isOurs) expect(runner.last('expire')).toMatchObject({ questionId: 'q1' });
    else expect(runner.last('answer')).toMatchObject({ questionId: 'q1', answer: '__expired__' });
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'question-expired' });
    if (!isOurs) {
      expect(ann.last('status')).toMatchObject({ data: { questionExpired: 'q1' } });
    }
    await rig.close();
  });

  it('are no longer open when the turn ends', async () => {
    const rig = createSessionRig();
    const { ann } = await ask(rig);
    expect(await rig.session.openQuestions()).toHaveLength(1);
    ann.say({ type: 'abort' });
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'question-expired' });
    expect(await rig.session.openQuestions()).toEqual([]);
  });

  it('and messages for the turn reach the runner when it comes back, also after a restart', async () => {
    const rig = createSessionRig();
    const { runner, turnId } = await ask(rig);
    runner.drop();
    const message: Steer = { type: 'steer', id: 'm1', text: 'More!', attachments: [] };
    const { running, log } = rig.session;
    expect(await log.command(running?.turnId as string, message)).toBe(true);
    await settled();
    const steer = { type: 'steer', turnId, message };
    const back = rig.runner('r1', { turnId, known: [turnId] });
    expect(back.of('steer')).toEqual([steer]);
    rig.restart();
    const again = rig.runner('r1', { turnId, known: [turnId] });
    await settled();
    expect(again.of('steer')).toEqual([steer]);
  });

  it('reach a runner behind the prompt that it never got', async () => {
    const rig = createSessionRig();
    const { runner, turnId } = await ask(rig);
    runner.drop();
    const message: Steer = { type: 'steer', id: 'm1', text: 'More!', attachments: [] };
    await rig.session.log.command(rig.session.running?.turnId as string, message);
    await settled();
    const back = rig.runner('r1');
    await settled();
    expect(back.of('prompt')).toHaveLength(1);
    expect(back.of('steer')).toEqual([{ type: 'steer', turnId, message }]);
  });

  it('that were answered while the runner was away reach it when it comes back, also after a restart', async () => {
    const rig = createSessionRig();
    const { runner, ann, turnId } = await ask(rig);
    runner.drop();
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    await settled();
    const answer = { type: 'answer', turnId, questionId: 'q1', answer: 'Yes' };
    const back = rig.runner('r1', { turnId, known: [turnId] });
    expect(back.of('answer')).toEqual([answer]);
    rig.restart();
    const again = rig.runner('r1', { turnId, known: [turnId] });
    await settled();
    expect(again.of('answer')).toEqual([answer]);
  });
});
