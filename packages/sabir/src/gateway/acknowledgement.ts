import type { Chunk } from '../core/chunks.ts';
import { QUESTION_EXPIRED } from '../core/errors.ts';
import { encodeSse, SSE_DONE } from '../core/sse.ts';
import { toContractSse } from '../wires/contract/events.ts';
import type { ChatPost } from './chat-post.ts';
import type { Place } from './chat-route.ts';
import { placeMetaOf, WIRE_HEADERS, type WireName } from './open-wire.ts';

type Report = Extract<ChatPost, { kind: 'acknowledge' }>;

/**
 * What a client gets that reports a tool's output, or an approval that nobody waits for any more:
 * the message it has. Nothing is prompted.
 */
export function acknowledgement(wire: WireName, report: Report, place: Place): Response {
  const body = wire === 'contract' ? emptyRun(place) : sameMessage(report);
  return new Response(body, { headers: WIRE_HEADERS[wire] });
}

/**
 * A client that sends by itself looks at the last step of its message, and would find the same
 * reason to send again, for ever: so there is a new one. It is put on the screen with the metadata.
 */
function sameMessage({ messageId, approvals }: Report): string {
  const chunks: Chunk[] = [
    { type: 'start', messageId },
    ...approvals.map(({ toolCallId }): Chunk => {
      return { type: 'tool-output-error', toolCallId, errorText: QUESTION_EXPIRED.userMessage };
    }),
    { type: 'start-step' },
    { type: 'finish-step' },
    { type: 'message-metadata', messageMetadata: {} },
    { type: 'finish', finishReason: 'other' },
  ];
  return chunks.map((chunk) => encodeSse(chunk, { eventName: true })).join('') + SSE_DONE;
}

/** No message: one that starts is told anew, and would be empty. */
function emptyRun(place: Place): string {
  return (
    toContractSse({ type: 'meta', data: placeMetaOf(place) }) +
    toContractSse({ type: 'done', data: { finishReason: 'stop' } })
  );
}
