/** The word somebody most likely meant, if one is near enough to be worth naming. */
export function findNearest(typed: string, words: readonly string[]): string | undefined {
  const wanted = typed.toLowerCase();
  const ranked = words
    .map((word) => ({ word, distance: distanceBetween(wanted, word.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const [best] = ranked;
  // Of a short word every other short word is near.
  const limit = Math.max(1, Math.floor(wanted.length / 3));
  if (best && best.distance <= limit) return best.word;
  const begun = words.filter((word) => wanted.length > 1 && word.startsWith(wanted));
  return begun.length === 1 ? begun[0] : undefined;
}

/** As a sentence to put behind another one, or nothing. */
export function didYouMean(typed: string, words: readonly string[]): string {
  const nearest = findNearest(typed, words);
  return nearest === undefined ? '' : ` Did you mean ${nearest}?`;
}

/** How many letters to add, drop, change or swap with their neighbour. */
function distanceBetween(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[column - 2] ?? 0) + 1 : Infinity,
      );
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
}
