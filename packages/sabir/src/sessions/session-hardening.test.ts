import { describe, expect, it } from 'vitest';
import { createSessionRig, type SessionRig, settled, textOf } from '../../test/session-rig.ts';

const SLACK = { channelType: 'slack', channelId: 'c1' };
const DEEP = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;

const ask = (n: number, more: object = {}) => ({
  type: 'prompt',
  content: `Hi ${n}`,
  promptId: `p${n}`,
  turnId: `t${n}`,
  ...more,
});
const create = (turnId: unknown) => ({ type: 'message.create', turnId });
const text = (turnId: unknown, delta: string) => ({
  type: 'message.part.text-delta',
  turnId,
  delta,
});

/** Ann has asked, and the agent has begun. */
async function begin(rig: SessionRig) {
  const runner = rig.runner('r1');
  const ann = rig.client('ann');
  ann.say(ask(1));
  await settled();
  runner.chunks('t1', { type: 'start' });
  await settled();
  return { runner, ann };
}

describe('a turn', () => {
  it('gets nothing of what comes late of the turn before', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    ann.say(ask(1));
    await settled();
    runner.drop();
    ann.say({ type: 'abort', turnId: 't1' });
    rig.client('bob').say(ask(2));
    await settled();
    const turnId = rig.turnIdOf('t1');
    const back = rig.runner('r1', { turnId, known: [turnId] });
    await settled();
    expect(back.prompts()).toEqual(['t2']);
    back.text('t1', 'for Ann');
    back.finish('t1');
    await settled();
    expect(rig.storage.promptInfo('messageId', 't2')).toMatchObject({ status: 'running' });
    expect(await rig.chunksOf('t2')).toEqual([]);
    back.text('t2', 'for Bob');
    back.finish('t2');
    await settled();
    expect(textOf(rig.storage.messages().at(-1))).toBe('for Bob');
  });

  it('of a deployed runner gets nothing of the turn before, under whatever name, or none', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client('ann');
    ann.say(ask(1));
    ann.say(ask(2));
    await settled();
    runner.say(create('x1'));
    runner.say(text(null, 'one'));
    await settled();
    ann.say({ type: 'abort', turnId: 't1' });
    await settled();
    rig.clock.pass(10_000);
    await settled();
    for (const late of [text(null, 'late'), { type: 'aborted' }, { type: 'complete' }]) {
      runner.say(late);
    }
    runner.say({ type: 'agentStatus', status: 'thinking', messageId: 'p2' });
    runner.say({ type: 'message.finalize', turnId: null, reason: 'error', error: 'aborted' });
    runner.say(create('x2'));
    runner.say(text(null, 'two'));
    runner.say(text('x1', 'late'));
    runner.say({ type: 'complete', messageId: 'p1' });
    await settled();
    expect(rig.storage.promptInfo('messageId', 't2')).toMatchObject({ status: 'running' });
    runner.say({ type: 'complete', messageId: 'p2' });
    await settled();
    const answers = rig.storage.messages().filter(({ role }) => role === 'assistant');
    expect(answers.map(textOf)).toEqual(['one', 'two']);
  });

  it('has its own questions, also where an agent uses the same id again', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    runner.ask('t1', 'q1');
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    await settled();
    runner.finish('t1');
    await settled();
    ann.say(ask(2));
    await settled();
    runner.ask('t2', 'q1', { text: 'And this?' });
    await settled();
    expect(ann.of('question')).toMatchObject([
      { turnId: 't1', text: 'Deploy?' },
      { turnId: 't2', text: 'And this?' },
    ]);
    ann.say({ type: 'answer', questionId: 'q1', answer: 'No' });
    await settled();
    expect(runner.of('answer')).toMatchObject([
      { turnId: rig.turnIdOf('t1'), answer: 'Yes' },
      { turnId: rig.turnIdOf('t2'), answer: 'No' },
    ]);
  });

  it('has a message of its own, whatever ids people give', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    for (const n of [1, 2]) {
      ann.say(ask(n, { turnId: 'p1' }));
      await settled();
      const id = runner.prompts().at(-1) as string;
      runner.text(id, 'Answer.');
      runner.finish(id);
      await settled();
    }
    const ids = rig.storage.messages().map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
    expect(rig.storage.messages().map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'user', 'assistant'],
    ]);
    ann.say({ type: 'prompt', content: 'Forged', promptId: ids[1] });
    await settled();
    expect(ann.last('error')).toMatchObject({ refused: 'prompt', code: 'prompt-taken' });
  });
});

