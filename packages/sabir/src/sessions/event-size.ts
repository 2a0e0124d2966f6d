import type { Chunk } from '../core/chunks.ts';
import { chunkBytes } from '../turns/chunk-bytes.ts';

/** Whether an agent's event takes more than so many bytes. What has no size as JSON is left to the translator. */
export function isLargerThan(bytes: number, event: unknown): boolean {
  try {
    return chunkBytes(event as Chunk) > bytes;
  } catch {
    return false;
  }
}
