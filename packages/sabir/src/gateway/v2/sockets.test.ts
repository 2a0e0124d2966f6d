import { describe, expect, it } from 'vitest';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { createSessionRig, settled, type TestSocket } from '../../../test/session-rig.ts';

const WEB = { channelType: 'web', channelId: 'default' };

const ask = (n: number, more: object = {}) => ({
  type: 'prompt',
  content: `${n}`,
  promptId: `p${n}`,
  turnId: `t${n}`,
  ...more,
});

describe('the V2 sockets of a session', () => {
  it('show a newcomer the history and the running turn so far, then only what follows [SES-03] [SES-09]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    ann.say(ask(1));
    await settled();
    runner.text('t1', 'Half ');
    await settled();
    runner.text('t1', 'more');
    // It connects in the very tick of the delta, before that is in the log.
    const bob = rig.client('bob');
    await settled();
    const [init] = bob.events;
    expect(init).toMatchObject({
      session: {
        id: 's',
        messages: [
          { id: 'p1', content: '1' },
          { id: 't1', content: 'Half ', parts: [{ type: 'text', text: 'Half ' }] },
        ],
      },
      data: { runnerBusy: true, turn: { turnId: 't1', promptId: 'p1', seq: 3 } },
    });
    expect(bob.of('message.part.text-delta')).toMatchObject([{ delta: 'more', seq: 4 }]);
    expect(ann.of('message.part.text-delta')).toMatchObject([{ seq: 3 }, { seq: 4 }]);
  });

  it('take what is regenerated off the screen, and show what follows in its place', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    ann.say(ask(1));
    await settled();
    runner.text('t1', 'First');
    runner.finish('t1');
    await settled();
    // Through a gateway, by the id of the answer.
    const request = { promptId: 'p2', turnId: 'turn 2', messageId: 't2', text: '1', bytes: 1 };
    const naming = { trigger: 'regenerate-message', replaces: 't1' } as const;
    rig.session.prompt({ ...request, ...naming }, { user: { id: 'ann' }, role: 'collaborator' });
    await settled();
    expect(ann.last('messages.removed')).toEqual({
      type: 'messages.removed',
      messageIds: ['p1', 't1'],
    });
    expect(ann.of('message').at(-1)).toMatchObject({ data: { id: 'p2', content: '1' } });
    const bob = rig.client('bob');
    await settled();
    const [init] = bob.events;
    expect(init).toMatchObject({ session: { messages: [{ id: 'p2', content: '1' }] } });
  });

  it('refuse every change of a viewer [SES-14] [SES-15]', async () => {
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
      await settled();
      expect(vera.last('error')).toMatchObject({ refused: message.type, code: 'may-only-watch' });
    }
    vera.say({ type: 'ping' });
    await settled();
    expect(vera.last('pong')).toEqual({ type: 'pong' });
    expect(runner.of('prompt')).toEqual([]);
    expect(vera.events[0]).toMatchObject({ data: { role: 'viewer' } });
  });

  it('refuse what is no message, and what is too much', async () => {
    const rig = createSessionRig({ limits: { queuedPrompts: 1, promptBytes: 200 } });
    const ann = rig.client();
    const bad = [
      ...['', 'null', '[]', '{"type":"nope"}', '{"type":"prompt"}', '{"type":"__proto__"}'],
      ...['{"type":"prompt","content":""}', '{"type":"prompt","content":"x","promptId":7}'],
      ...['{"type":"answer","questionId":"q","answer":{}}', '{"type":"follow","turnId":1}'],
    ];
    for (const frame of bad) {
      ann.say(frame);
      await settled();
      expect(ann.events.at(-1), frame).toMatchObject({ type: 'error', code: 'bad-request' });
    }
    ann.say({ type: 'prompt', content: 'x'.repeat(300), promptId: 'big' });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'body-too-large' });
    ann.say({ type: 'prompt', content: '1' });
    ann.say({ type: 'prompt', content: '2' });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'queue-full' });
    rig.session.drain();
    ann.say({ type: 'prompt', content: '3' });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'shutting-down' });
  });

  it('show a client of one channel nothing of the others [SES-11]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1', { needsHistory: true });
    const slack = { channelType: 'slack', channelId: 'c1' };
    const all = rig.client('ann');
    const onWeb = rig.client('bob', { channel: WEB });
    const onSlack = rig.client('cid', { channel: slack });
    all.say(ask(1));
    await settled();
    runner.text('t1', 'A');
    runner.finish('t1');
    all.say(ask(2, slack));
    await settled();
    // Of the history, the runner gets what was said in the channel.
    expect(runner.last('prompt')).toMatchObject({
      prompt: { channel: slack, messages: [{ id: 'p2' }] },
    });
    runner.text('t2', 'B');
    await settled();
    const texts = (socket: TestSocket) =>
      socket.of('message.part.text-delta').map(({ delta }) => delta);
    expect([texts(all), texts(onWeb), texts(onSlack)]).toEqual([['A', 'B'], ['A'], ['B']]);
    expect(onWeb.of('message').map(({ data }) => (data as { id: string }).id)).toEqual([
      ...['p1', 't1'],
    ]);
    const late = rig.client('dan', { channel: WEB });
    await settled();
    expect(late.events[0]).toMatchObject({
      session: { messages: [{ id: 'p1' }, { id: 't1' }] },
      data: { turn: null, channels: [WEB, slack] },
    });
  });

  it.each([
    ['ours', (event: object) => ({ type: 'event', event })],
    ['deployed', (event: object) => event],
  ])(
    'pass session events of a runner (%s) on as they are, but none of the session’s own types [SES-04]',
    async (make, toFrame) => {
      const rig = createSessionRig();
      const runner = make === 'ours' ? rig.runner() : rig.foreignRunner();
      const ann = rig.client();
      await settled();
      const seen = ann.events.length;
      const diff = { type: 'diff', data: { files: [{ path: 'a.ts', status: 'modified' }] } };
      runner.say(toFrame(diff));
      runner.say(toFrame({ type: 'models', models: [{ provider: 'P', models: [] }] }));
      for (const type of ['init', 'status', 'message', 'user.joined', 'queue.state', 'pong']) {
        runner.say(toFrame({ type, data: {} }));
      }
      await settled();
      expect(ann.events.slice(seen)).toEqual([
        diff,
        { type: 'models', models: [{ provider: 'P', models: [] }] },
      ]);
      const bob = rig.client('bob');
      await settled();
      expect(bob.events[0]).toMatchObject({ data: { models: [{ provider: 'P' }] } });
    },
  );

  it('say who is there, once for each user', async () => {
    const rig = createSessionRig();
    const ann = rig.client('ann');
    await settled();
    const again = rig.client('ann');
    const bob = rig.client('bob');
    await settled();
    expect(ann.of('user.joined').map(({ userId }) => userId)).toEqual(['bob']);
    expect(bob.events[0]).toMatchObject({
      data: { connectedClients: 3, connectedUsers: [{ id: 'ann' }, { id: 'bob' }] },
    });
    ann.say({ type: 'prompt', content: 'Hi' });
    await settled();
    again.drop();
    bob.drop();
    await settled();
    expect(ann.of('user.left')).toMatchObject([
      { userId: 'bob', connectedUsers: [{ id: 'ann', name: 'ann' }] },
    ]);
    expect(rig.storage.participants().map(({ id, role }) => [id, role])).toEqual([
      ['ann', 'collaborator'],
      ['bob', 'collaborator'],
    ]);
  });

  it('close the socket of a client that stays too far behind, and of no other', async () => {
    const rig = createSessionRig({ limits: { clientBufferBytes: 1_000 } });
    const runner = rig.runner();
    const ann = rig.client('ann');
    const slow = rig.client('bob');
    await settled();
    slow.buffered = 1_001;
    ann.say(ask(1));
    await settled();
    runner.text('t1', 'A');
    await settled();
    // A large message takes its time on the way.
    expect(slow.closed).toBeUndefined();
    rig.clock.pass(5_000);
    runner.text('t1', 'B');
    await settled();
    expect(slow.closed).toEqual({ code: 4008, reason: 'too far behind' });
    expect(ann.of('message.part.text-delta')).toHaveLength(2);
    expect(rig.sockets.size).toBe(1);
  });

  it('show every turn in order, also while the log is read more slowly than turns end', async () => {
    const reading = Promise.withResolvers<void>();
    let reads = 0;
    const rig = createSessionRig({
      agent: () => scriptedAgent(),
      log: (log) => ({
        ...log,
        async *read(turnId, after, ...rest) {
          // The first to read are those who show the first turn.
          if (reads++ === 0) await reading.promise;
          yield* log.read(turnId, after, ...rest);
        },
      }),
    });
    const ann = rig.client();
    for (const n of [1, 2, 3]) ann.say(ask(n, { content: 'text' }));
    await settled();
    expect(ann.of('message.create')).toEqual([]);
    expect(rig.session.isIdle).toBe(true);
    reading.resolve();
    await settled();
    expect(ann.of('message.finalize').map(({ turnId }) => turnId)).toEqual(['t1', 't2', 't3']);
    const order = ann.events.flatMap(({ type, turnId, data, status }) => {
      if (type === 'message') return [(data as { id: string }).id];
      return status === 'idle' ? [`${turnId} idle`] : [];
    });
    expect(order).toEqual(['p1', 't1', 't1 idle', 'p2', 't2', 't2 idle', 'p3', 't3', 't3 idle']);
  });
});