describe('the queue', () => {
  it('of a process that ended is shown as it moves in the next', async () => {
    const rig = createSessionRig();
    const { ann } = await begin(rig);
    ann.say(ask(2));
    await settled();
    rig.restart();
    const bob = rig.client('bob');
    await settled();
    expect(bob.events[0]).toMatchObject({ data: { queue: [{ promptId: 'p2' }] } });
    const turnId = rig.turnIdOf('t1');
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

  it('holds so many bytes, files and what a process before left included', async () => {
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
    expect(rig.storage.promptInfo('messageId', 't3')).toMatchObject({ status: 'queued' });
  });

  it('says what has become of a prompt that is sent again, or stopped too late', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    ann.say(ask(2));
    ann.say({ type: 'withdraw', promptId: 'p2' });
    runner.finish('t1');
    await settled();
    const withdrawn = { type: 'queue.withdrawn', data: { promptId: 'p2', turnId: 't2' } };
    const ended = {
      type: 'status',
      data: { promptKnown: 'p1', turnId: 't1', turnStatus: 'ended' },
    };
    for (const [message, reply] of [
      [ask(2), withdrawn],
      [{ type: 'abort', turnId: 't2' }, withdrawn],
      [ask(1), ended],
      [{ type: 'abort', turnId: 't1' }, ended],
    ] as const) {
      const seen = ann.events.length;
      ann.say(message);
      await settled();
      expect(ann.events.slice(seen)).toEqual([reply]);
    }
    expect(runner.of('prompt')).toHaveLength(1);
  });
});

describe('a client of another channel', () => {
  it('is shown nothing of the prompts and turns', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1');
    const elsewhere = rig.client('bob', { channel: SLACK });
    await settled();
    const seen = elsewhere.events.length;
    const ann = rig.client('ann');
    ann.say(ask(1));
    ann.say(ask(2));
    ann.say({ type: 'withdraw', promptId: 'p2' });
    ann.say(ask(3));
    await settled();
    runner.text('t1', 'Hello');
    runner.ask('t1', 'q1');
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    runner.finish('t1');
    await settled();
    expect(ann.of('queue.withdrawn')).toHaveLength(1);
    expect(ann.of('complete')).toHaveLength(1);
    const shown = elsewhere.events.slice(seen).filter(({ type }) => type !== 'user.joined');
    // That the queue has changed is shown to everybody, but no place in it of another channel.
    expect(new Set(shown.map(({ type }) => type))).toEqual(new Set(['queue.state']));
    for (const { data } of shown) expect(data).toMatchObject({ queue: [], pending: null });
  });

  it('cannot answer, stop or follow the turn', async () => {
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

describe('a session refuses or skips', () => {
  it.each([
    ['that only the clock may give', '__expired__'],
    ['that is too long', 'x'.repeat(64_001)],
  ])('an answer %s', async (_, answer) => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    runner.ask('t1', 'q1');
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'bad-request', questionId: 'q1' });
    expect(runner.of('answer')).toEqual([]);
    ann.say({ type: 'answer', questionId: 'q1', answer: 'x'.repeat(64_000) });
    await settled();
    expect(runner.of('answer')).toHaveLength(1);
  });

  it('frames of a runner that nest too deep', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    const seen = ann.events.length;
    const turnId = rig.turnIdOf('t1');
    const chunk = `{"type":"data-tree","data":${DEEP}}`;
    runner.say(`{"type":"chunks","turnId":"${turnId}","seq":2,"chunks":[${chunk}]}`);
    runner.say(`{"type":"event","event":{"type":"git-state","branch":${DEEP}}}`);
    await settled();
    expect(ann.events).toHaveLength(seen);
    runner.finish('t1');
    await settled();
    expect(ann.last('message.finalize')).toMatchObject({ reason: 'end_turn', seq: 2 });
    expect(rig.storage.messages().at(-1)?.parts).toEqual([]);
  });

  it('a prompt with files that nest too deep', async () => {
    const rig = createSessionRig();
    const ann = rig.client('ann');
    const files = `[{"mime":"a/b","url":"data:,","more":${DEEP}}]`;
    ann.say(`{"type":"prompt","content":"Hi","promptId":"p1","attachments":${files}}`);
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'bad-request' });
    expect(rig.session.isIdle).toBe(true);
  });

  it.each([
    ['bytes', { turnBytes: 1_000 }, 'turnBytes'],
    ['questions', { turnQuestions: 5 }, 'turnQuestions'],
    ['stored bytes', { sessionBytes: 1_000 }, 'sessionBytes'],
  ])('a turn whose questions come to too many %s', async (_, limits, limit) => {
    const exceeded: string[] = [];
    const onLimit = (name: string) => void exceeded.push(name);
    const rig = createSessionRig({ limits, onLimit });
    const { runner, ann } = await begin(rig);
    for (let n = 1; n <= 200; n++) {
      runner.ask('t1', `q${n}`, { text: 'x'.repeat(100) });
      if (n % 2 === 0) await settled();
    }
    const code = limit === 'sessionBytes' ? 'session-full' : 'turn-too-large';
    expect(ann.of('message.finalize')).toMatchObject([{ reason: 'error', code }]);
    expect(ann.of('question').length).toBeLessThan(10);
    expect(await rig.session.openQuestions()).toEqual([]);
    expect(exceeded).toEqual([limit]);
    expect(rig.session.isIdle).toBe(true);
  });

  it('one event that is too large, with its turn, and goes on with the next', async () => {
    const rig = createSessionRig({ limits: { eventBytes: 500 } });
    const { runner, ann } = await begin(rig);
    ann.say(ask(2));
    await settled();
    const large = { type: 'text-delta', id: 'words', delta: 'x'.repeat(600) } as const;
    runner.chunks('t1', large);
    await settled();
    expect(ann.last('message.finalize')).toMatchObject({ turnId: 't1', code: 'turn-too-large' });
    expect(ann.of('message.part.text-delta')).toEqual([]);
    expect(runner.last('stop')).toMatchObject({ turnId: rig.turnIdOf('t1') });
    // The same again is of the turn that has ended.
    runner.chunks('t1', large);
    runner.finish('t2');
    await settled();
    expect(rig.storage.promptInfo('messageId', 't2')).toMatchObject({ outcome: 'finished' });
    // Many events that are small, in one frame, are not one that is large.
    ann.say(ask(3));
    await settled();
    runner.chunks('t3', ...Array.from({ length: 20 }, () => ({ ...large, delta: 'x'.repeat(100) })));
    runner.finish('t3');
    await settled();
    expect(textOf(rig.storage.messages().at(-1))).toHaveLength(2_000);
    // It belongs to no turn, so that there is none to fail.
    runner.say({ type: 'event', event: { type: 'git-state', branch: 'x'.repeat(600) } });
    await settled();
    expect(ann.of('git-state')).toEqual([]);
  });
});

