import type { SessionStorage } from './storage.ts';

/** How much of a turn is loaded at once. */
const PIECE_BYTES = 256_000;

export type StoredEvent<Event extends object> = {
  event: Event & { seq: number };
  /** Of its JSON, about: an entry's length is shared among its events. */
  length: number;
};

/** The events of a turn after `after`, loaded piece by piece as they are taken. */
export function* readEvents<Event extends object = object>(
  storage: SessionStorage,
  turnId: string,
  after: number,
): Generator<StoredEvent<Event>> {
  let last = after;
  for (;;) {
    const entries = storage.events(turnId, last, PIECE_BYTES);
    if (entries.length === 0) return;
    for (const entry of entries) {
      const events = JSON.parse(`[${entry}]`) as (Event & { seq: number })[];
      const length = entry.length / events.length;
      for (const event of events) {
        if (event.seq > last) yield { event, length };
      }
      last = events.at(-1)?.seq ?? Infinity;
    }
  }
}
