import { describe, expect, it } from 'vitest';
import { createSessionRig, type SessionRig, settled } from '../../../test/session-rig.ts';

const ASK = { type: 'prompt', content: 'Hi', promptId: 'p1', turnId: 't1' };

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
