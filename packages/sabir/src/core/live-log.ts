import { type Chunk, isDataChunk } from './chunks.ts';
import { compactChunks } from './compact.ts';

/** How many chunks are kept loose before their deltas are merged. */
const MAX_LOOSE_CHUNKS = 1_024;

type Viewer = {
  controller: ReadableStreamDefaultController<Chunk>;
  /** What it has not been offered yet, because it was late or fell behind. */
  backlog: ChunkList;
};

/**
 * The log of one turn that lives in this process. Every viewer reads the same log: one that keeps
 * up gets the chunks one by one, one that comes late or falls behind gets its deltas merged. So
 * both the log and a backlog grow with the message, not with the number of chunks.
 */
export class LiveLog {
  /** Called when the last viewer has left a log that is still open. */
  onAbandoned: (() => void) | undefined;
  #all = new ChunkList();
  #viewers = new Set<Viewer>();
  #closed: boolean | undefined;

  append(chunks: Chunk[]): void {
    for (const chunk of chunks) {
      this.#all.push(chunk);
      for (const { controller, backlog } of this.#viewers) {
        if (backlog.isEmpty && (controller.desiredSize as number) > -MAX_LOOSE_CHUNKS) {
          controller.enqueue(ownCopy(chunk));
        } else {
          backlog.push(chunk);
        }
      }
    }
  }

  close(): void {
    this.#closed = true;
    for (const viewer of this.#viewers) if (viewer.backlog.isEmpty) this.#finish(viewer);
  }

  /** The whole turn from its first chunk, then what follows as it comes. */
  read(): ReadableStream<Chunk> {
    let viewer: Viewer;
    return new ReadableStream<Chunk>({
      start: (controller) => {
        viewer = { controller, backlog: new ChunkList(this.#all.merged()) };
        this.#viewers.add(viewer);
      },
      pull: () => {
        const { controller, backlog } = viewer;
        viewer.backlog = new ChunkList();
        for (const chunk of backlog.merged()) controller.enqueue(ownCopy(chunk));
        if (this.#closed) this.#finish(viewer);
      },
      cancel: () => {
        this.#viewers.delete(viewer);
        if (this.#viewers.size === 0 && !this.#closed) this.onAbandoned?.();
      },
    });
  }

  #finish(viewer: Viewer): void {
    if (this.#viewers.delete(viewer)) viewer.controller.close();
  }
}

/** Chunks whose deltas are merged whenever the list has doubled. */
class ChunkList {
  #chunks: Chunk[];
  #mergeAt = MAX_LOOSE_CHUNKS;

  constructor(chunks: Chunk[] = []) {
    this.#chunks = chunks;
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  push(chunk: Chunk): void {
    if (this.#chunks.push(chunk) < this.#mergeAt) return;
    this.#chunks = this.merged();
    this.#mergeAt = 2 * this.#chunks.length + MAX_LOOSE_CHUNKS;
  }

  merged(): Chunk[] {
    return compactChunks(this.#chunks);
  }
}

/** A client keeps a data chunk as its part and writes into it later: each viewer gets its own. */
function ownCopy(chunk: Chunk): Chunk {
  return isDataChunk(chunk) ? { ...chunk } : chunk;
}
