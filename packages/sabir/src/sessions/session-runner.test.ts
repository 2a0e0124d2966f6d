import { describe, expect, it } from 'vitest';
import { createSessionRig, type SessionRig, settled } from '../../test/session-rig.ts';

const ASK = { type: 'prompt', content: 'Hi', promptId: 'p1', turnId: 't1' };

/** A turn that has said something. */
async function begin(rig: SessionRig) {
  const runner = rig.runner('r1');
  const ann = rig.client();
  ann.say(ASK);
  runner.say({ type: 'message.create', turnId: 't1', runnerSeq: 1 });
  runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Half ', runnerSeq: 2 });
  await settled();
  return { runner, ann };
}

describe('a session and its runner', () => {
  it('calls for a runner when there is something to do, and gives it what waits', () => {
    const rig = createSessionRig();
    const ann = rig.client();
    expect(rig.runnersWanted).toBe(0);
    ann.say(ASK);
    ann.say({ ...ASK, promptId: 'p2', turnId: 't2' });
    expect(rig.runnersWanted).toBe(1);
    expect(ann.last('status')?.data).toMatchObject({ promptQueued: true, queueReason: 'waking' });
    const runner = rig.runner();
    expect(runner.events[0]).toMatchObject({ type: 'init', data: { lastRunnerSeq: 0 } });
    expect(runner.of('prompt')).toMatchObject([{ turnId: 't1' }]);
    expect(ann.of('status')).toContainEqual({ type: 'status', data: { runnerConnected: true } });
  });

  it('answers with an error when no runner comes', () => {
    const rig = createSessionRig();
    const ann = rig.client();
    ann.say(ASK);
    ann.say({ ...ASK, promptId: 'p2', turnId: 't2' });
    rig.clock.pass(60_000);
    expect(ann.of('message.finalize')).toMatchObject([
      {
        turnId: 't1',
        reason: 'error',
        code: 'runner-absent',
        error: 'The agent could not be started.',
      },
    ]);
    expect(rig.storage.messages()).toMatchObject([{ id: 'p1' }, { id: 't1' }]);
    // The next has its own time.
    rig.clock.pass(60_000);
    expect(ann.of('message.finalize')).toHaveLength(2);
    expect(rig.agent.isIdle).toBe(true);
  });

  it('goes on with a runner that dropped and came back, and takes nothing twice [SES-10] [RUN-02]', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    expect(runner.last('ack')).toEqual({ type: 'ack', runnerSeq: 2 });
    runner.drop();
    expect(ann.last('status')?.data).toEqual({ runnerConnected: false });
    rig.clock.pass(29_999);
    const back = rig.runner('r1', { turnId: 't1', known: ['t1'] });
    expect(back.events[0]).toMatchObject({ data: { lastRunnerSeq: 2 } });
    // It was not sure of the last, and says it again.
    back.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Half ', runnerSeq: 2 });
    back.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'more', runnerSeq: 3 });
    back.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn', runnerSeq: 4 });
    await settled();
    rig.clock.pass(60_000);
    expect(back.of('prompt')).toEqual([]);
    expect(rig.storage.messages().at(-1)).toMatchObject({ id: 't1', content: 'Half more' });
    expect(ann.of('message.finalize')).toMatchObject([{ reason: 'end_turn' }]);
  });

  it('fails the turn of a runner that does not come back in time [SES-10]', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    ann.say({ ...ASK, promptId: 'p2', turnId: 't2' });
    runner.drop();
    rig.clock.pass(30_000);
    expect(ann.last('message.finalize')).toMatchObject({
      turnId: 't1',
      reason: 'error',
      code: 'runner-lost',
      error: 'The agent was disconnected and did not come back.',
    });
    expect(rig.storage.messages().at(-1)).toMatchObject({ id: 't1', content: 'Half ' });
    // It comes too late for that one; what it still does of it is nobody's.
    const late = rig.runner('r1', { turnId: 't1', known: ['t1'] });
    expect(late.of('abort')).toMatchObject([{ turnId: 't1' }]);
    expect(late.of('prompt')).toMatchObject([{ turnId: 't2' }]);
    late.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'late', runnerSeq: 3 });
    await settled();
    expect(ann.of('message.part.text-delta')).toHaveLength(1);
  });

  it('sends a prompt again that never reached its runner', async () => {
    const rig = createSessionRig();
    rig.runner('r1').drop();
    const runner = rig.runner('r1');
    const ann = rig.client();
    ann.say(ASK);
    runner.drop();
    const back = rig.runner('r1', { turnId: null, known: [] });
    expect(back.of('prompt')).toMatchObject([{ turnId: 't1' }]);
    back.drop();
    // It had it, and ended it while nobody listened: what it said last is on its way.
    const again = rig.runner('r1', { turnId: null, known: ['t1'] });
    expect(again.of('prompt')).toEqual([]);
    again.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn', runnerSeq: 1 });
    expect(ann.of('message.finalize')).toHaveLength(1);
  });

  it('tells at once that a turn is lost when another runner comes in its place', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    runner.drop();
    rig.runner('r2');
    expect(ann.last('message.finalize')).toMatchObject({
      reason: 'error',
      code: 'server-restarted',
    });
  });

  it('has one runner at a time', async () => {
    const rig = createSessionRig();
    const { runner } = await begin(rig);
    const other = rig.runner('r2', null);
    expect(other.closed).toMatchObject({ code: 4409 });
    expect(runner.closed).toBeUndefined();
    // The same one again has lost its connection, and knows it before we do.
    const again = rig.runner('r1', { turnId: 't1', known: ['t1'] });
    expect(runner.closed).toMatchObject({ code: 1000 });
    expect(again.closed).toBeUndefined();
    expect(rig.agent.isRunnerConnected).toBe(true);
  });

  it('stops a turn whose runner is gone at once', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    runner.drop();
    ann.say({ type: 'abort' });
    expect(ann.last('message.finalize')).toMatchObject({ reason: 'canceled' });
  });

  it('takes runners of another make, which name their turns themselves', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client();
    ann.say(ASK);
    ann.say({ ...ASK, promptId: 'p2', turnId: 't2' });
    runner.say({ type: 'agentStatus', status: 'thinking', messageId: 'p1' });
    runner.say({ type: 'message.create', turnId: 'x1', channelType: 'web', channelId: 'other' });
    runner.say({ type: 'message.part.text-delta', turnId: 'x1', delta: 'Hi' });
    ann.say({ type: 'abort' });
    expect(runner.last('abort')).toMatchObject({ turnId: 'x1' });
    runner.say({ type: 'aborted' });
    // Late words of the turn before must not harm the next.
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
    expect(rig.storage.messages().map(({ content }) => content)).toEqual(['Hi', 'Hi', 'Hi', 'Ho']);
    expect(ann.of('agentStatus')[0]).toMatchObject({
      status: 'thinking',
      turnId: 't1',
      promptId: 'p1',
    });
  });

  it('ends a turn that fails before it began, in order', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client();
    ann.say(ASK);
    runner.say({ type: 'error', messageId: 'p1', error: 'No model.' });
    await settled();
    expect(ann.of('message.create')).toHaveLength(1);
    expect(ann.last('message.finalize')).toMatchObject({ reason: 'error', error: 'No model.' });
  });

  it('skips what makes no sense', async () => {
    const warnings: unknown[] = [];
    const rig = createSessionRig({ logger: { warn: (_, details) => warnings.push(details) } });
    const { runner, ann } = await begin(rig);
    const seen = ann.events.length;
    for (const frame of ['', 'null', '[]', '7', '{"type":7}', '{"type":"question"}'])
      runner.say(frame);
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 7 });
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 8 });
    runner.say({ type: 'message.part.tool-update', turnId: 't1', callId: 'c', status: 'odd' });
    await settled();
    expect(ann.events).toHaveLength(seen);
    expect(warnings).toHaveLength(5);
  });
});

