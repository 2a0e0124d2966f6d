import type { Chunk } from './chunks.ts';
import { encodeSse, SSE_DONE } from './sse.ts';

/** What proxies and AI SDK clients need to see on a chunk stream. */
export const SSE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
  'x-vercel-ai-ui-message-stream': 'v1',
};

/**
 * Chunks → the body of an AI SDK SSE response, with a comment now and then to keep it open; no
 * comments where `keepAliveMs` is 0 or Infinity.
 */
export function toSseBody(
  chunks: ReadableStream<Chunk>,
  keepAliveMs: number,
): ReadableStream<Uint8Array> {
  const reader = chunks.getReader();
  const encoder = new TextEncoder();
  let timer: ReturnType<typeof setInterval> | undefined;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      if (!(keepAliveMs > 0 && keepAliveMs < Infinity)) return;
      timer = setInterval(() => {
        // A reader that is behind needs no proof of life.
        if ((controller.desiredSize ?? 0) > 0) {
          controller.enqueue(encoder.encode(': keep-alive\n\n'));
        }
      }, keepAliveMs);
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      try {
        controller.enqueue(encoder.encode(done ? SSE_DONE : encodeSse(value)));
      } catch (error) {
        // Somebody changed a value after it was handed over, into one that JSON cannot carry.
        clearInterval(timer);
        await reader.cancel(error);
        throw error;
      }
      if (!done) return;
      clearInterval(timer);
      controller.close();
    },
    cancel(reason) {
      clearInterval(timer);
      return reader.cancel(reason);
    },
  });
}
