import { describe, expect, it, vi } from 'vitest';
import { createSessionRig, type SessionRig, settled, textOf } from '../../test/session-rig.ts';

const ASK = { type: 'prompt', content: 'Hi', promptId: 'p1', turnId: 't1' };
const NEXT = { type: 'prompt', content: 'Next', promptId: 'p2', turnId: 't2' };

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

describe('a session and its runner', () => {
  it('calls for a runner when there is something to do, and gives it the first prompt', async () => {
    const rig = createSessionRig();
    const ann = rig.client();
    await settled();
    expect(rig.runnersWanted).toBe(0);
    ann.say(ASK);
    ann.say(NEXT);
    await settled();
    expect(rig.runnersWanted).toBe(1);
    expect(ann.last('status')?.data).toMatchObject({ promptQueued: true, queueReason: 'waking' });
    const runner = rig.runner();
    await settled();
    expect(runner.events[0]).toEqual({
      type: 'init',
      session: { id: 's' },
      protocol: { name: 'sabir-runner', version: 1 },
    });
    expect(runner.prompts()).toEqual(['t1']);
    expect(ann.of('status')).toContainEqual({ type: 'status', data: { runnerConnected: true } });
  });

  it('answers with an error when no runner connects in time', async () => {
    const rig = createSessionRig();
    const ann = rig.client();
    ann.say(ASK);
    ann.say(NEXT);
    await settled();
    rig.clock.pass(60_000);
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([
      {
        turnId: 't1',
        reason: 'error',
        code: 'runner-absent',
        error: 'The agent could not be started.',
      },
    ]);
    expect(rig.storage.messages()).toMatchObject([
      { id: 'p1' },
      { id: 't1', metadata: { outcome: 'failed', reason: 'The agent could not be started.' } },
    ]);
    // The next prompt has its own time.
    rig.clock.pass(60_000);
    await settled();
    expect(ann.of('message.finalize')).toHaveLength(2);
    expect(rig.session.isIdle).toBe(true);
  });

  it('answers with an error when a runner connects and does not say hello in time', async () => {
    const rig = createSessionRig();
    rig.runner('r1', null);
    const ann = rig.client();
    ann.say(ASK);
    await settled();
    expect(rig.runnersWanted).toBe(0);
    rig.clock.pass(60_000);
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ code: 'runner-absent' }]);
  });

  it('confirms a frame of its runner only when the log has the frame', async () => {
    let isHeld = false;
    const held: (() => void)[] = [];
    const rig = createSessionRig({
      log: (log) => ({
        ...log,
        async begin(info) {
          const begun = await log.begin(info);
          if (!('writer' in begun)) return begun;
          const { writer } = begun;
          const append: typeof writer.append = async (chunks, mark) => {
            if (isHeld) await new Promise<void>((resolve) => void held.push(resolve));
            return writer.append(chunks, mark);
          };
          return { writer: { ...writer, append } };
        },
      }),
    });
    const { runner, turnId } = await begin(rig);
    expect(runner.of('ack')).toEqual([{ type: 'ack', turnId, seq: 1 }]);
    isHeld = true;
    runner.text('t1', 'more');
    runner.text('t1', ' and more');
    await settled();
    expect(runner.of('ack')).toHaveLength(1);
    isHeld = false;
    for (const write of held) write();
    await settled();
    expect(runner.last('ack')).toEqual({ type: 'ack', turnId, seq: 3 });
    expect(JSON.stringify(await rig.chunksOf('t1'))).toContain('and more');
  });

  it('goes on with a runner that dropped and came back, and takes nothing twice [SES-10] [RUN-02]', async () => {
    const rig = createSessionRig();
    const { runner, ann, turnId } = await begin(rig);
    runner.drop();
    await settled();
    expect(ann.last('status')?.data).toEqual({ runnerConnected: false });
    rig.clock.pass(29_000);
    const back = rig.runner('r1', { turnId, known: [turnId] });
    // The confirmation was lost with the connection: it sends the frame again.
    const chunks = [{ type: 'text-delta', id: 'words', delta: 'Half ' }];
    back.say({ type: 'chunks', turnId, seq: 1, chunks });
    await settled();
    expect(back.of('ack')).toEqual([{ type: 'ack', turnId, seq: 1 }]);
    back.text('t1', 'more');
    back.finish('t1');
    await settled();
    rig.clock.pass(60_000);
    await settled();
    expect(back.of('prompt')).toEqual([]);
    expect(textOf(rig.storage.messages().at(-1))).toBe('Half more');
    expect(ann.of('message.finalize')).toMatchObject([{ reason: 'end_turn' }]);
  });

  it('fails the turn of a runner that does not come back in time [SES-10]', async () => {
    const rig = createSessionRig();
    const { runner, ann, turnId } = await begin(rig);
    ann.say(NEXT);
    await settled();
    runner.drop();
    rig.clock.pass(30_000);
    await settled();
    expect(ann.last('message.finalize')).toMatchObject({
      turnId: 't1',
      reason: 'error',
      code: 'runner-lost',
      error: 'The agent was disconnected and did not come back.',
    });
    expect(textOf(rig.storage.messages().at(-1))).toBe('Half ');
    // The turn has ended: the runner is to stop, and what it still says of the turn reaches no client.
    const late = rig.runner('r1', { turnId, known: [turnId] });
    await settled();
    expect(late.of('stop')).toMatchObject([{ turnId }]);
    expect(late.prompts()).toEqual(['t2']);
    late.text('t1', 'late');
    await settled();
    expect(ann.of('message.part.text-delta')).toHaveLength(1);
  });

  it('calls for a runner when the runner of a stopped turn goes and prompts wait', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client();
    ann.say(ASK);
    ann.say(NEXT);
    await settled();
    ann.say({ type: 'abort', turnId: 't1' });
    await settled();
    runner.drop();
    await settled();
    expect(rig.runnersWanted).toBe(1);
    expect(rig.foreignRunner().of('prompt')).toEqual([]);
    await settled();
    expect(rig.session.running?.messageId).toBe('t2');
  });

  it('sends a prompt again that never reached its runner', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1');
    const ann = rig.client();
    ann.say(ASK);
    await settled();
    runner.drop();
    const back = rig.runner('r1', { turnId: null, known: [] });
    await settled();
    expect(back.prompts()).toEqual(['t1']);
    back.drop();
    // It had the prompt, and ended the turn while it was away: what it said is on its way.
    const again = rig.runner('r1', { turnId: null, known: [rig.turnIdOf('t1')] });
    await settled();
    expect(again.of('prompt')).toEqual([]);
    again.finish('t1');
    await settled();
    expect(ann.of('message.finalize')).toHaveLength(1);
  });

  it.each(['ours', 'deployed'])(
    'fails a turn at once when another runner (%s) comes in place of its own',
    async (make) => {
      const rig = createSessionRig();
      const { runner, ann } = await begin(rig);
      ann.say(NEXT);
      await settled();
      runner.drop();
      const other = make === 'ours' ? rig.runner('r2') : rig.foreignRunner();
      await settled();
      expect(ann.of('message.finalize')).toMatchObject([
        { turnId: 't1', reason: 'error', code: 'server-restarted' },
      ]);
      expect(other.of('prompt')).toHaveLength(1);
    },
  );

  it('has one runner at a time', async () => {
    const rig = createSessionRig();
    const { runner, turnId } = await begin(rig);
    const other = rig.runner('r2', null);
    expect(other.closed).toMatchObject({ code: 4409 });
    expect(runner.closed).toBeUndefined();
    // The same one again has lost its connection, and knows it before the session does.
    const again = rig.runner('r1', { turnId, known: [turnId] });
    expect(runner.closed).toMatchObject({ code: 1000 });
    expect(again.closed).toBeUndefined();
    expect(rig.session.isRunnerConnected).toBe(true);
  });

  it('stops a turn at once whose runner is away', async () => {
    const rig = createSessionRig();
    const { runner, ann, turnId } = await begin(rig);
    runner.drop();
    ann.say({ type: 'abort' });
    await settled();
    expect(ann.last('message.finalize')).toMatchObject({ reason: 'canceled' });
    // When it comes back, it is to stop.
    const back = rig.runner('r1', { turnId, known: [turnId] });
    expect(back.of('stop')).toMatchObject([{ turnId }]);
  });

  it('gives no prompt to a runner that leaves, and the next to the runner that comes', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    ann.say(NEXT);
    await settled();
    runner.say({ type: 'bye' });
    expect(runner.last('pong')).toEqual({ type: 'pong' });
    runner.finish('t1');
    await settled();
    expect(runner.prompts()).toEqual(['t1']);
    runner.drop();
    await settled();
    expect(rig.runnersWanted).toBe(1);
    const next = rig.runner('r2');
    await settled();
    expect(next.prompts()).toEqual(['t2']);
  });

  it('skips and counts what makes no sense', async () => {
    const warnings: unknown[] = [];
    const rig = createSessionRig({
      logger: { warn: (_, details) => warnings.push(details?.type) },
    });
    const { runner, ann, turnId } = await begin(rig);
    const seen = ann.events.length;
    for (const frame of ['', 'null', '[]', '7', '{"type":7}', '{"type":"chunks"}']) {
      runner.say(frame);
    }
    for (const frame of [
      { type: 'chunks', turnId, seq: 0, chunks: [] },
      { type: 'chunks', turnId, seq: 2, chunks: {} },
      { type: 'event', event: {} },
      { type: 'hello', known: 'all' },
      { type: 'nope' },
      // Of chunks that make no sense, the good ones around them are taken.
      { type: 'chunks', turnId, seq: 2, chunks: [null, 7, { type: 'text-delta', delta: 8 }] },
    ]) {
      runner.say(frame);
    }
    await settled();
    expect(ann.events).toHaveLength(seen);
    expect(new Set(warnings)).toEqual(
      new Set(['(no JSON)', '(no type)', 'chunks', 'event', 'hello', 'nope']),
    );
    expect(warnings).toHaveLength(6);
    runner.finish('t1');
    runner.finish('t1');
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ reason: 'end_turn' }]);
  });
});

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

