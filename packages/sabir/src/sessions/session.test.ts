import { describe, expect, it } from 'vitest';
import { createSessionRig, settled, textOf } from '../../test/session-rig.ts';
import { foldChunks } from '../core/fold.ts';
import { toUIMessage } from './index.ts';

const WEB = { channelType: 'web', channelId: 'default' };

const ask = (n: number, more: object = {}) => ({
  type: 'prompt',
  content: `${n}`,
  promptId: `p${n}`,
  turnId: `t${n}`,
  ...more,
});

describe('a session', () => {
  it('gives a prompt to its runner, and shows all clients the answer in V2 and in the old dialect [SES-02] [SES-12] [RUN-01]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client('ann');
    const bob = rig.client('bob');
    ann.say({ type: 'prompt', content: 'Hello?', promptId: 'p1', turnId: 't1', model: 'm' });
    await settled();
    expect(runner.last('prompt')).toEqual({
      type: 'prompt',
      prompt: {
        sessionId: 's',
        chatId: '["web","default"]',
        chatKey: '["s","[\\"web\\",\\"default\\"]"]',
        turnId: rig.turnIdOf('t1'),
        messageId: 't1',
        promptId: 'p1',
        user: { id: 'ann', name: 'ann' },
        text: 'Hello?',
        attachments: [],
        messages: [{ id: 'p1', role: 'user', parts: [{ type: 'text', text: 'Hello?' }] }],
        body: { model: 'm' },
        channel: WEB,
      },
      questionMs: 300_000,
    });
    runner.text('t1', 'Hi.');
    runner.finish('t1');
    await settled();
    const ids = { turnId: 't1', promptId: 'p1', ...WEB };
    for (const { events } of [ann, bob]) {
      const shown = events.filter(({ type }) => !/^(init|user\.)/.test(type));
      expect(shown).toMatchObject([
        { type: 'message', data: { id: 'p1', role: 'user', content: 'Hello?', authorId: 'ann' } },
        { type: 'message.create', ...ids, seq: 1 },
        { type: 'message', data: { id: 't1', role: 'assistant', content: '', parts: [] } },
        { type: 'agentStatus', status: 'thinking', ...ids },
        { type: 'agentStatus', status: 'streaming', ...ids },
        { type: 'message.part.text-delta', ...ids, delta: 'Hi.', seq: 3 },
        { type: 'chunk', content: 'Hi.', messageId: 't1' },
        { type: 'message.finalize', ...ids, reason: 'end_turn', seq: 5 },
        { type: 'message.updated', data: { id: 't1', content: 'Hi.', promptId: 'p1' } },
        { type: 'complete', ...ids },
        { type: 'agentStatus', status: 'idle', ...ids },
        { type: 'status', data: { runnerBusy: false } },
      ]);
    }
    const [asked, answered] = rig.storage.messages();
    expect(asked).toMatchObject({ id: 'p1', role: 'user', parts: [{ text: 'Hello?' }], ...WEB });
    expect(answered).toMatchObject({ id: 't1', role: 'assistant', promptId: 'p1', ...WEB });
    expect(textOf(answered)).toBe('Hi.');
  });

  it('shows nothing that is not in the log', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    ann.say(ask(1));
    await settled();
    runner.text('t1', 'Hi.');
    expect(await rig.chunksOf('t1')).toEqual([]);
    expect(ann.of('message.part.text-delta')).toEqual([]);
    await settled();
    expect(await rig.chunksOf('t1')).toHaveLength(3);
    expect(ann.of('message.part.text-delta')).toHaveLength(1);
  });

  it('stores the fold of the log’s chunks as the message when a turn ends', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    rig.client().say(ask(1));
    await settled();
    const call = { toolCallId: 'c', toolName: 'look' };
    runner.chunks('t1', { type: 'start-step' }, { type: 'reasoning-start', id: 'r' });
    runner.chunks('t1', { type: 'reasoning-delta', id: 'r', delta: 'Think.' });
    runner.chunks('t1', { type: 'tool-input-available', ...call, input: { at: 'Oran' } });
    await settled();
    runner.chunks('t1', { type: 'tool-output-available', toolCallId: 'c', output: 3 });
    runner.chunks('t1', { type: 'data-chart', id: 'd', data: [1] });
    runner.text('t1', 'Three.');
    const usage = { inputTokens: 1, outputTokens: 2 };
    runner.chunks('t1', { type: 'finish', finishReason: 'stop', messageMetadata: { usage } });
    await settled();
    const [, stored] = rig.storage.messages();
    const folded = foldChunks(await rig.chunksOf('t1'));
    expect(stored && toUIMessage(stored)).toEqual(folded);
    expect(folded.parts.map(({ type }) => type)).toEqual([
      ...['step-start', 'reasoning', 'tool-look', 'data-chart', 'text'],
    ]);
    expect(folded.metadata).toMatchObject({ usage });
  });

  it('queues prompts while it is busy and says where they stand [SES-05]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    const bob = rig.client('bob');
    for (const n of [1, 2, 3]) {
      (n === 2 ? bob : ann).say(ask(n));
      await settled();
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
    const cid = rig.client('cid');
    await settled();
    expect(cid.events[0]).toMatchObject({
      data: { promptsQueued: 2, queue: [{ promptId: 'p2' }, { promptId: 'p3' }] },
    });
    runner.finish('t1');
    await settled();
    expect(runner.prompts()).toEqual(['t1', 't2']);
    expect(ann.last('status')?.data).toMatchObject({
      promptDequeued: true,
      remaining: 1,
      promptId: 'p2',
    });
    expect(ann.last('queue.state')?.data).toMatchObject({
      queue: [{ promptId: 'p3', position: 1 }],
    });
    runner.finish('t2');
    await settled();
    runner.finish('t3');
    await settled();
    // The history has each answer behind its question.
    expect(rig.storage.messages().map(({ id }) => id)).toEqual([
      ...['p1', 't1', 'p2', 't2', 'p3', 't3'],
    ]);
    expect(rig.session.isIdle).toBe(true);
  });

  it('prompts once, however often a prompt with the same id is sent', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    ann.say(ask(1));
    ann.say(ask(1));
    await settled();
    expect(ann.of('status')).toEqual([
      { type: 'status', data: { promptKnown: 'p1', turnId: 't1', turnStatus: 'running' } },
    ]);
    const bob = rig.client('bob');
    bob.say({ ...ask(1), content: 'Mine' });
    await settled();
    expect(runner.prompts()).toEqual(['t1']);
    ann.say(ask(2));
    ann.say(ask(2));
    await settled();
    expect(ann.last('status')).toMatchObject({ data: { promptQueued: true, queuePosition: 1 } });
    expect(rig.storage.openPrompts()).toHaveLength(2);
    const ben = { user: { id: 'ann' }, role: 'collaborator' } as const;
    expect(rig.session.prompt({ promptId: 'p1', text: 'Again', bytes: 5 }, ben)).toMatchObject({
      isNew: false,
      prompt: { promptId: 'p1', messageId: 't1' },
    });
    runner.finish('t1');
    await settled();
    expect(rig.session.prompt({ promptId: 'p1', text: 'Again', bytes: 5 }, ben).isNew).toBe(false);
    expect(runner.prompts()).toEqual(['t1', 't2']);
  });

  it('refuses the prompt id of another user, and gives an answer an id of its own', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    rig.client('ann').say(ask(1));
    const bob = rig.client('bob');
    bob.say(ask(1));
    await settled();
    expect(bob.last('error')).toMatchObject({
      refused: 'prompt',
      code: 'prompt-taken',
      promptId: 'p1',
    });
    runner.finish('t1');
    bob.say(ask(2, { turnId: 't1' }));
    await settled();
    const [, messageId] = runner.prompts();
    expect(messageId).not.toBe('t1');
    expect(rig.storage.promptInfo('promptId', 'p2')).toMatchObject({ messageId });
  });

  it('ends a stopped turn at once, and leaves the queue of others alone [SES-06]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    const bob = rig.client('bob');
    ann.say(ask(1));
    bob.say(ask(2));
    await settled();
    runner.text('t1', 'Half');
    await settled();
    ann.say({ type: 'abort' });
    ann.say({ type: 'abort', turnId: 't1' });
    await settled();
    expect(runner.of('stop')).toEqual([{ type: 'stop', turnId: rig.turnIdOf('t1') }]);
    expect(bob.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'canceled' }]);
    expect(bob.last('message.finalize')).not.toHaveProperty('error');
    expect(runner.prompts()).toEqual(['t1', 't2']);
    expect(rig.storage.promptInfo('messageId', 't1')).toMatchObject({
      status: 'ended',
      outcome: 'stopped',
    });
    // What the agent still says of it reaches nobody, and is confirmed.
    runner.text('t1', 'late');
    runner.text('t2', 'Mine');
    await settled();
    expect(bob.of('message.part.text-delta').map(({ delta }) => delta)).toEqual(['Half', 'Mine']);
    expect(textOf(rig.storage.messages()[1])).toBe('Half');
    const acks = runner.of('ack').filter(({ turnId }) => turnId === rig.turnIdOf('t1'));
    expect(acks.at(-1)).toMatchObject({ seq: 2 });
  });

  it('stops a turn that its log has not begun yet', async () => {
    const opening = Promise.withResolvers<void>();
    const rig = createSessionRig({
      log: (log) => ({
        ...log,
        async begin(info) {
          await opening.promise;
          return log.begin(info);
        },
      }),
    });
    const runner = rig.runner();
    const ann = rig.client();
    ann.say(ask(1));
    ann.say({ type: 'abort', turnId: 't1' });
    await settled();
    opening.resolve();
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'canceled' }]);
    expect(runner.of('stop').length).toBe(runner.of('prompt').length);
    expect(rig.session.isIdle).toBe(true);
  });

  it('stops the turn of a prompt, whatever the turn is called', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    const bob = rig.client('bob');
    bob.say(ask(1));
    await settled();
    ann.say(ask(2, { turnId: 't1' }));
    ann.say({ type: 'abort', promptId: 'p2' });
    await settled();
    expect(runner.of('stop')).toEqual([]);
    expect(bob.last('queue.withdrawn')).toMatchObject({ data: { promptId: 'p2' } });
    ann.say({ type: 'abort', promptId: 'p1' });
    await settled();
    expect(runner.last('stop')).toMatchObject({ turnId: rig.turnIdOf('t1') });
    ann.say({ type: 'abort', promptId: 'nope' });
    await settled();
    expect(ann.last('error')).toMatchObject({ refused: 'abort', code: 'not-found' });
  });

  it('lets people take back what they asked, and owners what others asked [SES-07]', async () => {
    const rig = createSessionRig();
    const runner = rig.runner();
    const ann = rig.client();
    const bob = rig.client('bob');
    const olga = rig.client('olga', { role: 'owner' });
    for (const n of [1, 2, 3, 4]) ann.say(ask(n));
    await settled();
    bob.say({ type: 'withdraw', promptId: 'p2' });
    await settled();
    expect(bob.last('error')).toMatchObject({
      refused: 'withdraw',
      code: 'not-found',
      promptId: 'p2',
    });
    ann.say({ type: 'withdraw', promptId: 'p2' });
    await settled();
    expect(bob.last('queue.withdrawn')?.data).toEqual({
      promptId: 'p2',
      turnId: 't2',
      content: '2',
    });
    olga.say({ type: 'abort', turnId: 't3' });
    await settled();
    expect(bob.last('queue.withdrawn')?.data).toMatchObject({ promptId: 'p3' });
    ann.say({ type: 'withdraw', promptId: 'p1' });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'not-queued' });
    ann.say({ type: 'withdraw', promptId: 'nope' });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'not-found' });
    runner.finish('t1');
    await settled();
    expect(runner.prompts()).toEqual(['t1', 't4']);
    expect(rig.storage.messages().map(({ id }) => id)).toEqual(['p1', 't1', 'p4']);
  });

  it('fails a turn that grows without end', async () => {
    const limits: string[] = [];
    const rig = createSessionRig({
      limits: { turnBytes: 1_000 },
      onLimit: (limit) => void limits.push(limit),
    });
    const runner = rig.runner();
    const ann = rig.client();
    ann.say(ask(1));
    await settled();
    for (let i = 0; i < 20; i++) {
      runner.text('t1', 'x'.repeat(100));
      await settled();
    }
    expect(ann.of('message.finalize')).toMatchObject([{ reason: 'error', code: 'turn-too-large' }]);
    expect(runner.of('stop')).toEqual([{ type: 'stop', turnId: rig.turnIdOf('t1') }]);
    expect(limits).toEqual(['turnBytes']);
    expect(rig.session.isIdle).toBe(true);
  });
});
