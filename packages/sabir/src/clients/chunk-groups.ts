import type { Chunk } from '../core/chunks.ts';
import type { SseFrame } from '../core/sse.ts';

/** The server went on with something that does not continue what was delivered. */
export class LostError extends Error {}

/** What the frames of a server say: `Item` is one frame's worth of it. */
export type Wire<Item> = {
  /** Throws where it is none. */
  read(frame: SseFrame): Item;
  /** Nothing, or nothing that matters, can follow it. */
  isTerminal(item: Item): boolean;
  /** Asked once for every item that is delivered, in order. */
  toChunks(item: Item): Chunk[];
};

/** The AI SDK's own: a frame is a chunk. */
export const AI_SDK_WIRE: Wire<Chunk> = {
  read({ data }) {
    const chunk = JSON.parse(data) as Chunk;
    if (typeof chunk?.type !== 'string') throw new TypeError('A frame is not a chunk.');
    return chunk;
  },
  isTerminal: ({ type }) => type === 'finish' || type === 'error',
  toChunks: (chunk) => [chunk],
};

/**
 * Frames → chunks, each delivered once, over any number of connections.
 *
 * An `id: turnId:seq` says that everything up to `seq` is there with this frame. One number may be
 * spread over several frames, and only the last of them has the id: what came since the last id is
 * held back until the next one, and forgotten when the connection drops, because a resume sends it
 * again. What a server says outside of its log has no id: it is delivered when the body ends as a
 * body should, since nothing can follow it. A prompt's place in the queue has the number 0: it is
 * delivered at once, and covers nothing.
 *
 * After a resume, what the cursor covers is skipped. A frame that covers more than that, but not
 * only that, and one of another turn, cannot be made to fit: the answer is lost.
 */
export class ChunkGroups<Item = unknown> {
  /** `turnId:seq` of what was delivered last; undefined while nothing was. */
  cursor: string | undefined;
  /** Nothing more will come: the stream can be closed. */
  isOver = false;
  /** An error was delivered: there may still be a `finish`, but nobody waits for it. */
  hasFailed = false;
  /** The server numbers nothing. Everything is passed on, and nothing can be resumed. */
  isUnnumbered = false;
  #turnId = '';
  #seq = 0;
  /** The last number that was skipped on this connection. */
  #skipped: number | undefined;
  #held: Item[] = [];
  #wire: Wire<Item>;
  #deliver: (chunk: Chunk) => void;

  constructor(wire: Wire<Item>, deliver: (chunk: Chunk) => void) {
    this.#wire = wire;
    this.#deliver = deliver;
  }

  /** Frames wait, and whether the server numbers them is not known yet. */
  get isUndecided(): boolean {
    return this.#held.length > 0 && this.cursor === undefined;
  }

  /** A new connection begins. */
  begin(): void {
    this.#held = [];
    this.#skipped = undefined;
  }

  /**
   * Gives the cursor. Throws where the frame is no chunk, or does not continue what was delivered.
   *
   * @param held What this connection has sent and no number covers yet.
   */
  take(frame: SseFrame, held: Item[]): string | undefined {
    if (this.isOver) return;
    this.#held = held;
    if (frame.data === '[DONE]') {
      this.end(true);
      return;
    }
    held.push(this.#wire.read(frame));
    const { id = '' } = frame;
    const colon = id.lastIndexOf(':');
    const seq = colon > 0 ? Number(id.slice(colon + 1)) : 0;
    if (seq > 0) this.#place(id, id.slice(0, colon), seq);
    else if (this.isUnnumbered || id) this.#commit();
    return this.cursor;
  }

  /** The body has ended, not by a cut; `isDone` if it said so itself. */
  end(isDone = false): void {
    const isUnknown = isDone && this.cursor === undefined;
    const isLast = isUnknown || this.#held.some(this.#wire.isTerminal);
    if (isLast) this.#commit();
    // Behind an error with a number there is still a `finish` with the next.
    if (isLast || (isDone && this.hasFailed)) this.isOver = true;
  }

  /** The server seems to number nothing. */
  pass(): void {
    this.isUnnumbered = true;
    this.#commit();
  }

  #place(id: string, turnId: string, seq: number): void {
    if (this.cursor !== undefined) {
      if (turnId !== this.#turnId) throw new LostError();
      if (seq <= this.#seq) {
        this.#held.length = 0;
        this.#skipped = seq;
        return;
      }
      if (this.#skipped !== undefined && this.#skipped < this.#seq) throw new LostError();
    }
    this.#skipped = undefined;
    this.isUnnumbered = false;
    this.#turnId = turnId;
    this.#seq = seq;
    this.cursor = id;
    this.#commit();
  }

  #commit(): void {
    const items = this.#held.splice(0);
    for (const item of items) for (const chunk of this.#wire.toChunks(item)) this.#give(chunk);
  }

  #give(chunk: Chunk): void {
    if (this.isOver) return;
    this.#deliver(chunk);
    if (chunk.type === 'finish') this.isOver = true;
    if (chunk.type === 'error') this.hasFailed = true;
  }
}
