import { afterEach, describe, expect, it, vi } from 'vitest';
import { nextTick } from '../../test/running-turn.ts';
import { type ScriptedOpen, scriptedUpstream } from '../../test/scripted-upstream.ts';
import { watchTimers } from '../../test/watch-timers.ts';
import type { Role } from '../core/roles.ts';
import { createSessionPool } from './session-pool.ts';
import type { User } from './upstream.ts';

const ANN = { id: 'ann' };
const BOB = { id: 'bob' };
const { signal: patient } = new AbortController();

const identity = (sessionId: string, user: User, role: Role = 'owner') => ({
  sessionId,
  user,
  role,
});

function start(lingerMs = 1_000) {
  const upstream = scriptedUpstream();
  const pool = createSessionPool(() => upstream, lingerMs);
  return {
    pool,
    opens: upstream.opens,
    /** The nth connection that was asked for. */
    opened: (n: number): Promise<ScriptedOpen> =>
      vi.waitFor(() => {
        const open = upstream.opens[n];
        if (!open) throw new Error(`there is no connection ${n}`);
        return open;
      }),
  };
}

async function leaseOpen({ pool, opened, opens }: ReturnType<typeof start>) {
  const n = opens.length;
  const leasing = pool.lease(identity('s', ANN), patient);
  const open = await opened(n);
  open.succeed();
  return { ...(await leasing), open };
}

afterEach(() => void vi.useRealTimers());

