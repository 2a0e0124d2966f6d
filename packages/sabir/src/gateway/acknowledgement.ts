import { createMessageAccumulator } from '../accumulator.ts';
import { toContractSse } from '../contract/events.ts';
import { encodeSse, SSE_DONE } from '../sse.ts';
import type { Place } from './chat-route.ts';
import { placeMetaOf, WIRE_HEADERS, type WireName } from './wires.ts';

/**
 * What a client gets that reports a tool's output or an approval for a tool that runs here: the
 * message it has, unchanged. Nothing is prompted.
 */
export function acknowledgement(wire: WireName, messageId: string, place: Place): Response {
  const body = wire === 'contract' ? emptyRun(place) : sameMessage(messageId);
  return new Response(body, { headers: WIRE_HEADERS[wire] });
}

function sameMessage(messageId: string): string {
  const accumulator = createMessageAccumulator(messageId);
  accumulator.start();
  accumulator.end();
  const frames = accumulator.take().map((chunk) => encodeSse(chunk, { eventName: true }));
  return frames.join('') + SSE_DONE;
}

/** No message: one that starts is told anew, and would be empty. */
function emptyRun(place: Place): string {
  return (
    toContractSse({ type: 'meta', data: placeMetaOf(place) }) +
    toContractSse({ type: 'done', data: { finishReason: 'stop' } })
  );
}
