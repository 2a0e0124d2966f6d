import type { Chunk } from '../core/chunks.ts';
import { isObject } from '../core/loose.ts';

/** What a chunk takes beside its text: the object, its number, its frame. */
export const OVERHEAD_BYTES = 64;

/** About the bytes that a chunk takes. Cheap for deltas, of which there are many. */
export function chunkBytes(chunk: Chunk): number {
  switch (chunk.type) {
    case 'text-delta':
    case 'reasoning-delta':
      if (chunk.providerMetadata !== undefined) break;
      return chunk.delta.length + OVERHEAD_BYTES;
    case 'tool-input-delta':
      return chunk.inputTextDelta.length + OVERHEAD_BYTES;
  }
  return JSON.stringify(chunk).length + OVERHEAD_BYTES;
}

const CLOSINGS = new Set<string>([
  'start',
  'text-end',
  'reasoning-end',
  'tool-output-error',
  'finish-step',
  'message-metadata',
  'error',
  'finish',
]);

/**
 * Whether this is all that a turn may still say when it is too large: its end, which needs a start before it. Without the
 * `finish` a source could go on with such chunks for ever.
 */
export function areClosings(chunks: readonly Chunk[]): boolean {
  return chunks.at(-1)?.type === 'finish' && chunks.every(isClosing);
}

function isClosing(chunk: Chunk): boolean {
  if (chunk.type !== 'data-question') return CLOSINGS.has(chunk.type);
  // The question was open, and the turn's end withdraws it.
  return isObject(chunk.data) && chunk.data.status === 'withdrawn';
}
