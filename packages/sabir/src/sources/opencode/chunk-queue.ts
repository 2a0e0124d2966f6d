import type { Chunk } from '../../core/chunks.ts';

type Delta = Extract<Chunk, { type: 'text-delta' | 'reasoning-delta' }>;
/** A chunk, or what is to be done when all chunks before it are taken. */
type Item = Chunk | (() => void);

/**
 * The chunks of a turn that are not taken yet. Deltas of one text that arrive in one tick become one
 * chunk: the server sends nearly every token by itself.
 */
export function createChunkQueue(mergeDeltas: boolean) {
  let waiting: Item[] = [];
  let end: { error?: unknown } | undefined;
  let wake: (() => void) | undefined;

  function push(item: Item): void {
    if (end) return;
    const last = waiting.at(-1);
    if (mergeDeltas && isDelta(item) && isDelta(last) && last.id === item.id) {
      waiting[waiting.length - 1] = { ...last, delta: `${last.delta}${item.delta}` };
    } else {
      waiting.push(item);
    }
    wake?.();
  }

  return {
    push,
    /** What was pushed before is still given out. */
    end(): void {
      end ??= {};
      wake?.();
    },
    fail(error: unknown): void {
      end ??= { error };
      wake?.();
    },
    async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void> {
      for (;;) {
        const taken = waiting;
        waiting = [];
        for (const item of taken) {
          if (typeof item === 'function') item();
          else yield item;
        }
        if (waiting.length > 0) continue;
        if (end) {
          if ('error' in end) throw end.error;
          return;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

function isDelta(item: Item | undefined): item is Delta {
  if (typeof item !== 'object') return false;
  return item.type === 'text-delta' || item.type === 'reasoning-delta';
}
