import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createViewers, type ViewerKind } from './viewers.ts';

const STOCK: ViewerKind = { isDetaching: false, mayStop: true };
const OURS: ViewerKind = { isDetaching: true, mayStop: true };
const WATCHER: ViewerKind = { isDetaching: false, mayStop: false };
const GRACE = 5_000;

function start(graceMs = GRACE) {
  const stop = vi.fn((_: string) => undefined);
  return { ...createViewers(graceMs, stop), stop };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('createViewers', () => {
  it('stops a turn when its last viewer has been gone for a while', () => {
    const { enter, stop } = start();
    const leave = enter('t', STOCK);
    vi.advanceTimersByTime(60_000);
    leave(false);
    vi.advanceTimersByTime(GRACE - 1);
    expect(stop).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(stop.mock.calls).toEqual([['t']]);
    vi.advanceTimersByTime(60_000);
    expect(stop).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('goes on for whoever was let go to answer, also if somebody has left before', () => {
    const { enter, stop } = start();
    const toAnswer = enter('t', STOCK);
    enter('t', STOCK)(false);
    toAnswer(true, true);
    vi.advanceTimersByTime(60_000);
    expect(stop).not.toHaveBeenCalled();
    enter('t', STOCK)(false);
    vi.advanceTimersByTime(GRACE);
    expect(stop.mock.calls).toEqual([['t']]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('expects no answer of somebody who only watches', () => {
    const { enter, stop } = start();
    const watching = enter('t', WATCHER);
    enter('t', STOCK)(false);
    watching(true, true);
    vi.advanceTimersByTime(GRACE);
    expect(stop).toHaveBeenCalledOnce();
  });

  it('goes on for whoever comes back in time', () => {
    const { enter, stop } = start();
    enter('t', STOCK)(false);
    vi.advanceTimersByTime(GRACE - 1);
    const leave = enter('t', STOCK);
    vi.advanceTimersByTime(60_000);
    expect(stop).not.toHaveBeenCalled();
    leave(false);
    vi.advanceTimersByTime(GRACE);
    expect(stop).toHaveBeenCalledOnce();
  });

  it('goes on while anybody watches', () => {
    const { enter, stop } = start();
    const [first, second] = [enter('t', STOCK), enter('t', STOCK)];
    first(false);
    vi.advanceTimersByTime(60_000);
    expect(stop).not.toHaveBeenCalled();
    second(false);
    vi.advanceTimersByTime(GRACE);
    expect(stop).toHaveBeenCalledOnce();
  });

  it('never stops for one that promised to stop explicitly', () => {
    const { enter, stop } = start();
    enter('t', OURS)(false);
    const [stock, ours] = [enter('t', STOCK), enter('t', OURS)];
    stock(false);
    ours(false);
    vi.advanceTimersByTime(60_000);
    expect(stop).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('never stops for one that may only watch', () => {
    const { enter, stop } = start();
    enter('t', WATCHER)(false);
    vi.advanceTimersByTime(60_000);
    expect(stop).not.toHaveBeenCalled();
  });

  it('stops when its owner has left, though somebody watched a little longer', () => {
    const { enter, stop } = start();
    const [owner, watcher] = [enter('t', STOCK), enter('t', WATCHER)];
    owner(false);
    vi.advanceTimersByTime(60_000);
    expect(stop).not.toHaveBeenCalled();
    watcher(false);
    vi.advanceTimersByTime(GRACE);
    expect(stop).toHaveBeenCalledOnce();
  });

  it('does not take it for leaving when a viewer is shown out', () => {
    const { enter, stop } = start();
    enter('t', STOCK)(true);
    vi.advanceTimersByTime(60_000);
    expect(stop).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('stops at once where there is no grace', () => {
    const { enter, stop } = start(0);
    enter('t', STOCK)(false);
    expect(stop.mock.calls).toEqual([['t']]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('keeps turns apart', () => {
    const { enter, stop } = start();
    enter('a', STOCK)(false);
    enter('b', STOCK);
    vi.advanceTimersByTime(60_000);
    expect(stop.mock.calls).toEqual([['a']]);
  });

  it('has nothing to stop when the turn has ended, before or after its viewers left', () => {
    const { enter, forget, stop } = start();
    const leave = enter('a', STOCK);
    forget('a');
    leave(false);
    enter('b', STOCK)(false);
    forget('b');
    vi.advanceTimersByTime(60_000);
    expect(stop).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('lets go of everything when it is closed', () => {
    const { enter, close, stop } = start();
    const leave = enter('a', STOCK);
    enter('b', STOCK)(false);
    close();
    leave(false);
    vi.advanceTimersByTime(60_000);
    expect(stop).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('never stops a turn that somebody watches, and keeps no timer for one that nobody left', () => {
    type Move = { kind: number } | { leave: number; isShownOut: boolean } | { pass: number };
    const moves = fc.array(
      fc.oneof<fc.Arbitrary<Move>[]>(
        fc.record({ kind: fc.nat(2) }),
        fc.record({ leave: fc.nat(5), isShownOut: fc.boolean() }),
        fc.record({ pass: fc.nat(2 * GRACE) }),
      ),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(moves, (script) => {
        const inside: Array<(wasShownOut: boolean) => void> = [];
        const viewers = createViewers(GRACE, () => expect(inside).toEqual([]));
        for (const move of script) {
          if ('kind' in move) {
            inside.push(viewers.enter('t', [STOCK, OURS, WATCHER][move.kind] as ViewerKind));
          } else if ('pass' in move) vi.advanceTimersByTime(move.pass);
          else inside.splice(move.leave % (inside.length || 1), 1)[0]?.(move.isShownOut);
          expect(vi.getTimerCount()).toBeLessThanOrEqual(inside.length > 0 ? 0 : 1);
        }
        viewers.close();
        expect(vi.getTimerCount()).toBe(0);
      }),
    );
  });
});
