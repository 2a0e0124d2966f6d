/** Chance that can be had again: everything a round of the fuzzer does follows from its seed. */
import { createRandom } from '../session-child.ts';

export type Random = {
  /** From 0 up to, but not including, `limit`. */
  below(limit: number): number;
  chance(probability: number): boolean;
  pick<T>(from: readonly T[]): T;
  bytes(length: number): Uint8Array;
};

export function randomOf(seed: number): Random {
  const next = createRandom(seed);
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    chance: (probability) => next() < probability,
    pick: (from) => from[below(from.length)] as (typeof from)[number],
    bytes: (length) => Uint8Array.from({ length }, () => below(256)),
  };
}

/** Another seed for every round of every target, from the one that was given. */
export function seedOf(seed: number, target: string, round: number): number {
  let mixed = (seed ^ Math.imul(round + 1, 0x9e3779b1)) >>> 0;
  for (let at = 0; at < target.length; at++) {
    mixed = Math.imul(mixed ^ target.charCodeAt(at), 0x01000193) >>> 0;
  }
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