describe('a session that is opened again after its process ended', () => {
  it('fails the broken turn when a new runner comes, and goes on with the queue', async () => {
    const rig = createSessionRig();
    const { ann } = await begin(rig);
    ann.say(NEXT);
    await settled();
    rig.restart();
    const bob = rig.client('bob');
    await settled();
    expect(rig.runnersWanted).toBe(1);
    expect(bob.events[0]).toMatchObject({
      session: { messages: [{ id: 'p1' }, { id: 't1', content: 'Half ' }] },
      data: { turn: { turnId: 't1', seq: 3 }, queue: [{ promptId: 'p2' }] },
    });
    const runner = rig.runner('r2');
    await settled();
    expect(bob.last('message.finalize')).toMatchObject({
      turnId: 't1',
      reason: 'error',
      code: 'server-restarted',
    });
    expect(runner.prompts()).toEqual(['t2']);
    expect(rig.storage.messages().map(({ id }) => id)).toEqual(['p1', 't1', 'p2']);
  });

  it('goes on with a runner that has survived it, without loss or repeat', async () => {
    const rig = createSessionRig();
    const { turnId, runner: before } = await begin(rig);
    // Killed between two frames: the second is on its way, and not in the log.
    before.text('t1', 'and ');
    rig.restart();
    const ann = rig.client();
    await settled();
    const runner = rig.runner('r1', { turnId, known: [turnId] });
    for (const [index, delta] of ['Half ', 'and '].entries()) {
      const chunks = [{ type: 'text-delta', id: 'words', delta }];
      runner.say({ type: 'chunks', turnId, seq: index + 1, chunks });
    }
    runner.text('t1', 'more');
    runner.finish('t1');
    await settled();
    expect(runner.last('ack')).toEqual({ type: 'ack', turnId, seq: 4 });
    expect(runner.of('prompt')).toEqual([]);
    expect(textOf(rig.storage.messages().at(-1))).toBe('Half and more');
    expect(ann.events[0]).toMatchObject({ data: { turn: { turnId: 't1', seq: 3 } } });
    expect(ann.of('message.part.text-delta')).toMatchObject([
      { delta: 'and ', seq: 4 },
      { delta: 'more', seq: 5 },
    ]);
  });

  it('has a runner send again what came before the log offered the turn', async () => {
    const rig = createSessionRig();
    const { turnId } = await begin(rig);
    rig.restart();
    const early = rig.runner('r1', { turnId, known: [turnId] });
    early.text('t1', 'and ');
    await settled();
    expect(early.of('ack')).toEqual([]);
    expect(early.of('stop')).toEqual([]);
    expect(early.closed).toMatchObject({ code: 1012 });
    const runner = rig.runner('r1', { turnId, known: [turnId] });
    const chunks = [{ type: 'text-delta', id: 'words', delta: 'and ' }];
    runner.say({ type: 'chunks', turnId, seq: 2, chunks });
    runner.text('t1', 'more');
    runner.finish('t1');
    await settled();
    expect(textOf(rig.storage.messages().at(-1))).toBe('Half and more');
  });

  it('stores the end of a turn whose last frame is in the log', async () => {
    let isFull = true;
    const rig = createSessionRig({
      // The process ends before the end of the turn is stored.
      storage: (storage) => ({
        ...storage,
        transaction(run) {
          if (isFull && rig.storage.messages().length === 1) throw new Error('The disk is full.');
          return storage.transaction(run);
        },
      }),
    });
    const { runner } = await begin(rig);
    runner.finish('t1');
    await settled();
    expect(rig.storage.messages().map(({ id }) => id)).toEqual(['p1']);
    isFull = false;
    rig.restart();
    await settled();
    expect(rig.storage.messages().map(({ id }) => id)).toEqual(['p1', 't1']);
    expect(rig.storage.promptInfo('messageId', 't1')).toMatchObject({
      status: 'ended',
      outcome: 'finished',
    });
    expect(rig.session.isIdle).toBe(true);
  });

  it('does not wait for ever for the runner of its turn', async () => {
    const rig = createSessionRig();
    await begin(rig);
    rig.restart();
    const ann = rig.client();
    await settled();
    rig.clock.pass(30_000);
    await settled();
    expect(ann.last('message.finalize')).toMatchObject({ code: 'server-restarted' });
    expect(rig.session.isIdle).toBe(true);
  });

  it('stops a turn that was stopped just before its process ended', async () => {
    const rig = createSessionRig();
    const { turnId } = await begin(rig);
    await rig.log.command(turnId, { type: 'stop' });
    rig.restart();
    const runner = rig.runner('r1', { turnId, known: [turnId] });
    await settled();
    expect(runner.of('stop')).toMatchObject([{ turnId }]);
    expect(rig.storage.promptInfo('messageId', 't1')).toMatchObject({ outcome: 'stopped' });
  });
});

