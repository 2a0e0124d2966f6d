import { describe, expect, it } from 'vitest';
import { createSessionRig, settled } from '../../test/session-rig.ts';

const WEB = { channelType: 'web', channelId: 'default' };

describe('a session', () => {
  it('gives a prompt to its runner, and tells everybody the answer in V2 and in the old way [SES-02] [SES-12] [RUN-01]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client('ann');
    const bob = rig.client('bob');
    ann.say({ type: 'prompt', content: 'Hello?', promptId: 'p1', turnId: 't1', model: 'm' });
    expect(runner.last('prompt')).toEqual({
      type: 'prompt',
      messageId: 'p1',
      turnId: 't1',
      content: 'Hello?',
      model: 'm',
      ...WEB,
      author: { id: 'ann', name: 'ann' },
    });
    runner.say({ type: 'message.create', turnId: 't1' });
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Hi.' });
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    runner.say({ type: 'complete', messageId: 'p1' });
    await settled();
    const ids = { turnId: 't1', promptId: 'p1', ...WEB };
    for (const { events } of [ann, bob]) {
      const told = events.filter(({ type }) => !/^(init|user\.)/.test(type));
      expect(told.map(({ createdAt: _, ...event }) => event)).toMatchObject([
        { type: 'message', data: { id: 'p1', role: 'user', content: 'Hello?', authorId: 'ann' } },
        { type: 'message.create', ...ids, seq: 1 },
        { type: 'message', data: { id: 't1', role: 'assistant', content: '', parts: [] } },
        { type: 'message.part.text-delta', ...ids, delta: 'Hi.', seq: 2 },
        { type: 'chunk', content: 'Hi.', messageId: 't1' },
        { type: 'message.finalize', ...ids, reason: 'end_turn', seq: 3 },
        { type: 'message.updated', data: { id: 't1', content: 'Hi.', promptId: 'p1' } },
        { type: 'complete', ...ids },
        { type: 'agentStatus', status: 'idle', ...ids },
        { type: 'status', data: { runnerBusy: false } },
      ]);
    }
    const [asked, answered] = rig.storage.messages();
    expect(asked).toMatchObject({ id: 'p1', role: 'user', content: 'Hello?' });
    expect(answered).toMatchObject({ id: 't1', role: 'assistant', content: 'Hi.' });
    expect(answered?.parts).toEqual([
      { type: 'text', text: 'Hi.' },
      { type: 'finish', reason: 'end_turn' },
    ]);
  });

  it('tells nothing that is not stored', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    ann.say({ type: 'prompt', content: 'Hello?', promptId: 'p1', turnId: 't1' });
    runner.say({ type: 'message.create', turnId: 't1' });
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Hi.' });
    expect(ann.of('message.part.text-delta')).toEqual([]);
    expect(rig.storage.events('t1', 0)).toEqual([]);
    await settled();
    expect(ann.of('message.part.text-delta')).toHaveLength(1);
    expect(rig.storage.events('t1', 0)).toHaveLength(1);
  });

  it('tells a newcomer the history and the running turn so far, and then only what follows [SES-03] [SES-09]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    ann.say({ type: 'prompt', content: 'One', promptId: 'p1', turnId: 't1' });
    runner.say({ type: 'message.create', turnId: 't1' });
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Half ' });
    // It comes in the very tick of the delta, before that has been told.
    const bob = rig.client('bob');
    const [init] = bob.events;
    expect(init).toMatchObject({
      session: {
        id: 's',
        messages: [
          { id: 'p1', content: 'One' },
          { id: 't1', content: 'Half ', parts: [{ type: 'text', text: 'Half ' }] },
        ],
      },
      data: { runnerBusy: true, turn: { turnId: 't1', promptId: 'p1', seq: 2 } },
    });
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'more' });
    await settled();
    expect(bob.of('message.part.text-delta')).toMatchObject([{ delta: 'more', seq: 3 }]);
    expect(ann.of('message.part.text-delta')).toMatchObject([{ seq: 2 }, { seq: 3 }]);
  });

  it('queues prompts while it is busy and says where they stand [SES-05]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    const bob = rig.client('bob');
    for (const n of [1, 2, 3]) {
      (n === 2 ? bob : ann).say({
        type: 'prompt',
        content: `${n}`,
        promptId: `p${n}`,
        turnId: `t${n}`,
      });
    }
    expect(ann.of('status').map(({ data }) => data)).toEqual([
      { promptQueued: true, queuePosition: 1, queueReason: 'busy', promptId: 'p2', turnId: 't2' },
      { promptQueued: true, queuePosition: 2, queueReason: 'busy', promptId: 'p3', turnId: 't3' },
    ]);
    expect(bob.last('queue.state')?.data).toMatchObject({
      queue: [
        { promptId: 'p2', position: 1, authorId: 'bob', content: '2' },
        { promptId: 'p3', position: 2, authorId: 'ann' },
      ],
    });
    expect(rig.client('cid').events[0]).toMatchObject({
      data: { promptsQueued: 2, queue: [{ promptId: 'p2' }, { promptId: 'p3' }] },
    });
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    expect(runner.of('prompt').map(({ turnId }) => turnId)).toEqual(['t1', 't2']);
    expect(ann.last('status')?.data).toMatchObject({
      promptDequeued: true,
      remaining: 1,
      promptId: 'p2',
    });
    expect(ann.last('queue.state')?.data).toMatchObject({
      queue: [{ promptId: 'p3', position: 1 }],
    });
    // The transcript has each answer behind its question.
    runner.say({ type: 'message.finalize', turnId: 't2', reason: 'end_turn' });
    runner.say({ type: 'message.finalize', turnId: 't3', reason: 'end_turn' });
    expect(rig.storage.messages().map(({ id }) => id)).toEqual([
      'p1',
      't1',
      'p2',
      't2',
      'p3',
      't3',
    ]);
    expect(rig.agent.isIdle).toBe(true);
  });

  it('takes a prompt once, however often it is sent', () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    const prompt = { type: 'prompt', content: 'Hi', promptId: 'p1', turnId: 't1' };
    ann.say(prompt);
    ann.say(prompt);
    const again = {
      type: 'status',
      data: { promptKnown: 'p1', turnId: 't1', turnStatus: 'running' },
    };
    expect(ann.events.at(-1)).toEqual(again);
    rig.client('bob').say({ ...prompt, content: 'Mine' });
    expect(runner.of('prompt')).toHaveLength(1);
    ann.say({ ...prompt, promptId: 'p2', turnId: 't2' });
    ann.say({ ...prompt, promptId: 'p2', turnId: 't2' });
    expect(ann.events.at(-1)).toMatchObject({ data: { promptQueued: true, queuePosition: 1 } });
    expect(rig.storage.openTurns()).toHaveLength(2);
  });

  it('refuses the prompt id of somebody else, and gives an answer an id of its own', () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    rig.client('ann').say({ type: 'prompt', content: 'Hi', promptId: 'p1', turnId: 't1' });
    const bob = rig.client('bob');
    bob.say({ type: 'prompt', content: 'Ho', promptId: 'p1' });
    expect(bob.last('error')).toMatchObject({
      refused: 'prompt',
      code: 'prompt-taken',
      promptId: 'p1',
    });
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    bob.say({ type: 'prompt', content: 'Ho', promptId: 'p2', turnId: 't1' });
    const { turnId } = runner.last('prompt') as { turnId?: unknown };
    expect(turnId).not.toBe('t1');
    expect(rig.storage.turnOfPrompt('p2')).toMatchObject({ turnId });
  });

  it('ends an aborted turn with a real finalize and leaves the queue of others alone [SES-06]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    const bob = rig.client('bob');
    ann.say({ type: 'prompt', content: '1', promptId: 'p1', turnId: 't1' });
    bob.say({ type: 'prompt', content: '2', promptId: 'p2', turnId: 't2' });
    runner.say({ type: 'message.create', turnId: 't1' });
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Half' });
    ann.say({ type: 'abort' });
    ann.say({ type: 'abort', turnId: 't1' });
    expect(runner.of('abort')).toEqual([{ type: 'abort', turnId: 't1', messageId: 'p1' }]);
    // Whatever a runner makes of it, it was stopped.
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'error', error: 'aborted' });
    await settled();
    expect(bob.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'canceled' }]);
    expect(bob.last('message.finalize')).not.toHaveProperty('error');
    expect(runner.last('prompt')).toMatchObject({ turnId: 't2' });
    expect(rig.storage.turn('t1')).toMatchObject({ status: 'ended', reason: 'canceled' });
  });

  it('stops the turn of a prompt, whatever that is called', () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    const bob = rig.client('bob');
    bob.say({ type: 'prompt', content: '1', promptId: 'p1', turnId: 't1' });
    ann.say({ type: 'prompt', content: '2', promptId: 'p2', turnId: 't1' });
    ann.say({ type: 'abort', promptId: 'p2' });
    expect(runner.of('abort')).toEqual([]);
    expect(bob.last('queue.withdrawn')).toMatchObject({ data: { promptId: 'p2' } });
    ann.say({ type: 'abort', promptId: 'p1' });
    expect(runner.last('abort')).toMatchObject({ turnId: 't1' });
    ann.say({ type: 'abort', promptId: 'nope' });
    expect(ann.last('error')).toMatchObject({ refused: 'abort', code: 'not-found' });
  });

  it('does not wait for ever for an agent that does not stop', () => {
    const rig = createSessionRig();
    rig.runner();
    const ann = rig.client();
    ann.say({ type: 'prompt', content: '1', promptId: 'p1', turnId: 't1' });
    ann.say({ type: 'abort' });
    rig.clock.pass(9_999);
    expect(ann.of('message.finalize')).toEqual([]);
    rig.clock.pass(1);
    expect(ann.of('message.create')).toHaveLength(1);
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'canceled' }]);
  });

  it('lets people take back what they asked, and owners what others asked [SES-07]', () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    const bob = rig.client('bob');
    const olga = rig.client('olga', { role: 'owner' });
    for (const n of [1, 2, 3, 4]) {
      ann.say({ type: 'prompt', content: `${n}`, promptId: `p${n}`, turnId: `t${n}` });
    }
    bob.say({ type: 'withdraw', promptId: 'p2' });
    expect(bob.last('error')).toMatchObject({
      refused: 'withdraw',
      code: 'not-found',
      promptId: 'p2',
    });
    ann.say({ type: 'withdraw', promptId: 'p2' });
    expect(bob.last('queue.withdrawn')?.data).toEqual({
      promptId: 'p2',
      turnId: 't2',
      content: '2',
    });
    olga.say({ type: 'abort', turnId: 't3' });
    expect(bob.last('queue.withdrawn')?.data).toMatchObject({ promptId: 'p3' });
    ann.say({ type: 'withdraw', promptId: 'p1' });
    expect(ann.last('error')).toMatchObject({ code: 'not-queued' });
    ann.say({ type: 'withdraw', promptId: 'nope' });
    expect(ann.last('error')).toMatchObject({ code: 'not-found' });
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    expect(runner.of('prompt').map(({ turnId }) => turnId)).toEqual(['t1', 't4']);
    expect(rig.storage.messages().map(({ id }) => id)).toEqual(['p1', 't1', 'p4']);
  });

  it('holds those who may only watch to it [SES-14] [SES-15]', () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const vera = rig.client('vera', { role: 'viewer' });
    for (const message of [
      { type: 'prompt', content: 'Hi' },
      { type: 'abort' },
      { type: 'answer', questionId: 'q', answer: 'Yes' },
      { type: 'withdraw', promptId: 'p' },
    ]) {
      vera.say(message);
      expect(vera.last('error')).toMatchObject({ refused: message.type, code: 'may-only-watch' });
    }
    vera.say({ type: 'ping' });
    expect(vera.last('pong')).toEqual({ type: 'pong' });
    expect(runner.of('prompt')).toEqual([]);
    expect(vera.events[0]).toMatchObject({ data: { role: 'viewer' } });
  });

  it('refuses what it does not understand, and what is too much', () => {
    const rig = createSessionRig({ limits: { queuedPrompts: 1, promptBytes: 200 } });
    const ann = rig.client();
    const bad = [
      ...['', 'null', '[]', '{"type":"nope"}', '{"type":"prompt"}', '{"type":"__proto__"}'],
      ...['{"type":"prompt","content":""}', '{"type":"prompt","content":"x","promptId":7}'],
      ...['{"type":"answer","questionId":"q","answer":{}}', '{"type":"follow","turnId":1}'],
    ];
    for (const frame of bad) {
      ann.say(frame);
      expect(ann.events.at(-1), frame).toMatchObject({ type: 'error', code: 'bad-request' });
    }
    ann.say({ type: 'prompt', content: 'x'.repeat(300), promptId: 'big' });
    expect(ann.last('error')).toMatchObject({ code: 'body-too-large' });
    ann.say({ type: 'prompt', content: '1' });
    ann.say({ type: 'prompt', content: '2' });
    expect(ann.last('error')).toMatchObject({ code: 'queue-full' });
    rig.agent.drain();
    ann.say({ type: 'prompt', content: '3' });
    expect(ann.last('error')).toMatchObject({ code: 'shutting-down' });
  });

  it('keeps channels apart for those who follow one [SES-11]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1', { needsHistory: true });
    const slack = { channelType: 'slack', channelId: 'c1' };
    const all = rig.client('ann');
    const onWeb = rig.client('bob', { channel: WEB });
    const onSlack = rig.client('cid', { channel: slack });
    all.say({ type: 'prompt', content: 'web', promptId: 'p1', turnId: 't1' });
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'A' });
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    all.say({ type: 'prompt', content: 'slack', promptId: 'p2', turnId: 't2', ...slack });
    expect(runner.last('prompt')).toMatchObject({ ...slack, messages: [] });
    runner.say({ type: 'message.part.text-delta', turnId: 't2', delta: 'B' });
    await settled();
    const texts = (socket: typeof all) =>
      socket.of('message.part.text-delta').map(({ delta }) => delta);
    expect([texts(all), texts(onWeb), texts(onSlack)]).toEqual([['A', 'B'], ['A'], ['B']]);
    expect(onWeb.of('message').map(({ data }) => (data as { id: string }).id)).toEqual([
      'p1',
      't1',
    ]);
    const late = rig.client('dan', { channel: WEB }).events[0];
    expect(late).toMatchObject({
      session: { messages: [{ id: 'p1' }, { id: 't1' }] },
      data: { turn: null, channels: [WEB, slack] },
    });
  });

  it('passes a runner’s domain events on as they are, but lets it not speak for the session [SES-04]', () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    const seen = ann.events.length;
    const diff = { type: 'diff', data: { files: [{ path: 'a.ts', status: 'modified' }] } };
    runner.say(diff);
    runner.say({ type: 'models', models: [{ provider: 'P', models: [] }], runnerSeq: 1 });
    for (const type of ['init', 'status', 'message', 'user.joined', 'queue.state', 'pong']) {
      runner.say({ type, data: {} });
    }
    expect(ann.events.slice(seen)).toEqual([
      diff,
      { type: 'models', models: [{ provider: 'P', models: [] }] },
    ]);
    expect(rig.client('bob').events[0]).toMatchObject({ data: { models: [{ provider: 'P' }] } });
  });

  it('tells who is there, once for each', () => {
    const rig = createSessionRig();
    const ann = rig.client('ann');
    const again = rig.client('ann');
    const bob = rig.client('bob');
    expect(ann.of('user.joined').map(({ userId }) => userId)).toEqual(['ann', 'bob']);
    ann.say({ type: 'prompt', content: 'Hi' });
    again.drop();
    bob.drop();
    expect(ann.of('user.left')).toMatchObject([
      { userId: 'bob', connectedUsers: [{ id: 'ann', name: 'ann' }] },
    ]);
    expect(rig.storage.participants().map(({ id, role }) => [id, role])).toEqual([
      ['ann', 'collaborator'],
      ['bob', 'collaborator'],
    ]);
  });

  it('lets a client go that is too far behind, and nobody else', async () => {
    const rig = createSessionRig({ limits: { clientBufferBytes: 1_000 } });
    const runner = rig.runner();
    const ann = rig.client('ann');
    const slow = rig.client('bob');
    slow.buffered = 1_001;
    ann.say({ type: 'prompt', content: '1', promptId: 'p1', turnId: 't1' });
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'A' });
    await settled();
    // A large message takes its time on the way: only who stays behind is let go.
    expect(slow.closed).toBeUndefined();
    rig.clock.pass(5_000);
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'B' });
    await settled();
    expect(slow.closed).toEqual({ code: 4008, reason: 'too far behind' });
    expect(ann.of('message.part.text-delta')).toHaveLength(2);
    expect(rig.agent.clientCount).toBe(1);
  });

  it('fails a turn that grows without end', async () => {
    const rig = createSessionRig({ limits: { turnBytes: 1_000 } });
    const runner = rig.runner();
    const ann = rig.client();
    ann.say({ type: 'prompt', content: '1', promptId: 'p1', turnId: 't1' });
    for (let i = 0; i < 20; i++) {
      runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'x'.repeat(100) });
    }
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ reason: 'error', code: 'turn-too-large' }]);
    expect(runner.last('abort')).toMatchObject({ turnId: 't1' });
  });
});