describe('createSessionPool', () => {
  it('shares a session between all turns of one identity, opened once', async () => {
    const { pool, opens, opened } = start();
    const leasing = Array.from({ length: 5 }, () => pool.lease(identity('s', ANN), patient));
    const { session, succeed, sessionId, user } = await opened(0);
    expect({ sessionId, user }).toEqual({ sessionId: 's', user: ANN });
    succeed();
    for (const lease of await Promise.all(leasing)) expect(lease.session).toBe(session);
    expect((await pool.lease(identity('s', ANN), patient)).session).toBe(session);
    expect(opens).toHaveLength(1);
  });

  it('never shares between identities, nor between sessions', async () => {
    const { pool, opens } = start();
    // Ids that would be one if they were simply joined.
    const keys = [
      ['s', 'ann'],
      ['s', 'bob'],
      ['t', 'ann'],
      ['s","ann', 'x'],
      ['s', 'ann","x'],
    ] as const;
    const leasing = keys.map(([sessionId, id]) => pool.lease(identity(sessionId, { id }), patient));
    await vi.waitFor(() => expect(opens).toHaveLength(keys.length));
    for (const { succeed } of opens) succeed();
    const sessions = (await Promise.all(leasing)).map(({ session }) => session);
    expect(new Set(sessions).size).toBe(keys.length);
    expect(opens.map(({ sessionId, user }) => [sessionId, user.id])).toEqual(keys);
  });

  it('fails everybody who waits for a session that cannot be opened, and then tries anew', async () => {
    const { pool, opened, opens } = start();
    const leasing = [
      pool.lease(identity('s', ANN), patient),
      pool.lease(identity('s', ANN), patient),
    ];
    (await opened(0)).fail(new Error('refused'));
    for (const lease of await Promise.allSettled(leasing)) {
      expect(lease).toMatchObject({ status: 'rejected', reason: { message: 'refused' } });
    }
    expect(pool.size).toBe(0);
    const again = pool.lease(identity('s', ANN), patient);
    (await opened(1)).succeed();
    expect((await again).session).toBe(opens[1]?.session);
  });

  it('tells why there is no upstream for a session, and then tries anew', async () => {
    const upstream = scriptedUpstream();
    const find = vi.fn(() => upstream);
    find.mockImplementationOnce(() => {
      throw new Error('unknown session');
    });
    const pool = createSessionPool(find, 0);
    await expect(pool.lease(identity('s', ANN), patient)).rejects.toThrow('unknown session');
    void pool.lease(identity('s', ANN), patient);
    await vi.waitFor(() => expect(upstream.opens).toHaveLength(1));
  });

  it('lets one who waits leave without disturbing the others', async () => {
    const { pool, opened, opens } = start();
    const leaving = new AbortController();
    const impatient = pool.lease(identity('s', ANN), leaving.signal);
    const other = pool.lease(identity('s', ANN), patient);
    const open = await opened(0);
    leaving.abort();
    await expect(impatient).rejects.toMatchObject({ code: 'upstream-unreachable' });
    expect(open.signal.aborted).toBe(false);
    open.succeed();
    expect((await other).session).toBe(open.session);
    expect(opens).toHaveLength(1);
    expect(open.session.closes).toBe(0);
  });

  it('gives up opening when the last who waited has left, and closes what comes late', async () => {
    const { pool, opened } = start();
    const leaving = new AbortController();
    const leasing = [1, 2].map(() => pool.lease(identity('s', ANN), leaving.signal));
    const open = await opened(0);
    leaving.abort();
    for (const lease of await Promise.allSettled(leasing)) expect(lease.status).toBe('rejected');
    expect(open.signal.aborted).toBe(true);
    expect(pool.size).toBe(0);
    // Somebody who comes now does not get a connection that is being given up.
    const next = pool.lease(identity('s', ANN), patient);
    const second = await opened(1);
    open.succeed();
    second.succeed();
    expect((await next).session).toBe(second.session);
    expect(open.session.closes).toBe(1);
    expect(second.session.closes).toBe(0);
  });

  it('refuses whoever has left before asking', async () => {
    const { pool } = start();
    await expect(pool.lease(identity('s', ANN), AbortSignal.abort())).rejects.toMatchObject({
      code: 'upstream-unreachable',
    });
    expect(pool.size).toBe(0);
  });

  it('keeps a session for the next turn for a while, then closes it', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const run = start(1_000);
    const first = await leaseOpen(run);
    first.release();
    first.release();
    await vi.advanceTimersByTimeAsync(900);
    const second = await run.pool.lease(identity('s', ANN), patient);
    expect(second.session).toBe(first.session);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(first.open.session.closes).toBe(0);
    second.release();
    await vi.advanceTimersByTimeAsync(1_100);
    expect(first.open.session.closes).toBe(1);
    expect(run.pool.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('keeps a session that has something left to stop, until it has not', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const run = start(1_000);
    const { open, release } = await leaseOpen(run);
    const busy = Object.assign(open.session, { isBusy: true });
    release();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(busy.closes).toBe(0);
    // And whoever comes meanwhile has it, as long as they like.
    const next = await run.pool.lease(identity('s', ANN), patient);
    expect(next.session).toBe(busy);
    await vi.advanceTimersByTimeAsync(1_000_000);
    next.release();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(busy.closes).toBe(0);
    busy.isBusy = false;
    await vi.advanceTimersByTimeAsync(1_100);
    expect(busy.closes).toBe(1);
    expect(run.pool.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([0, 1_000, 3_600_000])(
    'does not keep it for ever, nor when all is closed (%i ms)',
    async (lingerMs) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      const run = start(lingerMs);
      const { open, release } = await leaseOpen(run);
      const busy = Object.assign(open.session, { isBusy: true });
      release();
      await vi.advanceTimersByTimeAsync(lingerMs + 590_000);
      expect(busy.closes).toBe(0);
      await vi.advanceTimersByTimeAsync(20_000);
      expect(busy.closes).toBe(1);
      const second = await leaseOpen(run);
      Object.assign(second.open.session, { isBusy: true });
      second.release();
      run.pool.close();
      expect(second.open.session.closes).toBe(1);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  it('keeps a session while somebody uses it, however often another gives theirs back', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const run = start(0);
    const first = await leaseOpen(run);
    const second = await run.pool.lease(identity('s', ANN), patient);
    first.release();
    first.release();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(first.open.session.closes).toBe(0);
    second.release();
    await vi.advanceTimersByTimeAsync(19);
    expect(first.open.session.closes).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(first.open.session.closes).toBe(1);
  });

  it('replaces a session that has closed by itself', async () => {
    const run = start();
    const first = await leaseOpen(run);
    first.open.session.isClosed = true;
    const second = await leaseOpen(run);
    expect(second.session).not.toBe(first.session);
    // The turn that still had the old one does not take the new one with it.
    first.release();
    expect(run.pool.size).toBe(1);
    expect((await run.pool.lease(identity('s', ANN), patient)).session).toBe(second.session);
  });

  it('forgets a session that closed by itself when its last turn ends', async () => {
    const run = start();
    const { open, release } = await leaseOpen(run);
    open.session.isClosed = true;
    release();
    expect(run.pool.size).toBe(0);
  });

  it('closes everything at once, what is being opened too, and leaves no timer', async () => {
    const timers = watchTimers();
    try {
      const run = start(60_000);
      const used = await leaseOpen(run);
      const lingering = run.pool.lease(identity('t', ANN), patient);
      (await run.opened(1)).succeed();
      (await lingering).release();
      const opening = run.pool.lease(identity('s', BOB), patient);
      const late = await run.opened(2);
      run.pool.close();
      expect(late.signal.aborted).toBe(true);
      late.succeed();
      await opening;
      await nextTick();
      for (const { session } of run.opens) expect(session.closes).toBe(1);
      used.release();
      (await opening).release();
      expect(run.pool.size).toBe(0);
      expect(timers.count).toBe(0);
    } finally {
      timers.restore();
    }
  });
});