describe('questions', () => {
  async function ask(rig: SessionRig) {
    const begun = await begin(rig);
    const question = {
      type: 'question',
      questionId: 'q1',
      text: 'Deploy?',
      options: ['Yes', 'No'],
    };
    begun.runner.say({ ...question, turnId: 't1' });
    begun.runner.say({ ...question, turnId: 't1' });
    await settled();
    return begun;
  }

  it('are told with their end, and answered once, by whoever is first [RUN-03]', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await ask(rig);
    const expiresAt = rig.clock.now() / 1_000 + 300;
    expect(ann.of('question')).toMatchObject([{ questionId: 'q1', turnId: 't1', expiresAt }]);
    const bob = rig.client('bob');
    expect(bob.events[0]).toMatchObject({ data: { questions: [{ questionId: 'q1', expiresAt }] } });
    bob.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    ann.say({ type: 'answer', questionId: 'q1', answer: 'No' });
    await settled();
    expect(runner.of('answer')).toEqual([{ type: 'answer', questionId: 'q1', answer: 'Yes' }]);
    expect(ann.last('error')).toMatchObject({
      refused: 'answer',
      code: 'question-answered',
      questionId: 'q1',
    });
    expect(ann.last('status')).toMatchObject({
      turnId: 't1',
      promptId: 'p1',
      seq: 4,
      data: { questionAnswered: 'q1', answer: 'Yes' },
    });
    ann.say({ type: 'answer', questionId: 'nope', answer: 'No' });
    expect(ann.last('error')).toMatchObject({ code: 'not-found' });
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    expect(rig.storage.messages().at(-1)?.parts).toContainEqual(
      expect.objectContaining({ type: 'question', status: 'answered', answer: 'Yes' }),
    );
  });

  it('expire, and the agent is told [SES-08]', async () => {
    const rig = createSessionRig({ timing: { questionMs: 1_000 } });
    const { runner, ann } = await ask(rig);
    rig.clock.pass(1_000);
    await settled();
    expect(runner.of('answer')).toEqual([
      { type: 'answer', questionId: 'q1', answer: '__expired__' },
    ]);
    expect(ann.last('status')).toMatchObject({ data: { questionExpired: 'q1' } });
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    expect(ann.last('error')).toMatchObject({ code: 'question-expired' });
  });

  it('are no longer open when the turn ends', async () => {
    const rig = createSessionRig();
    const { ann, runner } = await ask(rig);
    ann.say({ type: 'abort' });
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'canceled' });
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    expect(ann.last('error')).toMatchObject({ code: 'question-expired' });
    expect(rig.storage.openQuestions()).toEqual([]);
  });

  it('that were answered while the runner was away are told it when it comes back', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await ask(rig);
    runner.drop();
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    await settled();
    rig.restart();
    const back = rig.runner('r1', { turnId: 't1', known: ['t1'] });
    expect(back.of('answer')).toEqual([{ type: 'answer', questionId: 'q1', answer: 'Yes' }]);
  });
});