describe('a long history', () => {
  it('reaches clients and runners as far as it fits, the latest', async () => {
    const rig = createSessionRig({ limits: { initBytes: 700, historyBytes: 700 } });
    const runner = rig.runner('r1', { needsHistory: true });
    const ann = rig.client('ann');
    for (const n of [1, 2, 3]) {
      ann.say(ask(n, { content: 'x'.repeat(200) }));
      await settled();
      runner.text(`t${n}`, 'Short.');
      runner.finish(`t${n}`);
      await settled();
    }
    const bob = rig.client('bob');
    await settled();
    expect(bob.events[0]).toMatchObject({ session: { messages: [{ id: 'p3' }, { id: 't3' }] } });
    ann.say(ask(4));
    await settled();
    expect(runner.last('prompt')).toMatchObject({
      prompt: { messages: [{ id: 'p3' }, { id: 't3' }, { id: 'p4' }] },
    });
  });
});

describe('a client of the old dialect', () => {
  it('gets the message at every change of a tool, also when much comes at once', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    const call = { toolCallId: 'c', toolName: 'x' };
    runner.chunks('t1', { type: 'tool-input-available', ...call, input: {} });
    runner.text('t1', 'Later.');
    runner.chunks('t1', { type: 'tool-output-available', toolCallId: 'c', output: 1 });
    await settled();
    const statuses = ann.of('message.updated').map(({ data }) => {
      const { content, parts } = data as { content: string; parts: { status?: string }[] };
      return [content, parts[0]?.status];
    });
    expect(statuses).toEqual([
      ['', 'running'],
      ['Later.', 'completed'],
    ]);
  });
});

describe('a connection', () => {
  it('that the session has closed is not listened to any more', async () => {
    const rig = createSessionRig({ limits: { clientBufferBytes: 1_000 } });
    const { runner, ann } = await begin(rig);
    // So far behind that the session does not wait.
    ann.buffered = 8_001;
    runner.text('t1', 'A');
    await settled();
    expect(ann.closed).toMatchObject({ code: 4008 });
    ann.say(ask(2));
    ann.say({ type: 'abort' });
    await settled();
    expect(rig.storage.promptInfo('messageId', 't2')).toBeUndefined();
    expect(runner.of('stop')).toEqual([]);
  });

  it('of a deployed runner that speaks of another prompt does not prove that the turn goes on', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client('ann');
    ann.say(ask(1));
    await settled();
    runner.say(create('x1'));
    await settled();
    runner.drop();
    const another = rig.foreignRunner();
    another.say({ type: 'complete', messageId: 'another' });
    another.say({ type: 'agentStatus', status: 'idle' });
    await settled();
    rig.clock.pass(30_000);
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', code: 'runner-lost' }]);
  });

  it('of a newcomer gets the open questions of the turn, with their place in it', async () => {
    const rig = createSessionRig();
    const { runner } = await begin(rig);
    runner.ask('t1', 'q1');
    await settled();
    const bob = rig.client('bob');
    await settled();
    const place = { turnId: 't1', promptId: 'p1', seq: 2, channelType: 'web' };
    expect(bob.events[0]).toMatchObject({ data: { questions: [{ questionId: 'q1', ...place }] } });
  });
});
