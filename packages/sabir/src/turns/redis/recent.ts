/** An append as it was written. */
export type Written = {
  /** The number before its first chunk. */
  first: number;
  last: number;
  stored: string;
  bytes: number;
  mark: number;
};

/** As much of what was confirmed can be written again: a crash of Redis may lose its last second. */
const KEPT_MS = 5_000;
const KEPT_BYTES = 1024 * 1024;
/** So many that are not kept any more may stand before those that are. */
const MOST_IDLE = 256;

/**
 * The appends that Redis has confirmed, and may lose all the same if they are not on a disk yet. Kept
 * as lists of plain values: there is one for every delta of every turn, and objects that live for
 * seconds are what a collector suffers from.
 */
export function createRecent() {
  let lasts: number[] = [];
  let storeds: string[] = [];
  let sizes: number[] = [];
  let marks: number[] = [];
  let times: number[] = [];
  /** The number before the first that is kept. */
  let before = 0;
  let start = 0;
  let length = 0;

  function drop(): void {
    length -= (storeds[start] as string).length;
    before = lasts[start] as number;
    storeds[start] = '';
    start++;
  }

  function clear(): void {
    lasts = [];
    storeds = [];
    sizes = [];
    marks = [];
    times = [];
    start = 0;
    length = 0;
  }

  return {
    clear,
    add({ first, last, stored, bytes, mark }: Written, now: number): void {
      if (start === lasts.length) before = first;
      lasts.push(last);
      storeds.push(stored);
      sizes.push(bytes);
      marks.push(mark);
      times.push(now);
      length += stored.length;
      while (
        start < lasts.length &&
        ((times[start] as number) < now - KEPT_MS || length > KEPT_BYTES)
      ) {
        drop();
      }
      if (start < MOST_IDLE || start < lasts.length / 2) return;
      for (const list of [lasts, storeds, sizes, marks, times]) list.splice(0, start);
      start = 0;
    },
    /** All behind this number, or undefined if some of them are not kept. */
    after(lastSeq: number): Written[] | undefined {
      const found: Written[] = [];
      let first = before;
      for (let at = start; at < lasts.length; at++) {
        const last = lasts[at] as number;
        if (last > lastSeq) {
          const [stored, bytes, mark] = [
            storeds[at] as string,
            sizes[at] as number,
            marks[at] as number,
          ];
          found.push({ first, last, stored, bytes, mark });
        }
        first = last;
      }
      return found[0]?.first === lastSeq ? found : undefined;
    },
  };
}
