import type { Chunk } from '../core/chunks.ts';
import { QUESTION_EXPIRED } from '../core/errors.ts';
import { createId } from '../core/id.ts';
import { encodeSse, SSE_DONE } from '../core/sse.ts';
import { encodeAgUi, toAgUiSse } from '../wires/ag-ui/index.ts';
import { toContractSse } from '../wires/contract/events.ts';
import type { ChatPost } from './chat-post.ts';
import type { Place } from './chat-route.ts';
import { placeMetaOf, WIRE_HEADERS, type WireName } from './open-wire.ts';

type Report = Exclude<ChatPost, { kind: 'prompt' }>;

/** What a client gets that reports what no turn waits for: the message it has. Nothing is prompted. */
export function acknowledgement(wire: WireName, report: Report, place: Place): Response {
  return new Response(bodyOf(wire, report, place), { headers: WIRE_HEADERS[wire] });
}

function bodyOf(wire: WireName, report: Report, place: Place): string {
  if (wire === 'contract') return emptyRun(place);
  return wire === 'ag-ui' || report.kind === 'answer' ? emptyAgUiRun(place) : sameMessage(report);
}

/**
 * A client that sends by itself looks at the last step of its message, and would find the same
 * reason to send again, for ever: so there is a new one. It is put on the screen with the metadata.
 */
function sameMessage({ messageId, reports }: Extract<Report, { kind: 'acknowledge' }>): string {
  const approvals = reports.filter(({ answer }) => 'approved' in answer);
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

/** It finishes, so that the client no longer waits for what it has answered. */
function emptyAgUiRun({ chatId: threadId, agUi }: Place): string {
  const { runId = createId() } = agUi ?? {};
  const encode = encodeAgUi({ threadId, runId });
  const chunks: Chunk[] = [{ type: 'start' }, { type: 'finish', finishReason: 'other' }];
  return chunks
    .flatMap(encode)
    .map((event) => toAgUiSse(event))
    .join('');
}
