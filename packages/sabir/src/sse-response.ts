import type { Chunk } from './chunks.ts';
import { encodeSse, SSE_DONE } from './sse.ts';

/** What proxies and AI SDK clients need to see on a chunk stream. */
export const SSE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
  'x-vercel-ai-ui-message-stream': 'v1',
};

/** Chunks → the body of an AI SDK SSE response, with a comment now and then to keep it open. */
export function toSseBody(
  chunks: ReadableStream<Chunk>,
  keepAliveMs: number,
): ReadableStream<Uint8Array> {
  const reader = chunks.getReader();
  const encoder = new TextEncoder();
  let timer: ReturnType<typeof setInterval> | undefined;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      timer = setInterval(() => {
        // A reader that is behind needs no proof of life.
        if ((controller.desiredSize ?? 0) > 0) {
          controller.enqueue(encoder.encode(': keep-alive\n\n'));
        }
      }, keepAliveMs);
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (!done) return controller.enqueue(encoder.encode(encodeSse(value)));
      clearInterval(timer);
      controller.enqueue(encoder.encode(SSE_DONE));
      controller.close();
    },
    cancel(reason) {
      clearInterval(timer);
      return reader.cancel(reason);
    },
  });
}
