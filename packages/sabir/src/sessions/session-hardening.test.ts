import { describe, expect, it } from 'vitest';
import { createSessionRig, type SessionRig, settled } from '../../test/session-rig.ts';

const SLACK = { channelType: 'slack', channelId: 'c1' };

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
const question = (turnId: string, questionId: string, words = 'Deploy?') => ({
  type: 'question',
  turnId,
  questionId,
  text: words,
});
const end = (turnId: unknown) => ({ type: 'message.finalize', turnId, reason: 'end_turn' });

/** Ann has asked, and the agent has begun. */
async function begin(rig: SessionRig) {
  const runner = rig.runner('r1');
  const ann = rig.client('ann');
  ann.say(ask(1));
  runner.say(create('t1'));
  await settled();
  return { runner, ann };
}

describe('a turn is only its own', () => {
  it('so what comes late of an ended one does not reach the next', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    ann.say(ask(1));
    runner.drop();
    ann.say({ type: 'abort', turnId: 't1' });
    rig.client('bob').say(ask(2));
    const back = rig.runner('r1', { turnId: 't1', known: ['t1'] });
    expect(back.of('prompt')).toMatchObject([{ turnId: 't2' }]);
    back.say(create('t1'));
    back.say(text('t1', 'for Ann'));
    back.say(end('t1'));
    await settled();
    expect(rig.storage.turn('t2')).toMatchObject({ status: 'running' });
    expect(rig.storage.events('t2', 0)).toEqual([]);
    back.say(text('t2', 'for Bob'));
    back.say(end('t2'));
    expect(rig.storage.messages().at(-1)).toMatchObject({ id: 't2', content: 'for Bob' });
  });

  it('also where a runner of another make gives its own names, or none', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client('ann');
    ann.say(ask(1));
    ann.say(ask(2));
    runner.say(create('x1'));
    runner.say(text(null, 'one'));
    ann.say({ type: 'abort', turnId: 't1' });
    rig.clock.pass(10_000);
    for (const late of [text(null, 'late'), { type: 'aborted' }, { type: 'complete' }]) {
      runner.say(late);
    }
    runner.say(create('x2'));
    runner.say(text(null, 'two'));
    runner.say(text('x1', 'late'));
    runner.say({ type: 'complete', messageId: 'p1' });
    expect(rig.storage.turn('t2')).toMatchObject({ status: 'running' });
    runner.say({ type: 'complete', messageId: 'p2' });
    await settled();
    const answers = rig.storage.messages().filter(({ role }) => role === 'assistant');
    expect(answers.map(({ content }) => content)).toEqual(['one', 'two']);
  });

  it('so a question of the same name in another turn is another question', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    runner.say(question('t1', 'q1'));
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    runner.say(end('t1'));
    ann.say(ask(2));
    runner.say(question('t2', 'q1', 'And this?'));
    await settled();
    const [, second] = ann.of('question');
    expect(second).toMatchObject({ turnId: 't2', text: 'And this?' });
    expect(second?.questionId).not.toBe('q1');
    ann.say({ type: 'answer', questionId: second?.questionId, answer: 'No' });
    // Its runner knows it by the name it gave.
    expect(runner.last('answer')).toEqual({ type: 'answer', questionId: 'q1', answer: 'No' });
    expect(rig.storage.question('q1')).toMatchObject({ turnId: 't1', answer: 'Yes' });
  });

  it('so no two messages have one id, whatever ids people give', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    const answer = () => {
      const { turnId } = runner.last('prompt') as { turnId?: unknown };
      runner.say(text(turnId, 'Answer.'));
      runner.say(end(turnId));
    };
    ann.say(ask(1, { turnId: 'p1' }));
    answer();
    ann.say(ask(2, { turnId: 'p1' }));
    answer();
    const ids = rig.storage.messages().map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
    expect(rig.storage.messages().map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'user', 'assistant'],
    ]);
    ann.say({ type: 'prompt', content: 'Forged', promptId: ids[1] });
    expect(ann.last('error')).toMatchObject({ refused: 'prompt', code: 'prompt-taken' });
  });
});

