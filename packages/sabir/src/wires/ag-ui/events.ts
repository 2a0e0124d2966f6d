/**
 * The events of AG-UI 1.0 that chunks can become. Optional fields are absent, never `null`: AG-UI's schemas refuse
 * `null` there. https://docs.ag-ui.com
 */
import type { Usage } from '../../core/outcome.ts';

export const AG_UI_VERSION = '1.0';

type Metadata = { metadata?: Record<string, unknown> };
type OfMessage = { messageId: string } & Metadata;
type OfCall = { toolCallId: string } & Metadata;

/** What a run waits for. `id` is opaque: it comes back as the `interruptId` of a `resume` entry. */
export type AgUiInterrupt = {
  id: string;
  reason: string;
  message?: string;
  toolCallId?: string;
  responseSchema?: Record<string, unknown>;
  /** An ISO date. */
  expiresAt?: string;
  metadata?: Record<string, unknown>;
};

/** Absent means success. */
export type AgUiOutcome =
  | {
      type: 'success';
      /** The calls that the client is to run: the messages of the next run have their results. */
      pendingToolCallIds?: string[];
    }
  | { type: 'interrupt'; interrupts: AgUiInterrupt[] }
  | { type: 'cancelled' };

export type AgUiEvent =
  | { type: 'RUN_STARTED'; threadId: string; runId: string; protocolVersion: string }
  | ({
      type: 'RUN_FINISHED';
      threadId: string;
      runId: string;
      outcome?: AgUiOutcome;
      usage?: Usage[];
    } & Metadata)
  | ({ type: 'RUN_ERROR'; message: string; code?: string; usage?: Usage[] } & Metadata)
  | { type: 'STEP_STARTED' | 'STEP_FINISHED'; stepName: string }
  | ({ type: 'TEXT_MESSAGE_START'; role: 'assistant' } & OfMessage)
  | ({ type: 'TEXT_MESSAGE_CONTENT'; delta: string } & OfMessage)
  | ({ type: 'TEXT_MESSAGE_END' } & OfMessage)
  | ({ type: 'REASONING_START' | 'REASONING_END' } & OfMessage)
  | ({ type: 'REASONING_MESSAGE_START'; role: 'reasoning' } & OfMessage)
  | ({ type: 'REASONING_MESSAGE_CONTENT'; delta: string } & OfMessage)
  | ({ type: 'REASONING_MESSAGE_END' } & OfMessage)
  | ({ type: 'TOOL_CALL_START'; toolCallName: string; parentMessageId: string } & OfCall)
  | ({ type: 'TOOL_CALL_ARGS'; delta: string } & OfCall)
  | ({ type: 'TOOL_CALL_END' } & OfCall)
  | ({ type: 'TOOL_CALL_RESULT'; messageId: string; content: string; role: 'tool' } & OfCall)
  | { type: 'CUSTOM'; name: string; value: unknown };

// A line break would let an id forge lines of its own; a NUL makes readers drop it.
const UNSAFE_ID = /[\r\n\0]/;

/**
 * One event as one frame, without an event name, as AG-UI servers send it. An id that no frame can carry is left out.
 *
 * ```ts
 * toAgUiSse({ type: 'TEXT_MESSAGE_END', messageId: 'm1' }, 't1:9');
 * // id: t1:9
 * // data: {"type":"TEXT_MESSAGE_END","messageId":"m1"}
 * ```
 */
export function toAgUiSse(event: AgUiEvent, id?: string): string {
  const frame = `data: ${JSON.stringify(event)}\n\n`;
  return id === undefined || UNSAFE_ID.test(id) ? frame : `id: ${id}\n${frame}`;
}
