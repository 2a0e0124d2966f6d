export type TakenOver = {
  /** How much is written. */
  lastSeq: number;
  /** How much of what the agent said that is: it repeats as much. */
  mark: number;
  /** Whether there is enough known to ask the agent for the rest. */
  canAttach: boolean;
};

/**
 * How far an agent is that repeats a turn for the process that took it over. It repeats what is written
 * already so that the translator knows it; a turn that was begun here has nothing to catch up with.
 */
export function createCatchUp(takenOver: TakenOver | undefined, onDone: () => void) {
  const { mark = 0 } = takenOver ?? {};
  const attached = Promise.withResolvers<void>();
  const caughtUp = Promise.withResolvers<void>();
  let position = 0;
  let isDone = takenOver === undefined;

  function finish(): void {
    isDone = true;
    caughtUp.resolve();
    onDone();
  }

  if (!takenOver) {
    attached.resolve();
    caughtUp.resolve();
  }

  return {
    /** The place of the latest event. */
    get position() {
      return position;
    },
    whenAttached: attached.promise,
    whenDone: caughtUp.promise,
    attached(): void {
      attached.resolve();
      if (!isDone && mark === 0) finish();
    },
    /** The next event is there: whether it was there before. */
    isKnown(place = position): boolean {
      // What has no place of its own is repeated only with what follows it.
      const isKnown = place === position ? place < mark : place <= mark;
      position = place;
      if (!isKnown && !isDone) finish();
      return isKnown;
    },
    /** The known event at this position has been translated. */
    seen(): void {
      if (!isDone && position >= mark) finish();
    },
    /** Nothing is waited for any more. */
    release(): void {
      attached.resolve();
      caughtUp.resolve();
    },
  };
}
