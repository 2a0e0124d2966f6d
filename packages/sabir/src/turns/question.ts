import { isObject } from '../chunk-shapes.ts';
import type { Chunk } from '../chunks.ts';

/** What a `data-question` part tells. */
export type Question = {
  questionId: string;
  /** `open` until somebody has answered or nobody did; sources may know other ends. */
  status: unknown;
  answer?: unknown;
  /** Milliseconds since 1970. */
  expiresAt?: unknown;
};

/** The question in a chunk, if there is one: by the id of its part, and open unless it says not. */
export function questionOf(chunk: Chunk): Question | undefined {
  if (chunk.type !== 'data-question' || !isObject(chunk.data)) return undefined;
  const { questionId, status = 'open', answer, expiresAt } = chunk.data;
  const id = chunk.id ?? questionId;
  return typeof id === 'string' ? { questionId: id, status, answer, expiresAt } : undefined;
}
