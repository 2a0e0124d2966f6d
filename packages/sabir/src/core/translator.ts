import type { Chunk } from './chunks.ts';
import type { TurnOutcome } from './outcome.ts';

/** Which conversation of a session a turn belongs to, where a source has several. */
export type Channel = { channelType: string; channelId: string };

/** Where a library may write what an operator should know. Message content never goes here. */
export type Logger = {
  info?(message: string, details?: Record<string, unknown>): void;
  warn(message: string, details?: Record<string, unknown>): void;
  error?(message: string, details?: Record<string, unknown>): void;
};

export type TranslatorStats = {
  /** Event types nobody told us about: the source has drifted. */
  unknown: Record<string, number>;
  /** Known event types in a wrong shape. */
  malformed: Record<string, number>;
};

/**
 * Turns one source's events into chunks, for one turn.
 *
 * An implementation
 * - MUST be a synchronous push machine, deterministic given its ids;
 * - MUST NOT throw, whatever is pushed;
 * - MUST emit `start` before anything else, and a `finish` exactly once, last;
 * - MUST close every open part when the turn ends, however it ends;
 * - MUST return [] for everything pushed after the end;
 * - MUST count what it skips in `stats`, except known events that have no place in a chat.
 *
 * `test/translator-conformance.ts` checks all of it.
 */
export interface Translator<Event> {
  push(event: Event | unknown): Chunk[];
  /** Closes what is open, once; later calls give []. Without an outcome nothing more is known. */
  end(outcome?: TurnOutcome): Chunk[];
  /** True after a terminal event or `end()`. */
  readonly ended: boolean;
  readonly stats: TranslatorStats;
}

/** A source that invents event types must not fill the memory with their names. */
const MAX_COUNTED_TYPES = 100;

/** Counts one event that was skipped. Gives the name it is counted under; an empty one if it was there before. */
export function countSkipped(
  stats: TranslatorStats,
  kind: keyof TranslatorStats,
  type: string,
): string {
  const counts = stats[kind];
  const isRoom = Object.hasOwn(counts, type) || Object.keys(counts).length < MAX_COUNTED_TYPES;
  const key = isRoom ? type : '(others)';
  counts[key] = (Object.hasOwn(counts, key) ? (counts[key] as number) : 0) + 1;
  return counts[key] < 2 ? key : '';
}
