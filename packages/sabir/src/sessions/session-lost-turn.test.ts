import { afterAll, describe, expect, it, vi } from 'vitest';
import { ask, begin, createSessionRig, settled } from '../../test/session-rig.ts';
import { SETTLE_MS } from './session.ts';

vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
afterAll(() => void vi.useRealTimers());

const ANN = { user: { id: 'ann' }, role: 'owner' } as const;
const AGAIN = { text: '', bytes: 0, trigger: 'regenerate-message' } as const;

/** The log has ended the turn, since the process slept past its lease. The session does not know it yet. */
async function lose() {
  let slept = 0;
  const rig = createSessionRig({ turns: { elapsed: () => performance.now() + slept } });
  const { runner, turnId } = await begin(rig);
  slept = 60_000;
  runner.text('t1', 'late');
  await settled();
  expect(await rig.log.get(turnId)).toMatchObject({ outcome: { status: 'lost' } });
  const { running } = rig.session;
  if (!running) throw new Error('The session has noticed.');
  return { rig, running };
}

describe('a turn that the log has lost, and that its session still shows as running', () => {
  it('can be regenerated as soon as the session sees its end', async () => {
    const { rig } = await lose();
    let isFree = false;
    const making = rig.session.makeWay(AGAIN, ANN).then(() => {
      isFree = true;
    });
    await settled();
    expect(isFree).toBe(false);
    rig.clock.pass(1_000);
    await settled();
    expect(isFree).toBe(true);
    await making;
    expect(rig.session.prompt(AGAIN, ANN).isNew).toBe(true);
  });

  it('is not stopped any more', async () => {
    const { rig, running } = await lose();
    const stopping = rig.session.stop(running, ANN);
    rig.clock.pass(1_000);
    expect(await stopping).toBeUndefined();
  });
});

describe('a turn that the log does not begin', () => {
  it('holds up a regenerate for a while only', async () => {
    const rig = createSessionRig({
      log: (log) => ({ ...log, begin: () => new Promise(() => undefined) }),
    });
    rig.runner('r1');
    rig.client('ann').say(ask(1));
    await settled();
    const making = rig.session.makeWay(AGAIN, ANN);
    await settled();
    vi.advanceTimersByTime(SETTLE_MS);
    await settled();
    rig.clock.pass(SETTLE_MS);
    await making;
    expect(() => rig.session.prompt(AGAIN, ANN)).toThrow(
      expect.objectContaining({ code: 'still-answered' }),
    );
  });
});
