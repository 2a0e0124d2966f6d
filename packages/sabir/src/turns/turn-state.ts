import type { TurnOutcome } from '../core/outcome.ts';

/** Where the chunks that close a turn's open parts come from. */
export type EndsFrom =
  /** The translator knows what is open. */
  | 'translator'
  /** It does not, or has failed: what is open follows from what is stored. */
  | 'log';

/** The states of one run. */
export type TurnState =
  /** The gateway connects to the agent, which has not been asked yet. */
  | { readonly name: 'opening' }
  /** The agent answers. */
  | { readonly name: 'running' }
  /** The outcome is decided, and the last chunks are being written. */
  | { readonly name: 'ending'; readonly outcome: TurnOutcome; readonly endsFrom: EndsFrom }
  /** Everything is written and the hooks have run. */
  | { readonly name: 'ended'; readonly outcome: TurnOutcome }
  /** Another process owns the turn. */
  | { readonly name: 'left' };

/** What changes the state of a run. */
export type TurnEvent =
  /** The agent was asked, or goes on with a turn that was taken over. */
  | { type: 'begun' }
  | { type: 'settled'; outcome: TurnOutcome; endsFrom: EndsFrom }
  | { type: 'translator-failed' }
  /** With the outcome as the log has it: one that could not be stored is another than was decided. */
  | { type: 'closed'; outcome: TurnOutcome }
  | { type: 'left' };

type StateName = TurnState['name'];
type StateOf<Name> = Extract<TurnState, { name: Name }>;
type EventOf<Type> = Extract<TurnEvent, { type: Type }>;
type Table = {
  [Name in StateName]: {
    [Type in TurnEvent['type']]?: (state: StateOf<Name>, event: EventOf<Type>) => TurnState;
  };
};

const toRunning = (): TurnState => ({ name: 'running' });
const toLeft = (): TurnState => ({ name: 'left' });
const toEnding = (_: TurnState, { outcome, endsFrom }: EventOf<'settled'>): TurnState => ({
  name: 'ending',
  outcome,
  endsFrom,
});

/** Every event that is not listed in a state changes nothing there. */
const TABLE: Table = {
  opening: { begun: toRunning, settled: toEnding, left: toLeft },
  running: { settled: toEnding, left: toLeft },
  ending: {
    'translator-failed': ({ outcome }) => ({ name: 'ending', outcome, endsFrom: 'log' }),
    closed: (_, { outcome }) => ({ name: 'ended', outcome }),
    // The log refused the end, because another process has taken the turn over.
    left: toLeft,
  },
  ended: {},
  left: {},
};

/** The state that follows; undefined where the event changes nothing. */
export function transition(state: TurnState, event: TurnEvent): TurnState | undefined {
  // The table pairs each state and event with their own types; TypeScript cannot follow the pairing.
  const step = TABLE[state.name][event.type] as
    | ((state: TurnState, event: TurnEvent) => TurnState)
    | undefined;
  return step?.(state, event);
}

/** The turn has no outcome yet, and this process owns it. */
export function isLive({ name }: TurnState): boolean {
  return name === 'opening' || name === 'running';
}

export function outcomeIn(state: TurnState): TurnOutcome | undefined {
  return 'outcome' in state ? state.outcome : undefined;
}
