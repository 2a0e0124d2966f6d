import { describe, expect, it } from 'vitest';
import { ask, begin, createSessionRig, settled } from '../../test/session-rig.ts';

const SLACK = { channelType: 'slack', channelId: 'c1' };

describe('the queue', () => {
  it('of a process that ended is shown again as it moves', async () => {
    const rig = createSessionRig();
    const { ann, turnId } = await begin(rig);
    ann.say(ask(2));
    await settled();
    rig.restart();
    const bob = rig.client('bob');
    await settled();
    expect(bob.events[0]).toMatchObject({ data: { queue: [{ promptId: 'p2' }] } });
    rig.runner('r1', { turnId, known: [turnId] }).finish('t1');
    await settled();
    expect(bob.last('queue.state')).toMatchObject({ data: { queue: [], queueReason: 'busy' } });
    expect(bob.last('status')).toMatchObject({ data: { promptDequeued: true, promptId: 'p2' } });
  });

  it('gives every prompt its own time for a runner to come', async () => {
    const rig = createSessionRig();
    const ann = rig.client('ann');
    ann.say(ask(1));
    ann.say(ask(2));
    await settled();
    for (const promptId of ['p1', 'p2']) {
      rig.clock.pass(59_000);
      ann.say({ type: 'withdraw', promptId });
      await settled();
    }
    ann.say(ask(3));
    await settled();
    rig.clock.pass(59_000);
    await settled();
    expect(ann.of('message.finalize')).toEqual([]);
    rig.clock.pass(1_000);
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't3', code: 'runner-absent' }]);
  });

  it('shows how a long prompt begins, and gives its runner the whole of it', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    const content = 'x'.repeat(100_000);
    ann.say(ask(2, { content }));
    ann.say(ask(3, { content }));
    ann.say({ type: 'withdraw', promptId: 'p3' });
    await settled();
    const bob = rig.client('bob');
    await settled();
    for (const shown of [ann.last('queue.state'), ann.last('queue.withdrawn'), bob.events[0]]) {
      expect(JSON.stringify(shown).length).toBeLessThan(2_500);
    }
    expect(ann.last('queue.withdrawn')).toMatchObject({ data: { content: 'x'.repeat(500) } });
    runner.finish('t1');
    await settled();
    expect(runner.last('prompt')).toMatchObject({ prompt: { messageId: 't2', text: content } });
  });

  it('holds a limited number of bytes, with files and what an earlier process left', async () => {
    const rig = createSessionRig({ limits: { queueBytes: 1_500 } });
    const ann = rig.client('ann');
    ann.say(ask(1, { content: 'x'.repeat(600) }));
    const attachments = [{ type: 'file', mime: 'text/plain', url: `data:,${'x'.repeat(600)}` }];
    ann.say(ask(2, { attachments }));
    await settled();
    expect(ann.of('error')).toEqual([]);
    rig.restart();
    const bob = rig.client('bob');
    bob.say(ask(3, { content: 'x'.repeat(400) }));
    await settled();
    expect(bob.last('error')).toMatchObject({ code: 'queue-full', promptId: 'p3' });
    rig.client('ann').say({ type: 'withdraw', promptId: 'p2' });
    await settled();
    bob.say(ask(3, { content: 'x'.repeat(400) }));
    await settled();
    expect(rig.storage.promptInfo('promptId', 'p3')).toMatchObject({ status: 'queued' });
  });

  it('says what has become of a prompt that is sent again, or stopped too late', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    ann.say(ask(2));
    ann.say({ type: 'withdraw', promptId: 'p2' });
    await settled();
    runner.finish('t1');
    await settled();
    const withdrawn = { type: 'queue.withdrawn', data: { promptId: 'p2', turnId: 't2' } };
    const ended = {
      type: 'status',
      data: { promptKnown: 'p1', turnId: 't1', turnStatus: 'ended' },
    };
    for (const [message, shown] of [
      [ask(2), withdrawn],
      [{ type: 'abort', turnId: 't2' }, withdrawn],
      [ask(1), ended],
      [{ type: 'abort', turnId: 't1' }, ended],
    ] as const) {
      const seen = ann.events.length;
      ann.say(message);
      await settled();
      expect(ann.events.slice(seen)).toEqual([shown]);
    }
    expect(runner.of('prompt')).toHaveLength(1);
  });
});

describe('a client of one channel', () => {
  it('sees nothing of the prompts and turns of another', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1');
    const elsewhere = rig.client('bob', { channel: SLACK });
    const ann = rig.client('ann');
    await settled();
    const seen = elsewhere.events.length;
    ann.say(ask(1));
    ann.say(ask(2));
    ann.say({ type: 'withdraw', promptId: 'p2' });
    ann.say(ask(3));
    await settled();
    runner.text('t1', 'Hello');
    runner.ask('t1', 'q1');
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    await settled();
    runner.finish('t1');
    await settled();
    expect(ann.of('queue.withdrawn')).toHaveLength(1);
    expect(ann.of('complete')).toHaveLength(1);
    // That the queue has changed is for everybody, but each client sees only its own channel's prompts.
    const shown = elsewhere.events.slice(seen);
    expect(new Set(shown.map(({ type }) => type))).toEqual(new Set(['queue.state']));
    for (const { data } of shown) expect(data).toMatchObject({ queue: [], pending: null });
  });

  it('cannot answer, stop or follow the turns of another', async () => {
    const rig = createSessionRig();
    const { runner } = await begin(rig);
    runner.ask('t1', 'q1');
    await settled();
    const elsewhere = rig.client('bob', { channel: SLACK });
    await settled();
    expect(elsewhere.events[0]).toMatchObject({ data: { turn: null, questions: [] } });
    for (const message of [
      { type: 'answer', questionId: 'q1', answer: 'Yes' },
      { type: 'abort', turnId: 't1' },
      { type: 'abort' },
      { type: 'follow', turnId: 't1' },
    ]) {
      elsewhere.say(message);
      await settled();
      const refused = { type: 'error', refused: message.type, code: 'not-found' };
      expect(elsewhere.events.at(-1)).toMatchObject(refused);
    }
    expect([...runner.of('answer'), ...runner.of('stop')]).toEqual([]);
    expect(await rig.session.openQuestions()).toHaveLength(1);
  });
});
