import { type Chunk, isDataChunk } from './chunks.ts';
import { compactChunks } from './compact.ts';

/** How many chunks are kept loose before their deltas are merged. */
const MAX_LOOSE_CHUNKS = 1_024;

type Viewer = {
  controller: ReadableStreamDefaultController<Chunk>;
  /** What it has not been offered yet, because it was late or fell behind. */
  backlog: Chunk[];
};

/**
 * The log of one turn that lives in this process. Every viewer reads the same log: one that keeps
 * up gets the chunks one by one, one that comes late or falls behind gets its deltas merged. So
 * both the log and a backlog grow with the message, not with the number of chunks.
 */
export class LiveLog {
  /** Called when the last viewer has left a log that is still open. */
  onAbandoned: (() => void) | undefined;
  #all: Chunk[] = [];
  #viewers = new Set<Viewer>();
  #closed = false;

  append(chunks: Chunk[]): void {
    for (const chunk of chunks) {
      this.#all.push(chunk);
      this.#all = mergeWhenLong(this.#all);
      for (const viewer of this.#viewers) {
        const { controller, backlog } = viewer;
        if (backlog.length === 0 && (controller.desiredSize ?? 0) > -MAX_LOOSE_CHUNKS) {
          controller.enqueue(ownCopy(chunk));
        } else {
          backlog.push(chunk);
          viewer.backlog = mergeWhenLong(backlog);
        }
      }
    }
  }

  close(): void {
    this.#closed = true;
    for (const viewer of this.#viewers) if (viewer.backlog.length === 0) this.#finish(viewer);
  }

  /**
   * The whole turn from its first chunk, then what follows as it comes. An aborted `signal` ends
   * this viewer's stream and nothing else.
   */
  read(signal?: AbortSignal): ReadableStream<Chunk> {
    let viewer: Viewer;
    return new ReadableStream<Chunk>({
      start: (controller) => {
        viewer = { controller, backlog: [...this.#all] };
        this.#viewers.add(viewer);
        signal?.addEventListener('abort', () => this.#finish(viewer), { once: true });
      },
      pull: () => {
        const { controller, backlog } = viewer;
        viewer.backlog = [];
        for (const chunk of compactChunks(backlog)) controller.enqueue(ownCopy(chunk));
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

/**
 * Merges deltas each time the list has grown by MAX_LOOSE_CHUNKS: what does not merge, tool calls
 * for example, is looked at again only once in so many chunks.
 */
function mergeWhenLong(chunks: Chunk[]): Chunk[] {
  return chunks.length % MAX_LOOSE_CHUNKS === 0 ? compactChunks(chunks) : chunks;
}

/** A client keeps a data chunk as its part and writes into it later: each viewer gets its own. */
function ownCopy(chunk: Chunk): Chunk {
  return isDataChunk(chunk) ? { ...chunk } : chunk;
}
