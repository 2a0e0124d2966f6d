import { describe, expect, it } from 'vitest';
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
