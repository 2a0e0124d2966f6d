import type { Chunk, FinishReason } from '../core/chunks.ts';
import type { MessageMetadata, TurnOutcome } from '../core/outcome.ts';

/** The outcome that a turn's last chunks tell: what its source said in metadata, error and finish. */
export function outcomeOf(chunks: Iterable<Chunk>): TurnOutcome {
  let metadata: MessageMetadata = {};
  let message: string | undefined;
  let finishReason: FinishReason | undefined;
  for (const chunk of chunks) {
    if (chunk.type === 'error') message = chunk.errorText;
    if (chunk.type === 'finish' && chunk.finishReason !== 'interrupted') {
      finishReason = chunk.finishReason;
    }
    if (chunk.type === 'finish' || chunk.type === 'message-metadata') {
      metadata = { ...metadata, ...(chunk.messageMetadata as MessageMetadata | undefined) };
    }
  }
  const { outcome = message === undefined ? 'finished' : 'failed', reason, code, usage } = metadata;
  switch (outcome) {
    case 'failed':
      return { status: 'failed', ...(code && { code }), ...(message && { message }) };
    case 'stopped':
      return { status: 'stopped', ...(reason && { reason }) };
    case 'paused':
    case 'lost':
      return { status: outcome };
    default:
      return {
        status: 'finished',
        ...(finishReason && { finishReason }),
        ...(usage && { usage }),
      };
  }
}
