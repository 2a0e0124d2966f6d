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