describe('the queue', () => {
  it('of a process that ended is told again as it moves', async () => {
    const rig = createSessionRig();
    const { ann } = await begin(rig);
    ann.say(ask(2));
    rig.restart();
    const bob = rig.client('bob');
    expect(bob.events[0]).toMatchObject({ data: { queue: [{ promptId: 'p2' }] } });
    rig.runner('r1', { turnId: 't1', known: ['t1'] }).say(end('t1'));
    expect(bob.last('queue.state')).toMatchObject({ data: { queue: [], queueReason: 'busy' } });
    expect(bob.last('status')).toMatchObject({ data: { promptDequeued: true, promptId: 'p2' } });
  });

  it('gives every prompt its own time for a runner to come', () => {
    const rig = createSessionRig();
    const ann = rig.client('ann');
    ann.say(ask(1));
    ann.say(ask(2));
    for (const promptId of ['p1', 'p2']) {
      rig.clock.pass(59_000);
      ann.say({ type: 'withdraw', promptId });
    }
    ann.say(ask(3));
    rig.clock.pass(59_999);
    expect(ann.of('message.finalize')).toEqual([]);
    rig.clock.pass(1);
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't3', code: 'runner-absent' }]);
  });

  it('shows how a long prompt begins, and gives its runner the whole of it', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    const content = 'x'.repeat(100_000);
    ann.say(ask(2, { content }));
    ann.say(ask(3, { content }));
    ann.say({ type: 'withdraw', promptId: 'p3' });
    const init = rig.client('bob').events[0];
    for (const told of [ann.last('queue.state'), ann.last('queue.withdrawn'), init]) {
      expect(JSON.stringify(told).length).toBeLessThan(2_500);
    }
    expect(ann.last('queue.withdrawn')).toMatchObject({ data: { content: 'x'.repeat(500) } });
    runner.say(end('t1'));
    expect(runner.last('prompt')).toMatchObject({ turnId: 't2', content });
  });

  it('holds so many bytes, files and what a process before left included', () => {
    const rig = createSessionRig({ limits: { queueBytes: 1_500 } });
    const ann = rig.client('ann');
    ann.say(ask(1, { content: 'x'.repeat(600) }));
    const attachments = [{ type: 'file', mime: 'text/plain', url: `data:,${'x'.repeat(600)}` }];
    ann.say(ask(2, { attachments }));
    expect(ann.of('error')).toEqual([]);
    rig.restart();
    const bob = rig.client('bob');
    bob.say(ask(3, { content: 'x'.repeat(400) }));
    expect(bob.last('error')).toMatchObject({ code: 'queue-full', promptId: 'p3' });
    rig.client('ann').say({ type: 'withdraw', promptId: 'p2' });
    bob.say(ask(3, { content: 'x'.repeat(400) }));
    expect(rig.storage.turn('t3')).toMatchObject({ status: 'queued' });
  });

  it('tells whoever sends a prompt again, or stops it too late, what has become of it', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    ann.say(ask(2));
    ann.say({ type: 'withdraw', promptId: 'p2' });
    runner.say(end('t1'));
    const withdrawn = { type: 'queue.withdrawn', data: { promptId: 'p2', turnId: 't2' } };
    const ended = {
      type: 'status',
      data: { promptKnown: 'p1', turnId: 't1', turnStatus: 'ended' },
    };
    for (const [message, told] of [
      [ask(2), withdrawn],
      [{ type: 'abort', turnId: 't2' }, withdrawn],
      [ask(1), ended],
      [{ type: 'abort', turnId: 't1' }, ended],
    ] as const) {
      const seen = ann.events.length;
      ann.say(message);
      expect(ann.events.slice(seen)).toEqual([told]);
    }
    expect(runner.of('prompt')).toHaveLength(1);
  });
});

