import { describe, expect, it } from 'vitest';
import { createSessionRig, settled, textOf } from '../../test/session-rig.ts';

const ASK = { type: 'prompt', content: 'Hi', promptId: 'p1', turnId: 't1' };
const NEXT = { type: 'prompt', content: 'Next', promptId: 'p2', turnId: 't2' };

describe('a deployed runner', () => {
  it('names its turns itself', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client();
    ann.say({ ...ASK, model: 'm' });
    ann.say(NEXT);
    await settled();
    const web = { channelType: 'web', channelId: 'default' };
    expect(runner.events).toEqual([
      {
        ...{ type: 'prompt', messageId: 'p1', turnId: 't1', content: 'Hi', model: 'm' },
        ...{ ...web, author: { id: 'ann', name: 'ann' } },
      },
    ]);
    runner.say({ type: 'agentStatus', status: 'thinking', messageId: 'p1' });
    runner.say({ type: 'message.create', turnId: 'x1', channelType: 'web', channelId: 'other' });
    runner.say({ type: 'message.part.text-delta', turnId: 'x1', delta: 'Hi' });
    await settled();
    ann.say({ type: 'abort' });
    await settled();
    expect(runner.last('abort')).toEqual({ type: 'abort', turnId: 'x1', messageId: 'p1' });
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'canceled' }]);
    // It has to say that it has stopped before it gets the next prompt.
    expect(runner.of('prompt')).toHaveLength(1);
    runner.say({ type: 'aborted' });
    await settled();
    expect(runner.of('prompt')).toHaveLength(2);
    // Late events of the turn before must not harm the next.
    runner.say({ type: 'message.finalize', turnId: null, reason: 'error', error: 'aborted' });
    runner.say({ type: 'complete' });
    runner.say({ type: 'message.part.text-delta', turnId: 'x1', delta: 'late' });
    runner.say({ type: 'message.create', turnId: 'x2' });
    runner.say({ type: 'message.part.text-delta', turnId: null, delta: 'Ho' });
    runner.say({ type: 'complete' });
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([
      { turnId: 't1', promptId: 'p1', channelId: 'default', reason: 'canceled' },
      { turnId: 't2', promptId: 'p2', reason: 'end_turn' },
    ]);
    expect(rig.storage.messages().map(textOf)).toEqual(['Hi', 'Hi', 'Next', 'Ho']);
    expect(ann.of('agentStatus')[0]).toMatchObject({
      status: 'thinking',
      turnId: 't1',
      promptId: 'p1',
    });
  });

  it('that does not confirm a stop gets the next prompt after a while', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client();
    ann.say(ASK);
    await settled();
    ann.say({ type: 'abort' });
    ann.say(NEXT);
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'canceled' }]);
    rig.clock.pass(9_000);
    await settled();
    expect(runner.of('prompt')).toHaveLength(1);
    rig.clock.pass(1_000);
    await settled();
    expect(runner.of('prompt')).toHaveLength(2);
  });

  it('fails a turn that has not begun, in order', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client();
    ann.say(ASK);
    await settled();
    runner.say({ type: 'error', messageId: 'p1', error: 'No model.' });
    await settled();
    expect(ann.of('message.create')).toHaveLength(1);
    expect(ann.last('message.finalize')).toMatchObject({ reason: 'error', error: 'No model.' });
  });

  it('goes on with its turn after the session server was restarted', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    rig.client().say(ASK);
    await settled();
    runner.say({ type: 'message.create', turnId: 'x1' });
    runner.say({ type: 'message.part.text-delta', turnId: 'x1', delta: 'Half ' });
    await settled();
    rig.restart();
    const ann = rig.client();
    const back = rig.foreignRunner();
    await settled();
    expect(back.events).toEqual([]);
    back.say({ type: 'message.create', turnId: 'x1' });
    back.say({ type: 'message.part.text-delta', turnId: 'x1', delta: 'more' });
    back.say({ type: 'message.finalize', turnId: 'x1', reason: 'end_turn' });
    await settled();
    expect(textOf(rig.storage.messages().at(-1))).toBe('Half more');
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'end_turn' }]);
    rig.clock.pass(60_000);
    await settled();
    expect(rig.session.isIdle).toBe(true);
  });
});
