import type { SharedNotes } from './log.ts';

const MAX_NAMES = 10_000;
const MAX_NOTES_OF_A_NAME = 20;

/** The notes of gateways that are all in this process. */
export function createLocalNotes(now: () => number): SharedNotes {
  /** When each note of a name expires. */
  const notes = new Map<string, number[]>();
  return {
    async add(name, ms) {
      const kept = notes.get(name) ?? [];
      const oldest = notes.keys().next().value;
      if (notes.size >= MAX_NAMES && oldest !== undefined) notes.delete(oldest);
      notes.set(name, [...kept.slice(1 - MAX_NOTES_OF_A_NAME), now() + ms]);
    },
    async take(name) {
      const due = notes.get(name)?.filter((until) => until > now()) ?? [];
      const isThere = due.shift() !== undefined;
      if (due.length > 0) notes.set(name, due);
      else notes.delete(name);
      return isThere;
    },
    async clear(names) {
      for (const name of names) notes.delete(name);
    },
  };
}