describe('a session that is opened again after its process ended', () => {
  it('marks the broken turn when a new runner comes, and goes on with the queue', async () => {
    const rig = createSessionRig();
    const { ann } = await begin(rig);
    ann.say({ ...ASK, content: 'Next', promptId: 'p2', turnId: 't2' });
    rig.restart();
    expect(rig.runnersWanted).toBe(1);
    const bob = rig.client('bob');
    expect(bob.events[0]).toMatchObject({
      session: { messages: [{ id: 'p1' }, { id: 't1', content: 'Half ' }] },
      data: { turn: { turnId: 't1', seq: 2 }, queue: [{ promptId: 'p2' }] },
    });
    const runner = rig.runner('r2');
    expect(bob.last('message.finalize')).toMatchObject({
      turnId: 't1',
      seq: 3,
      reason: 'error',
      code: 'server-restarted',
    });
    expect(runner.of('prompt')).toMatchObject([{ turnId: 't2', content: 'Next' }]);
    expect(rig.storage.messages().map(({ id }) => id)).toEqual(['p1', 't1', 'p2']);
  });

  it('goes on with a runner that has survived it', async () => {
    const rig = createSessionRig();
    await begin(rig);
    rig.restart();
    const ann = rig.client();
    const runner = rig.runner('r1', { turnId: 't1', known: ['t1'] });
    expect(runner.events[0]).toMatchObject({ data: { lastRunnerSeq: 2 } });
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Half ', runnerSeq: 2 });
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'more', runnerSeq: 3 });
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn', runnerSeq: 4 });
    await settled();
    expect(rig.storage.messages().at(-1)).toMatchObject({ content: 'Half more' });
    expect(ann.of('message.part.text-delta')).toMatchObject([{ delta: 'more', seq: 3 }]);
  });

  it('does not wait for ever for any runner', async () => {
    const rig = createSessionRig();
    await begin(rig);
    rig.restart();
    const ann = rig.client();
    rig.clock.pass(30_000);
    expect(ann.last('message.finalize')).toMatchObject({ code: 'server-restarted' });
    expect(rig.agent.isIdle).toBe(true);
  });
});

describe('following', () => {
  it('tells what came after, of a turn that runs and of one that has ended', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    const seqs = (after?: number) => {
      const bob = rig.client('bob', { hasSnapshots: false });
      bob.say({ type: 'follow', turnId: 't1', ...(after !== undefined && { after }) });
      return bob.events.flatMap(({ seq }) => (typeof seq === 'number' ? [seq] : []));
    };
    expect([seqs(), seqs(1), seqs(2), seqs(99)]).toEqual([[1, 2], [2], [], []]);
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    expect([seqs(), seqs(2)]).toEqual([[1, 2, 3], [3]]);
    ann.say({ type: 'follow', turnId: 'nope' });
    expect(ann.last('error')).toMatchObject({
      refused: 'follow',
      code: 'not-found',
      turnId: 'nope',
    });
  });

  it('says so when the events of an old turn are gone', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    for (let n = 2; n < 20; n++) {
      ann.say({ ...ASK, promptId: `p${n}`, turnId: `t${n}` });
      runner.say({ type: 'message.finalize', turnId: `t${n}`, reason: 'end_turn' });
    }
    ann.say({ type: 'follow', turnId: 't1' });
    expect(ann.last('error')).toMatchObject({ code: 'events-gone' });
  });
});
