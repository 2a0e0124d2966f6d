import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TurnOutcome } from '../core/outcome.ts';
import { isLive, outcomeIn, type TurnEvent, type TurnState, transition } from './turn-state.ts';

const OPENING: TurnState = { name: 'opening' };
const NAMES = ['opening', 'running', 'ending', 'ended', 'left'];

const outcomes = fc.constantFrom<TurnOutcome>(
  { status: 'finished' },
  { status: 'stopped' },
  { status: 'failed', code: 'x' },
  { status: 'paused' },
  { status: 'lost' },
);
const events: fc.Arbitrary<TurnEvent> = fc.oneof(
  fc.constantFrom<TurnEvent>({ type: 'begun' }, { type: 'translator-failed' }, { type: 'left' }),
  fc.record({
    type: fc.constant('settled' as const),
    outcome: outcomes,
    endsFrom: fc.constantFrom('translator' as const, 'log' as const),
  }),
  fc.record({ type: fc.constant('closed' as const), outcome: outcomes }),
);

/** The states that a run goes through, each once. */
function statesOf(given: TurnEvent[]): TurnState[] {
  const states = [OPENING];
  for (const event of given) {
    const next = transition(states.at(-1) as TurnState, event);
    if (next) states.push(next);
  }
  return states;
}

describe('the states of a turn', () => {
  it('have a name, whatever happens in whatever order', () => {
    fc.assert(
      fc.property(fc.array(events, { maxLength: 30 }), (given) => {
        for (const { name } of statesOf(given)) expect(NAMES).toContain(name);
      }),
      { numRuns: 2_000 },
    );
  });

  it('only go forward: a turn settles once, and nothing follows its end', () => {
    fc.assert(
      fc.property(fc.array(events, { maxLength: 30 }), (given) => {
        const states = statesOf(given);
        const settledAt = states.findIndex(({ name }) => name === 'ending');
        if (settledAt >= 0) expect(states.slice(settledAt).some(isLive)).toBe(false);
        const finalAt = states.findIndex(({ name }) => name === 'ended' || name === 'left');
        if (finalAt >= 0) expect(finalAt).toBe(states.length - 1);
        for (const state of states) {
          const isOver = state.name === 'ending' || state.name === 'ended';
          expect(outcomeIn(state) !== undefined).toBe(isOver);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('keep the first outcome until the log has its last word', () => {
    const first = { type: 'settled', outcome: { status: 'stopped' }, endsFrom: 'log' } as const;
    const second = { ...first, outcome: { status: 'finished' } } as const;
    const [, ending, ...more] = statesOf([first, second, { type: 'translator-failed' }]);
    expect([ending, ...more].map((state) => outcomeIn(state as TurnState))).toEqual([
      { status: 'stopped' },
      { status: 'stopped' },
    ]);
    const closed = { type: 'closed', outcome: { status: 'lost' } } as const;
    expect(statesOf([first, closed]).at(-1)).toEqual({ name: 'ended', outcome: closed.outcome });
  });

  it('lead from opening to running once, and from both to another process', () => {
    const begun = { type: 'begun' } as const;
    expect(statesOf([begun, begun])).toEqual([OPENING, { name: 'running' }]);
    expect(statesOf([{ type: 'left' }, begun])).toEqual([OPENING, { name: 'left' }]);
    const names = statesOf([begun, { type: 'left' }]).map(({ name }) => name);
    expect(names).toEqual(['opening', 'running', 'left']);
  });

  it('do not lead back from the end to running', () => {
    const settled = { type: 'settled', outcome: { status: 'stopped' }, endsFrom: 'log' } as const;
    const names = statesOf([settled, { type: 'begun' }]).map(({ name }) => name);
    expect(names).toEqual(['opening', 'ending']);
  });
});
