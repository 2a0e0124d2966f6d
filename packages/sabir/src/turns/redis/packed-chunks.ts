import { chunkBytes } from '../chunk-bytes.ts';
import { addNumbered, type Item, isTextRun, parseBatch, sizeOf } from '../chunk-codec.ts';
import type { LoggedChunk } from '../log.ts';

/** A shorter run takes less as the chunks that it is. */
const LEAST_RUN = 3;

/**
 * The chunks of a turn, as they came: a long run of text stays one string. Most of what a process
 * knows of turns is text that was told already, and chunk by chunk it would be up to eight times as much.
 */
export class PackedChunks {
  #items: Item[] = [];
  /** The number of each item's last chunk. */
  #lasts: number[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Adds what it does not have of a batch that ends at `last`. False if something before it is missing. */
  add(last: number, stored: string): boolean {
    const items = parseBatch(stored);
    let seq = last;
    for (const item of items) seq -= sizeOf(item);
    if (seq > this.#length) return false;
    for (const item of items) {
      const size = sizeOf(item);
      this.#addItem(item, seq, size);
      seq += size;
    }
    return true;
  }

  #addItem(item: Item, before: number, size: number): void {
    const known = this.#length - before;
    if (known >= size) return;
    if (isTextRun(item) && (known > 0 || size < LEAST_RUN)) {
      const chunks: LoggedChunk[] = [];
      addNumbered(chunks, item, before + 1, known);
      for (const { seq, chunk } of chunks) this.#push(chunk, seq);
    } else this.#push(item, before + size);
  }

  #push(item: Item, last: number): void {
    this.#items.push(item);
    this.#lasts.push(last);
    this.#length = last;
  }

  /** Those behind a number, each with its own, up to about so many bytes of them. */
  after(seq: number, maxBytes = Infinity): LoggedChunk[] {
    const found: LoggedChunk[] = [];
    let bytes = 0;
    for (let at = this.#indexAfter(seq); at < this.#items.length; at++) {
      const item = this.#items[at] as Item;
      const last = this.#lasts[at] as number;
      const from = found.length;
      if (isTextRun(item)) {
        const first = last - item[2].length + 1;
        addNumbered(found, item, first, Math.max(0, seq + 1 - first));
      } else found.push({ seq: last, chunk: item });
      if (maxBytes === Infinity) continue;
      for (let i = from; i < found.length; i++) {
        bytes += chunkBytes((found[i] as LoggedChunk).chunk);
        if (bytes > maxBytes && i > 0) return found.slice(0, i);
      }
    }
    return found;
  }

  /** Of the first item that has something behind this number. */
  #indexAfter(seq: number): number {
    let [low, high] = [0, this.#lasts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#lasts[middle] as number) > seq) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
