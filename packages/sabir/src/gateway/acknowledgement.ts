import { createMessageAccumulator } from '../accumulator.ts';
import { encodeSse, SSE_DONE } from '../sse.ts';
import { SSE_HEADERS } from '../sse-response.ts';

/**
 * What a client gets that reports a tool's output or an approval for a tool that runs here: the
 * message it has, unchanged. Nothing is prompted.
 */
export function acknowledgement(messageId: string): Response {
  const accumulator = createMessageAccumulator(messageId);
  accumulator.start();
  accumulator.end();
  const frames = accumulator.take().map((chunk) => encodeSse(chunk, { eventName: true }));
  return new Response(frames.join('') + SSE_DONE, { headers: SSE_HEADERS });
}