describe('channels', () => {
  it('hear nothing of each other’s prompts and turns', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1');
    const elsewhere = rig.client('bob', { channel: SLACK });
    const seen = elsewhere.events.length;
    const ann = rig.client('ann');
    ann.say(ask(1));
    ann.say(ask(2));
    ann.say({ type: 'withdraw', promptId: 'p2' });
    ann.say(ask(3));
    runner.say({ type: 'agentStatus', status: 'thinking', messageId: 'p1' });
    runner.say(text('t1', 'Hello'));
    runner.say(question('t1', 'q1'));
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    runner.say(end('t1'));
    await settled();
    expect(ann.of('queue.withdrawn')).toHaveLength(1);
    expect(ann.of('complete')).toHaveLength(1);
    const told = elsewhere.events.slice(seen).filter(({ type }) => type !== 'user.joined');
    // That the queue has changed is told to everybody, but nobody else’s place in it.
    expect(new Set(told.map(({ type }) => type))).toEqual(new Set(['queue.state']));
    expect(told.map(({ data }) => (data as { queue: unknown }).queue)).toEqual(told.map(() => []));
    expect(told.map(({ data }) => (data as { pending: unknown }).pending)).toEqual(
      told.map(() => null),
    );
  });

  it('cannot answer, stop or follow each other’s turns', async () => {
    const rig = createSessionRig();
    const { runner } = await begin(rig);
    runner.say(question('t1', 'q1'));
    await settled();
    const elsewhere = rig.client('bob', { channel: SLACK });
    expect(elsewhere.events[0]).toMatchObject({ data: { turn: null, questions: [] } });
    for (const message of [
      { type: 'answer', questionId: 'q1', answer: 'Yes' },
      { type: 'abort', turnId: 't1' },
      { type: 'abort' },
      { type: 'follow', turnId: 't1' },
    ]) {
      elsewhere.say(message);
      const refused = { type: 'error', refused: message.type, code: 'not-found' };
      expect(elsewhere.events.at(-1)).toMatchObject(refused);
    }
    expect([...runner.of('answer'), ...runner.of('abort')]).toEqual([]);
    expect(rig.storage.openQuestions()).toHaveLength(1);
  });
});

