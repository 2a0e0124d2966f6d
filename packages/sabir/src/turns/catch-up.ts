export type TakenOver = {
  /** How much is written. */
  lastSeq: number;
  /** How much of what the agent told that is: what it tells again until there is known. */
  mark: number;
  /** Whether there is enough known to ask the agent for the rest. */
  canAttach: boolean;
};

/**
 * How far an agent is that tells a turn again to whoever took it over. What is written already is
 * told so that the translator knows it; a turn that was begun here has nothing to catch up with.
 */
export function createCatchUp(takenOver: TakenOver | undefined) {
  const { mark = 0 } = takenOver ?? {};
  const attached = Promise.withResolvers<void>();
  const caughtUp = Promise.withResolvers<void>();
  let position = 0;
  let isDone = false;

  function finish(): void {
    isDone = true;
    caughtUp.resolve();
  }

  if (!takenOver) {
    attached.resolve();
    finish();
  }

  return {
    /** The place of the latest event. */
    get position() {
      return position;
    },
    /** Until then only the log knows what is open. */
    get isDone() {
      return isDone;
    },
    whenAttached: attached.promise,
    whenDone: caughtUp.promise,
    attached(): void {
      attached.resolve();
      if (mark === 0) finish();
    },
    /** The next event is there: whether it was there before. */
    isKnown(place = position): boolean {
      // What has no place of its own is told again only with what follows it.
      const isKnown = place === position ? place < mark : place <= mark;
      position = place;
      // Nearly every event is new, and resolving a promise again costs as much as the first time.
      if (!isKnown && !isDone) finish();
      return isKnown;
    },
    /** A known event was seen to. */
    seen(): void {
      if (position >= mark) finish();
    },
    /** Nobody waits for anything any more. */
    letGo(): void {
      attached.resolve();
      caughtUp.resolve();
    },
  };
}
