/** Numbers that are the same again for the same seed, and what is drawn with them. */
import { createRandom } from '../session-child.ts';

export type Random = ReturnType<typeof createDraws>;

/** `salts` make another sequence of the same seed: one for each turn, say. */
export function createDraws(seed: number, ...salts: number[]) {
  const mixed = salts.reduce((sum, salt) => Math.imul(sum ^ salt, 0x9e3779b1) + 0x85ebca6b, seed);
  const next = createRandom(mixed);
  const draws = {
    next,
    /** Whole, from `least` to `most`, both of them included. */
    between: (least: number, most: number) => least + Math.floor(next() * (most - least + 1)),
    is: (chance: number) => next() < chance,
    pick: <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T,
    /** By weights, which need not add up to anything. */
    weighted<T extends string>(weights: Readonly<Record<T, number>>): T {
      const entries = Object.entries(weights) as [T, number][];
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [name, weight] of entries) {
        left -= weight;
        if (left < 0) return name;
      }
      return (entries.at(-1) as [T, number])[0];
    },
  };
  return draws;
}
