import { createAccumulatorCore, type OpenTool, type ToolCallOptions } from './accumulator-core.ts';
import type {
  Chunk,
  FileChunk,
  MessageMetadataChunk,
  SourceDocumentChunk,
  SourceUrlChunk,
} from './chunks.ts';

export type MessageAccumulator = ReturnType<typeof createMessageAccumulator>;

/**
 * The state machine with every verb: the core, streamed inputs, progress, approvals, sources, files. A source's own call ids
 * must not begin with `mintPrefix`, which calls without an id get.
 */
export function createMessageAccumulator(messageId: string, mintPrefix?: string) {
  const { accumulator: core, internals } = createAccumulatorCore(messageId, mintPrefix);
  const { openTools, isKnown, answer, write, json } = internals;
  const approvals = new Set<string>();

  return Object.assign(core, {
    /** A call of the message that is gone on with: it can be answered, and is not told again. */
    knownCall(toolCallId: string, call: OpenTool): void {
      if (!isKnown(toolCallId) && !core.isEnded) openTools.set(toolCallId, call);
    },
    toolInputStart(toolCallId: string, toolName: string, flags: ToolCallOptions = {}): void {
      if (isKnown(toolCallId) || core.isEnded) return;
      core.closeBlock();
      openTools.set(toolCallId, { name: toolName, flags, phase: 'input' });
      write({ type: 'tool-input-start', toolCallId, toolName, ...flags });
    },
    toolInputDelta(toolCallId: string, inputTextDelta: string): void {
      if (openTools.get(toolCallId)?.phase !== 'input') return;
      write({ type: 'tool-input-delta', toolCallId, inputTextDelta });
    },
    /** An output that is not the last. */
    toolProgress(toolCallId: string, output: unknown): void {
      const open = openTools.get(toolCallId);
      if (!open) return;
      // Whoever answers has heard the whole question: no input streams in any more.
      open.phase = 'called';
      write({
        type: 'tool-output-available',
        toolCallId,
        output: json(output),
        preliminary: true,
        ...open.flags,
      });
    },
    /** From AI SDK 6 on; `downgrade` keeps it from older clients. */
    toolApprovalRequest(toolCallId: string, approvalId: string): void {
      const open = openTools.get(toolCallId);
      if (open?.phase !== 'called' || approvals.has(approvalId)) return;
      approvals.add(approvalId);
      open.phase = 'approval';
      write({ type: 'tool-approval-request', approvalId, toolCallId });
    },
    /** From AI SDK 7 on. A call that was refused still waits for its denial. */
    toolApprovalResponse(
      toolCallId: string,
      response: { approvalId: string; approved: boolean; reason?: string },
    ): void {
      const open = openTools.get(toolCallId);
      if (open?.phase !== 'approval') return;
      if (response.approved) open.phase = 'called';
      write({ type: 'tool-approval-response', ...response, ...open.flags });
    },
    /** From AI SDK 6 on. */
    toolDenied(toolCallId: string): void {
      if (openTools.get(toolCallId)?.phase !== 'approval') return;
      answer(toolCallId, { type: 'tool-output-denied', toolCallId });
    },
    /** What stands for itself. A source does not interrupt the text that cites it; a file does. */
    part(chunk: SourceUrlChunk | SourceDocumentChunk | FileChunk | MessageMetadataChunk): void {
      if (chunk.type === 'file') core.closeBlock();
      write(json(chunk) as Chunk);
    },
  });
}