describe('following', () => {
  it('gives what came after, of a turn that runs and of one that has ended', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    const seqs = async (after?: number) => {
      const bob = rig.client('bob', { hasSnapshots: false });
      bob.say({ type: 'follow', turnId: 't1', ...(after !== undefined && { after }) });
      await settled();
      return bob.events.flatMap(({ seq }) => (typeof seq === 'number' ? [seq] : []));
    };
    expect([await seqs(), await seqs(1), await seqs(3), await seqs(99)]).toEqual([
      ...[[1, 3], [3], [], []],
    ]);
    runner.finish('t1');
    await settled();
    expect([await seqs(), await seqs(3)]).toEqual([[1, 3, 5], [5]]);
    ann.say({ type: 'follow', turnId: 'nope' });
    await settled();
    expect(ann.last('error')).toMatchObject({
      refused: 'follow',
      code: 'not-found',
      turnId: 'nope',
    });
  });

  it('gives each event once, also while the turn goes on and ends', async () => {
    const rig = createSessionRig();
    const { runner } = await begin(rig);
    const bob = rig.client('bob', { hasSnapshots: false });
    await settled();
    for (let n = 0; n < 20; n++) {
      runner.text('t1', `${n} `);
      bob.say({ type: 'follow', turnId: 't1', after: 2 * n });
      if (n % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    runner.finish('t1');
    bob.say({ type: 'follow', turnId: 't1', after: 0 });
    await settled();
    const follows = bob.events.filter(({ type }) => type === 'message.finalize');
    expect(follows.length).toBeGreaterThan(0);
    // Whatever it asked for again, what it gets at last is all of the turn, in order and without a gap.
    const from = bob.events.findLastIndex(({ type }) => type === 'message.create');
    const texts = bob.events.slice(from).flatMap(({ delta }) => (delta === undefined ? [] : delta));
    expect(texts.join('')).toBe(`Half ${Array.from({ length: 20 }, (_, n) => `${n} `).join('')}`);
  });

  it('is refused when the log has forgotten the turn', async () => {
    const rig = createSessionRig({ turns: { retentionMs: 0 } });
    const { runner, ann } = await begin(rig);
    runner.finish('t1');
    await settled();
    ann.say({ type: 'follow', turnId: 't1' });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'events-gone' });
  });
});