describe('what is too much, or makes no sense', () => {
  it.each([
    ['what only the clock may say', '__expired__'],
    ['without end', 'x'.repeat(64_001)],
  ])('an answer %s is refused', async (_, answer) => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    runner.say(question('t1', 'q1'));
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer });
    expect(ann.last('error')).toMatchObject({ code: 'bad-request', questionId: 'q1' });
    expect(runner.of('answer')).toEqual([]);
    ann.say({ type: 'answer', questionId: 'q1', answer: 'x'.repeat(64_000) });
    expect(runner.of('answer')).toHaveLength(1);
  });

  it('JSON that cannot be written again is skipped', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    const seen = ann.events.length;
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const call = '"turnId":"t1","callId":"c","toolName":"x","status":"running"';
    runner.say(`{"type":"message.part.tool-update",${call},"args":${deep}}`);
    runner.say(`{"type":"git-state","branch":${deep}}`);
    await settled();
    expect(ann.events).toHaveLength(seen);
    runner.say(end('t1'));
    expect(ann.last('message.finalize')).toMatchObject({ reason: 'end_turn', seq: 2 });
    expect(rig.storage.messages().at(-1)?.parts).toEqual([{ type: 'finish', reason: 'end_turn' }]);
  });

  it('files that cannot be written are refused', () => {
    const rig = createSessionRig();
    const ann = rig.client('ann');
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const files = `[{"mime":"a/b","url":"data:,","more":${deep}}]`;
    ann.say(`{"type":"prompt","content":"Hi","promptId":"p1","attachments":${files}}`);
    expect(ann.last('error')).toMatchObject({ code: 'bad-request' });
    expect(rig.agent.isIdle).toBe(true);
  });

  it('questions count as much as words do', async () => {
    const rig = createSessionRig({ limits: { turnBytes: 1_000 } });
    const { runner, ann } = await begin(rig);
    for (let n = 1; n <= 200; n++) runner.say(question('t1', `q${n}`, 'x'.repeat(100)));
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ reason: 'error', code: 'turn-too-large' }]);
    expect(ann.of('question').length).toBeLessThan(10);
    expect(rig.storage.openQuestions()).toEqual([]);
  });

  it('one event that is too large fails its turn, and the next goes on', async () => {
    const rig = createSessionRig({ limits: { eventBytes: 500 } });
    const { runner, ann } = await begin(rig);
    ann.say(ask(2));
    runner.say(text('t1', 'x'.repeat(600)));
    expect(ann.last('message.finalize')).toMatchObject({ turnId: 't1', code: 'turn-too-large' });
    expect(ann.of('message.part.text-delta')).toEqual([]);
    expect(runner.last('abort')).toMatchObject({ turnId: 't1' });
    // Said again, it is still only its own turn's.
    runner.say(text('t1', 'x'.repeat(600)));
    runner.say(end('t2'));
    expect(rig.storage.turn('t2')).toMatchObject({ reason: 'end_turn' });
    // It belongs to no turn, so there is none to fail: it is told to nobody.
    runner.say({ type: 'git-state', branch: 'x'.repeat(600) });
    expect(ann.of('git-state')).toEqual([]);
  });

  it('of a long history clients and runners are told what fits, the latest', async () => {
    const rig = createSessionRig({ limits: { initBytes: 700, historyBytes: 700 } });
    const runner = rig.runner('r1', { needsHistory: true });
    const ann = rig.client('ann');
    for (const n of [1, 2, 3]) {
      ann.say(ask(n, { content: 'x'.repeat(200) }));
      runner.say(text(`t${n}`, 'Short.'));
      runner.say(end(`t${n}`));
    }
    const { session } = rig.client('bob').events[0] as unknown as {
      session: { messages: { id: string }[] };
    };
    expect(session.messages.map(({ id }) => id)).toEqual(['p3', 't3']);
    ann.say(ask(4));
    expect(runner.last('prompt')).toMatchObject({ messages: [{ id: 'p3' }, { id: 't3' }] });
  });
});

describe('who is told in the old way', () => {
  it('is told every change as it was then, also when much comes at once', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    const call = { type: 'message.part.tool-update', turnId: 't1', callId: 'c', toolName: 'x' };
    runner.say({ ...call, status: 'running', args: {} });
    runner.say(text('t1', 'Later.'));
    runner.say({ ...call, status: 'completed', result: 1 });
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

describe('who is gone', () => {
  it('and was let go is not heard any more', async () => {
    const rig = createSessionRig({ limits: { clientBufferBytes: 1_000 } });
    const { runner, ann } = await begin(rig);
    // So far behind that nobody is waited for.
    ann.buffered = 8_001;
    runner.say(text('t1', 'A'));
    await settled();
    expect(ann.closed).toMatchObject({ code: 4008 });
    ann.say(ask(2));
    ann.say({ type: 'abort' });
    expect(rig.storage.turn('t2')).toBeUndefined();
    expect(runner.of('abort')).toEqual([]);
  });

  it('is waited for no longer because somebody speaks of something else', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client('ann');
    ann.say(ask(1));
    runner.say(create('x1'));
    runner.drop();
    const another = rig.foreignRunner();
    another.say({ type: 'complete', messageId: 'another' });
    another.say({ type: 'agentStatus', status: 'idle' });
    rig.clock.pass(30_000);
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', code: 'runner-lost' }]);
  });

  it('is told the open questions of the turn when it comes back, with their place in it', async () => {
    const rig = createSessionRig();
    const { runner } = await begin(rig);
    runner.say(question('t1', 'q1'));
    await settled();
    const [init] = rig.client('bob').events;
    const place = { turnId: 't1', promptId: 'p1', seq: 2, channelType: 'web' };
    expect(init).toMatchObject({ data: { questions: [{ questionId: 'q1', ...place }] } });
  });
});
